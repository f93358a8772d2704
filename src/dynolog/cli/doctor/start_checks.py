"""Whether the daemon would start, and who starts it again."""

import os
import subprocess
from collections.abc import Iterator, Sequence

from dynolog.cli.doctor.evidence import Evidence
from dynolog.cli.doctor.finding import Finding, note, ok, wrong
from dynolog.cli.doctor.local_daemon import DEFAULT_FLAG_FILE
from dynolog.sources.own_program import module_command, module_environment

_UNIT = "dynolog.service"
_DEADLINE_S = 20.0


def check_service(evidence: Evidence) -> Iterator[Finding]:
    """Whether somebody starts it again when it ends."""
    if evidence.daemon is None or not _has_systemd(evidence):
        return
    unit = next((part for part in evidence.daemon.cgroup.split("/") if part.strip().endswith(".service")), "").strip()
    if unit.startswith("dynolog"):
        yield ok("service", f"the daemon runs as {unit}; its watchdog restarts it when it hangs")
    else:
        where = f"in {unit}" if unit else "by hand"
        yield note("service", f"the daemon was started {where}: nothing restarts it", "systemctl enable --now dynolog")


def check_unit(evidence: Evidence) -> Iterator[Finding]:
    """What systemd says of the unit when no daemon answers."""
    if evidence.status is None and _has_systemd(evidence):
        done = _run(
            ["systemctl", "show", _UNIT, "--property=LoadState,ActiveState,SubState,Result"], {**os.environ}, "/"
        )
        if done is not None and done.returncode == 0:
            yield from judge_unit(dict(line.partition("=")[::2] for line in done.stdout.splitlines()))


def judge_unit(properties: dict[str, str]) -> Iterator[Finding]:
    """From the properties that `systemctl show` prints; nothing when the unit is not installed."""
    active = properties.get("ActiveState", "")
    if properties.get("LoadState") != "loaded":
        return
    if active == "active":
        text = f"systemd holds {_UNIT} for active, and no daemon answers where it was asked"
        yield wrong("service", text, f"systemctl status {_UNIT} shows where it listens")
    elif active == "inactive":
        yield wrong("service", f"{_UNIT} is installed and not running", "systemctl enable --now dynolog")
    else:
        state = f"{active} ({properties.get('SubState', '')}, {properties.get('Result', '')})"
        yield wrong("service", f"{_UNIT} is {state}", f"journalctl -u {_UNIT} -n 20 says why")


def check_flags(evidence: Evidence) -> Iterator[Finding]:
    """`dynolog --check` with the flags that the daemon was started with, or with those that it would be: would it start?"""
    daemon = evidence.daemon
    if daemon is not None and evidence.own.uid in (0, daemon.privileges.uid):
        yield from _check(daemon.arguments, daemon.directory, "the daemon would not start again with its flags")
    elif (
        evidence.status is None and evidence.is_local and os.access(evidence.host.path(DEFAULT_FLAG_FILE[1:]), os.R_OK)
    ):
        yield from _check(
            (f"--flagfile={DEFAULT_FLAG_FILE}",), "/", f"a daemon would not start with {DEFAULT_FLAG_FILE}"
        )


def _check(arguments: Sequence[str], directory: str, lead: str) -> Iterator[Finding]:
    """Nothing is opened or written by that; relative paths are the daemon's."""
    done = _run([*module_command("dynolog.daemon.main"), *arguments, "--check"], module_environment(), directory)
    if done is None:
        yield note("flags", "the daemon's flags could not be checked: `dynolog --check` did not end")
    elif done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines() or ["no reason"]
        yield wrong("flags", f"{lead}: {said[-1]}", f"dynolog {' '.join(arguments)} --check")
    else:
        yield ok("flags", "the daemon's flags are right")


def _has_systemd(evidence: Evidence) -> bool:
    return evidence.is_local and os.path.isdir(evidence.host.path("run/systemd/system"))


def _run(command: list[str], environment: dict[str, str], directory: str) -> subprocess.CompletedProcess[str] | None:
    """None when it cannot be run, or does not end."""
    try:
        return subprocess.run(
            command,
            env=environment,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_DEADLINE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
