"""Trainers as a table, and what to say when there is none."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from dynolog.cli.quantities import duration
from dynolog.cli.table import table
from dynolog.model.trainer import TrainerInfo

TRAINER_HEADER = ("PID", "HOST PID", "JOB", "RANK", "GPU", "STATE", "AGE", "LAST POLL", "EVERY", "USER", "COMMAND")
_RIGHT = (0, 1, 3, 6, 7, 8)
_LAUNCHER = "(launcher) "
# Columns that may be left out, and what in them tells nothing: the host's pid where it is the process's own, no job, rank or GPU.
_SPARE: Mapping[int, Callable[[Sequence[str]], Sequence[str]]] = MappingProxyType(
    {1: lambda row: (row[0],), 2: lambda _: ("-",), 3: lambda _: ("-",), 4: lambda _: ("-",)}
)


def trainers_table(trainers: Iterable[TrainerInfo], columns: int | None) -> str:
    """One line a trainer, by job, rank and pid; `-` where something is not known.

    A terminal has no room for columns that tell nothing here, and for the folder of every python.
    """
    users: dict[int, str] = {}
    ordered = sorted(trainers, key=lambda trainer: (trainer.job, trainer.rank or 0, trainer.host_pid, trainer.pid))
    rows = [trainer_row(one, users) for one in ordered]
    if columns is None or not rows:
        return table(TRAINER_HEADER, rows, right=_RIGHT, columns=columns)
    kept = [
        i for i in range(len(TRAINER_HEADER)) if i not in _SPARE or any(row[i] not in _SPARE[i](row) for row in rows)
    ]
    short = [(*row[:-1], _without_folder(row[-1])) for row in rows]
    return table(
        [TRAINER_HEADER[i] for i in kept],
        [[row[i] for i in kept] for row in short],
        right=[place for place, i in enumerate(kept) if i in _RIGHT],
        columns=columns,
    )


def _without_folder(command: str) -> str:
    """`(launcher) /opt/venv/bin/python -m x` → `(launcher) python -m x`."""
    mark, program = (_LAUNCHER, command.removeprefix(_LAUNCHER)) if command.startswith(_LAUNCHER) else ("", command)
    first, blank, rest = program.partition(" ")
    return f"{mark}{os.path.basename(first) or first}{blank}{rest}"


def trainer_row(trainer: TrainerInfo, users: dict[int, str]) -> tuple[str, ...]:
    """The cells below TRAINER_HEADER; `users` remembers the names of uids."""
    return (
        str(trainer.pid),
        "unverified" if trainer.unverified or not trainer.host_pid else str(trainer.host_pid),
        trainer.job or (str(trainer.job_id) if trainer.job_id else "-"),
        _rank(trainer),
        _gpus(trainer.gpus),
        trainer.state,
        duration(trainer.age_s),
        duration(trainer.last_poll_age_s),
        "-" if trainer.poll_interval_s is None else duration(trainer.poll_interval_s),
        _user(trainer.uid, users),
        (_LAUNCHER if trainer.launcher else "") + (trainer.command or trainer.name or "-"),
    )


def _rank(trainer: TrainerInfo) -> str:
    if trainer.rank is None:
        return "-"
    return str(trainer.rank) if trainer.world_size is None else f"{trainer.rank}/{trainer.world_size}"


def _gpus(held: Sequence[str]) -> str:
    """`0`, `0,3`, and `0-7` for more than two in a row."""
    if not held:
        return "-"
    numbers = [int(gpu) for gpu in held if gpu.isdecimal()]
    if len(numbers) == len(held) > 2 and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
        return f"{numbers[0]}-{numbers[-1]}"
    return ",".join(held)


def _user(uid: int, users: dict[int, str]) -> str:
    """The name that this host has for the uid, else the number. A directory service is asked once for each."""
    if uid not in users:
        import pwd  # noqa: PLC0415 - only to show trainers

        try:
            users[uid] = pwd.getpwuid(uid).pw_name
        except KeyError:
            users[uid] = str(uid)
    return users[uid]


def no_trainers(*, ipc_enabled: bool) -> str:
    """Why there is none, and how to get one."""
    if not ipc_enabled:
        return "The daemon's IPC is off: no trainer can register. Start it with `dynolog --enable_ipc_monitor`."
    return (
        "No trainer is registered now. A PyTorch (2.0 or later) process registers when it was started with KINETO_USE_DAEMON=1:\n"
        "    KINETO_USE_DAEMON=1 python train.py\n"
        "within 5 s of that or of this daemon's start. One that runs without the variable must be started again with it.\n"
        "In a container with its own network it needs --ipc_namespaces here, or a shared KINETO_IPC_SOCKET_DIR.\n"
        "`dyno doctor` looks at each PyTorch process of this machine and says what keeps it from registering."
    )
