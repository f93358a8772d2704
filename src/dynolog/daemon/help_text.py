"""`dynolog --help`, and docs/flags.md, from the declared flags."""

import re
from collections.abc import Iterable

from dynolog.model.flag import Flag

SECTIONS = {
    "daemon": "The daemon",
    "collectors": "Collectors",
    "exporters": "Destinations of records",
    "rpc": "Requests (RPC)",
    "ipc": "Trainers (IPC)",
    "profiling": "Captures",
    "gpu": "GPUs and other devices",
}
SPECIAL = (
    ("--flagfile=PATH", "read flags from a file, one a line, # comments; an unknown flag in it only warns"),
    ("--undefok=NAME,...", "names that may be unknown on the command line"),
    ("--check", "check the flags and exit"),
    ("--version", "print the version and exit"),
    ("--help", "print this and exit"),
)

_COLLECTOR_SWITCH = re.compile(r"^enable_(.+)_collector$")


def _spelling(flag: Flag) -> str:
    if isinstance(flag.default, bool):
        return f"--[no]{flag.name}"
    value = {int: "N", float: "X"}.get(type(flag.default), "TEXT")
    return f"--{flag.name}={value}"


def default_text(flag: Flag) -> str:
    """The default as it would be typed."""
    if isinstance(flag.default, bool):
        return "true" if flag.default else "false"
    if isinstance(flag.default, float):
        return f"{flag.default:g}"
    return str(flag.default)


def _by_section(flags: Iterable[Flag]) -> list[tuple[str, list[Flag]]]:
    flags = list(flags)
    unknown = {flag.section for flag in flags} - set(SECTIONS)
    if unknown:
        raise ValueError(f"flags in unknown sections: {unknown}")
    return [(title, [flag for flag in flags if flag.section == name]) for name, title in SECTIONS.items()]


def render_help(flags: Iterable[Flag]) -> str:
    """The text of `dynolog --help`; flags whose part is not built are left out of it, not out of docs/flags.md."""
    lines = [
        "dynolog: watches this machine, and lets dyno trace its PyTorch processes.",
        "",
        "usage: dynolog [--flag=value ...]",
        "",
    ]
    lines += [f"  {spelling:<42} {text}" for spelling, text in SPECIAL]
    built = [flag for flag in flags if not flag.not_built]
    collectors = [match[1] for flag in built if (match := _COLLECTOR_SWITCH.match(flag.name))]
    of_each = {f"enable_{name}_collector" for name in collectors} | {f"{name}_interval_s" for name in collectors}
    for title, members in _by_section(flag for flag in built if flag.name not in of_each):
        if members:
            lines += ["", f"{title}:"]
            if members[0].section == "collectors":
                lines += [
                    f"  {'--[no]enable_NAME_collector':<42} switch a collector: {', '.join(collectors)}",
                    f"  {'--NAME_interval_s=X':<42} seconds between its readings; 0: as often as reports are made [0]",
                ]
            lines += [f"  {_spelling(flag):<42} {flag.help}{_choices(flag)} [{default_text(flag)}]" for flag in members]
    return "\n".join(lines) + "\n"


def render_markdown(flags: Iterable[Flag]) -> str:
    """docs/flags.md."""
    lines = [
        "# Flags of `dynolog`",
        "",
        "Made from the code by `make docs`; do not edit.",
        "",
        "`--name=value` or `--name value`; a switch is `--name` or `--noname`. One dash or two, `-` and `_` alike; the last one wins.",
        "Flags marked ⟳ take effect on SIGHUP without a restart.",
        "",
        "| flag | meaning |",
        "|---|---|",
        *(f"| `{spelling}` | {text} |" for spelling, text in SPECIAL),
    ]
    for title, members in _by_section(flags):
        if members:
            lines += ["", f"## {title}", "", "| flag | default | meaning |", "|---|---|---|"]
            lines += [_row(flag) for flag in members]
    return "\n".join(lines) + "\n"


def _row(flag: Flag) -> str:
    also = f" (also `--{'`, `--'.join(flag.aliases)}`)" if flag.aliases else ""
    default = f"`{default_text(flag)}`" if default_text(flag) else ""
    return f"| `{_spelling(flag)}`{also}{' ⟳' if flag.live else ''} | {default} | {flag.help}{_choices(flag)} |"


def _choices(flag: Flag) -> str:
    return f"; one of {', '.join(flag.choices)}" if flag.choices else ""
