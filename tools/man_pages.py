"""dyno(1) and dynolog(8) from the same declarations as `--help`."""

import datetime
import gzip
import os
import re
import subprocess
import sys
from pathlib import Path

from dynolog.daemon import exit_codes
from dynolog.daemon.flags import declared_flags
from dynolog.daemon.help_text import SECTIONS, SPECIAL, default_text
from dynolog.model.flag import Flag

_FILES = (
    ("/etc/dynolog.gflags", "flags of the service, one a line"),
    ("/run/dynolog/dynolog.sock", "where dyno finds the daemon of root without a port"),
    ("/var/log/dynolog/dynolog.log", "the log of the service"),
)


def write_man_pages(folder: Path, version: str, epoch_s: int) -> None:
    """All pages, compressed, in `folder`/man1 and man8."""
    date = datetime.datetime.fromtimestamp(epoch_s, datetime.UTC).strftime("%Y-%m-%d")
    _write(folder / "man8" / "dynolog.8.gz", daemon_page(version, date))
    _write(folder / "man1" / "dyno.1.gz", command_page(version, epoch_s))
    for name in ("dyno-run", "unitrace"):
        _write(folder / "man1" / f"{name}.1.gz", simple_page(name, version, date))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def _roff(text: str) -> str:
    """Text as roff takes it: backslashes and dashes are themselves, no line looks like a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "")
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in text.split("\n"))


def _head(name: str, section: int, version: str, date: str, what: str) -> list[str]:
    return [
        f'.TH {name.upper()} {section} {date} "dynolog {version}" "dynolog"',
        ".SH NAME",
        f"{_roff(name)} \\- {_roff(what)}",
    ]


def _flag_lines(flag: Flag) -> list[str]:
    spelling = f"--[no]{flag.name}" if isinstance(flag.default, bool) else f"--{flag.name}=VALUE"
    default = default_text(flag)
    return [".TP", f".B {_roff(spelling)}", _roff(flag.help + (f" (default: {default})" if default else ""))]


def daemon_page(version: str, date: str) -> str:
    """dynolog(8)."""
    lines = _head("dynolog", 8, version, date, "monitoring and on-demand profiling daemon")
    # Not adjusted: a default may be a list that is longer than a line, and no line of text is stretched for it.
    lines += [".ad l", ".SH SYNOPSIS", ".B dynolog", r"[\fIFLAG\fR]...", ".SH DESCRIPTION"]
    lines += [
        _roff(
            "Reads metrics of the machine, hands them to the destinations that the flags name, and makes PyTorch processes write "
            "traces when dyno(1) asks. A flag is --name=value; of those that are on or off, --name or --noname."
        )
    ]
    lines += [".SH OPTIONS"]
    for spelling, what in SPECIAL:
        lines += [".TP", f".B {_roff(spelling)}", _roff(what)]
    flags = declared_flags()
    for section, title in SECTIONS.items():
        lines += [f".SS {_roff(title)}"]
        for flag in flags:
            if flag.section == section:
                lines += _flag_lines(flag)
    lines += [
        ".SH SIGNALS",
        ".TP",
        ".B SIGHUP",
        _roff(
            "opens the log anew and reads the flags again: intervals, collectors, filters and exporters change while it runs, the rest "
            "at the next start; the log says which. `dyno reload` does the same, and prints it"
        ),
    ]
    lines += [".TP", ".B SIGTERM, SIGINT", "stops within two seconds"]
    lines += [".SH EXIT STATUS"]
    for code, meaning in exit_codes.MEANINGS.items():
        lines += [".TP", f".B {code}", _roff(meaning)]
    lines += [".SH FILES"]
    for path, what in _FILES:
        lines += [".TP", f".I {_roff(path)}", _roff(what)]
    return "\n".join([*lines, ".SH SEE ALSO", ".BR dyno (1)", ""])


def command_page(version: str, epoch_s: int) -> str:
    """dyno(1), by argparse-manpage from the parser itself."""
    command = [str(Path(sys.executable).with_name("argparse-manpage")), "--module", "tools.man_pages"]
    command += ["--function", "parser_of_dyno", "--project-name", "dynolog", "--prog", "dyno", "--version", version]
    command += ["--description", "talk to dynolog daemons, and trace PyTorch processes", "--manual-title", "dynolog"]
    root = Path(__file__).resolve().parents[1]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch_s), "COLUMNS": "76", "PYTHONPATH": str(root)}
    page = subprocess.run(command, check=True, capture_output=True, text=True, env=environment, cwd=root).stdout
    # It leaves the lines of a usage to be filled, which makes one paragraph of them, and gives the list of subcommands no name on its line.
    page = re.sub(r"^usage: (.+?)\n\n", r".nf\nusage: \1\n.fi\n.PP\n", page, flags=re.MULTILINE | re.DOTALL)
    return page.replace("\n.SH\nSUBCOMMANDS\n", "\n.SH SUBCOMMANDS\n")


def parser_of_dyno() -> object:
    """The parser of `dyno` with all subcommands."""
    from dynolog.cli.parser import build_parser  # noqa: PLC0415 - asked for by argparse-manpage only
    from dynolog.cli.registry import COMMANDS  # noqa: PLC0415

    return build_parser(COMMANDS)


def simple_page(name: str, version: str, date: str) -> str:
    """A page that shows the command's own --help."""
    module = {"dyno-run": "dynolog.cli.dyno_run.command", "unitrace": "dynolog.cli.unitrace"}[name]
    environment = {**os.environ, "COLUMNS": "100"}
    command = [sys.executable, "-P", "-m", module, "--help"]
    text = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    what = {"dyno-run": "run a command with a dynolog daemon beside it", "unitrace": "trace a SLURM job"}[name]
    lines = _head(name, 1, version, date, what)
    return "\n".join(
        [*lines, ".SH DESCRIPTION", ".nf", _roff(text.rstrip()), ".fi", ".SH SEE ALSO", ".BR dyno (1)", ""]
    )
