"""What a check found."""

from enum import StrEnum

import msgspec


class Level(StrEnum):
    """How much it matters."""

    WRONG = "wrong"  # something that was asked for, or that tracing needs, does not work: exit code 1
    NOTE = "note"  # missing here, and perhaps nobody misses it
    OK = "ok"  # looked at and in order


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One sentence about one thing, and the command or the change that helps ("" when nothing does or nothing is needed)."""

    level: Level
    topic: str
    text: str
    remedy: str = ""


def wrong(topic: str, text: str, remedy: str = "") -> Finding:
    """Something does not work."""
    return Finding(level=Level.WRONG, topic=topic, text=text, remedy=remedy)


def note(topic: str, text: str, remedy: str = "") -> Finding:
    """Something is missing, or worth knowing."""
    return Finding(level=Level.NOTE, topic=topic, text=text, remedy=remedy)


def ok(topic: str, text: str) -> Finding:
    """Something is in order."""
    return Finding(level=Level.OK, topic=topic, text=text)
