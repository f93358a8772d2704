"""The values of options, checked as they are typed; each raises argparse.ArgumentTypeError with a sentence."""

import argparse
import re

_JOB = re.compile(r"\d[0-9A-Za-z_.+,%\[\]-]*")
_GPU = re.compile(r"\d{1,4}(/gi\d{1,4})?|renderD\d{1,4}|[0-9A-Za-z-]{8,64}")
_MAX_UINT64 = 2**64 - 1

# To a daemon that knows numbers only, a text job id must match nobody rather than another job: ids are never negative.
NO_JOB_NUMBER = -1


def port(text: str) -> int:
    """A TCP port."""
    if not _is_number(text) or not 0 < int(text) < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: a number from 1 to 65535")
    return int(text)


def positive_seconds(text: str) -> float:
    """A time in seconds above 0, fractions allowed."""
    seconds = _float(text)
    if not 0 < seconds <= 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is no time in seconds above 0")
    return seconds


def whole_seconds(text: str) -> int:
    """A time in whole seconds from 0 on; libkineto takes no fractions."""
    if not _is_number(text) or int(text) > 86400:
        raise argparse.ArgumentTypeError(f"{text!r} is no time in whole seconds from 0 to 86400")
    return int(text)


def host_interval_ms(text: str) -> int:
    """An interval in ms at which a daemon samples its host beside a trace."""
    if not _is_number(text) or not 20 <= int(text) <= 10_000:
        raise argparse.ArgumentTypeError(f"{text!r} is no interval in ms from 20 to 10000")
    return int(text)


def not_negative(text: str) -> int:
    """A whole number from 0 to 2⁶³−1."""
    if not _is_number(text) or int(text) >= 2**63:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 on")
    return int(text)


def positive(text: str) -> int:
    """A whole number from 1 to 2⁶³−1."""
    if not _is_number(text) or not 0 < int(text) < 2**63:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number above 0")
    return int(text)


def job(text: str) -> tuple[int, str]:
    """A job id as number and text: 90210 → (90210, ""); `90210.0` → (90210, "90210.0"); `90210_2` → (-1, "90210_2").

    A step's number is its job's. An array task's is another number than the array's, which only our daemon can find out,
    so every other daemon is given one that matches nobody.
    """
    if _is_number(text):
        if int(text) > _MAX_UINT64:
            raise argparse.ArgumentTypeError(f"{text!r} is no job id: it has more than 64 bits")
        return int(text), ""
    if not text.isascii() or not _JOB.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no job id such as 90210, 90210_2 or 90210.0")
    base, dot, _ = text.partition(".")
    return (int(base) if dot and _is_number(base) and int(base) <= _MAX_UINT64 else NO_JOB_NUMBER), text


def pids(text: str) -> list[int]:
    """Comma list of pids; 0 means every process of the job."""
    numbers = [part.strip() for part in text.split(",") if part.strip()]
    if not all(_is_number(number) and int(number) < 2**31 for number in numbers):
        raise argparse.ArgumentTypeError(f"{text!r} is no comma list of pids such as 4711,4712")
    return [int(number) for number in numbers]


def ranks(text: str) -> list[int]:
    """Comma list of ranks and ranges of ranks: `0,8-15`."""
    chosen: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not _is_number(first) or (dash and not _is_number(last)):
            raise argparse.ArgumentTypeError(f"{text!r} is no list of ranks such as 0,8-15")
        low, high = int(first), int(last) if dash else int(first)
        if not low <= high < 1_000_000:
            raise argparse.ArgumentTypeError(f"{part.strip()!r} is no range of ranks")
        chosen += range(low, high + 1)
    return chosen


def required_share(text: str) -> float:
    """Which share of hosts: `all` is 1, `any` 0, `80%` 0.8."""
    words = {"all": 1.0, "any": 0.0}
    if text in words:
        return words[text]
    percent = _float(text.removesuffix("%"))
    if not text.endswith("%") or not 0 <= percent <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} is not all, any, or a share such as 80%")
    return percent / 100


def names(text: str) -> list[str]:
    """Comma list of process names."""
    return [part.strip() for part in text.split(",") if part.strip()]


def gpus(text: str) -> list[str]:
    """Comma list of GPUs: numbers (`0`), MIG instances (`0/gi1`), uuids or at least their first 8 characters."""
    chosen = names(text)
    if not chosen or not all(_GPU.fullmatch(name) for name in chosen):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of GPUs such as 0,3 or 0/gi1 or GPU-8f6e0c1d")
    return [str(int(name)) if _is_number(name) else name for name in chosen]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 20


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return -1.0
