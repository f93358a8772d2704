"""Sizes, times and counts as a person reads them."""

import time


def size(size_bytes: float) -> str:
    """`512 B`, `1.2 kB`, `3.4 MB`: powers of 1000."""
    if size_bytes < 1000:
        return f"{size_bytes:.0f} B"
    units = ["TB", "GB", "MB", "kB"]
    size_bytes /= 1000
    while size_bytes >= 999.95 and len(units) > 1:
        size_bytes /= 1000
        units.pop()
    return f"{size_bytes:.1f} {units[-1]}"


def duration(seconds: float) -> str:
    """`0.4 s`, `12 s`, `3 min 5 s`, `2 h 10 min`, `4 d 3 h`."""
    if seconds < 9.95:
        return f"{max(seconds, 0):.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def microseconds(duration_us: float) -> str:
    """`5 µs`, `12.3 ms`, `1.25 s`."""
    if duration_us < 999.5:
        return f"{duration_us:.0f} µs"
    if duration_us < 999_950:
        return f"{duration_us / 1000:.1f} ms"
    return f"{duration_us / 1_000_000:.2f} s"


def count(number: int, noun: str) -> str:
    """`1 event`, `3,456 events`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def processes(number: int) -> str:
    """`1 process`, `3 processes`."""
    return f"{number:,} process" + ("" if number == 1 else "es")


def value(number: float | str) -> str:
    """A metric's value: integers whole, fractions with three decimals or three digits, whichever says more."""
    if isinstance(number, str):
        return number
    if isinstance(number, int):
        return f"{number:,}"
    return f"{number:,.3f}" if number == 0 or abs(number) >= 0.1 else f"{number:.3g}"


def gpu_pause(until_wall_ns: int) -> str:
    """Until when GPU profiling is paused, in the daemon's wall clock time (UTC)."""
    until = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(until_wall_ns // 1_000_000_000))
    return f"GPU profiling is paused until {until} UTC; `dyno dcgm-resume` ends that."


def age(then_wall_ns: int, now_wall_ns: int) -> str:
    """How long ago, by one clock; `never` for 0."""
    return f"{duration((now_wall_ns - then_wall_ns) / 1e9)} ago" if then_wall_ns else "never"
