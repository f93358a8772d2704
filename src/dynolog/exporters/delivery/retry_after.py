"""The Retry-After header (RFC 9110, section 10.2.3)."""


def retry_after_s(value: str | None, date: str | None, wall_s: float) -> float | None:
    """Seconds until the destination wants to be asked again; None when `value` says nothing that can be understood.

    A date is compared with the response's own `date` when it has one, because the two clocks may differ; else with `wall_s`, the time here
    in seconds since the epoch. A time that has passed gives 0.
    """
    if value is None:
        return None
    text = value.strip()
    # str.isdecimal alone takes digits of other scripts too.
    if text.isascii() and text.isdecimal():
        return float(text[:12])
    then_s = _epoch_s(text)
    if then_s is None:
        return None
    now_s = _epoch_s(date) if date else None
    return max(then_s - (wall_s if now_s is None else now_s), 0.0)


def _epoch_s(text: str) -> float | None:
    import email.utils  # noqa: PLC0415 - only when a destination names a date

    try:
        return email.utils.parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError, TypeError, IndexError):
        return None
