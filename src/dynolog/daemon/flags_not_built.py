"""Flags of the public Dynolog whose parts are not in this version: they parse, and say so at start.

When a part is built, its flags move to where it is registered.
"""

from dynolog.model.flag import Flag, FlagValue


def _flag(name: str, default: FlagValue, what: str, why: str, section: str) -> Flag:
    return Flag(
        name=name, default=default, help=f"{what} (not built yet)", section=section, not_built=f"--{name}: {why}"
    )


NOT_BUILT_FLAGS: tuple[Flag, ...] = ()
