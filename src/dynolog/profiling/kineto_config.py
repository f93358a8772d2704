"""The config text that a trainer is given: read, judged, and completed before it is delivered."""

from enum import StrEnum
from typing import Self

import msgspec

from dynolog.profiling.kineto_keys import KEYS, Value, bad_config

# The reply is one datagram, and no honest request comes near this.
MAX_TEXT_BYTES = 16384
MAX_PATH_BYTES = 4095
MAX_NAME_BYTES = 255
DEFAULT_DURATION_MS = 500
DEFAULT_WARMUP_S = 5
_LARGEST_PID = "_4194304"


class Mode(StrEnum):
    """What ends the recording."""

    DURATION = "duration"
    ITERATIONS = "iterations"


class KinetoConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A config text that libkineto takes, and what it asks for.

    `start_time_ms` is Unix time, 0 = as soon as possible. `duration_ms` is meaningful in duration mode, `iterations` and
    `roundup` in iteration mode. `warmup_s` None means libkineto's default of 5 s. `activities` () means libkineto's default
    set. `memory_snapshot` asks for a pickle of the CUDA allocator *in place of* a timeline. `warnings` are sentences for
    the user about what will not be as it looks.
    """

    lines: tuple[str, ...]
    log_file: str
    mode: Mode
    start_time_ms: int = 0
    duration_ms: int = DEFAULT_DURATION_MS
    iterations: int = 0
    start_iteration: int = 0
    roundup: int = 0
    warmup_s: int | None = None
    activities: tuple[str, ...] = ()
    trace_id: str = ""
    group_id: str = ""
    memory_snapshot: bool = False
    warnings: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read KEY=VALUE lines. Raises RequestError("bad_config") with a sentence for anything libkineto would not carry out."""
        lines, values = _read_lines(text)
        path = _log_file(values)
        mode = _mode(values)
        seconds = _number(values, "ACTIVITIES_DURATION_SECS")
        duration_ms = seconds * 1000 if seconds else _number(values, "ACTIVITIES_DURATION_MSECS")
        memory = values.get("PROFILE_MEMORY") is True
        if memory and mode is Mode.ITERATIONS:
            raise bad_config("PROFILE_MEMORY works with a duration only: ask for a duration in place of iterations")
        warmup = values.get("ACTIVITIES_WARMUP_PERIOD_SECS")
        activities = values.get("ACTIVITY_TYPES", ())
        return cls(
            lines=lines,
            log_file=path,
            mode=mode,
            start_time_ms=_number(values, "PROFILE_START_TIME"),
            duration_ms=duration_ms or DEFAULT_DURATION_MS,
            iterations=_number(values, "ACTIVITIES_ITERATIONS"),
            start_iteration=_number(values, "PROFILE_START_ITERATION"),
            roundup=_number(values, "PROFILE_START_ITERATION_ROUNDUP"),
            warmup_s=warmup if isinstance(warmup, int) else None,
            activities=activities if isinstance(activities, tuple) else (),
            trace_id=str(values.get("REQUEST_TRACE_ID", "")),
            group_id=str(values.get("REQUEST_GROUP_TRACE_ID", "")),
            memory_snapshot=memory,
            warnings=tuple(_warnings(values, path, mode)),
        )

    @property
    def effective_warmup_s(self) -> int:
        """Seconds of warm-up, libkineto's default filled in."""
        return DEFAULT_WARMUP_S if self.warmup_s is None else self.warmup_s

    @property
    def one_file_for_all(self) -> bool:
        """Whether the name has no place for a pid, so that all processes of a host write the same file."""
        return ".json" not in self.log_file

    def render(self, trace_id: str) -> str:
        """The text to deliver: the lines as they came, and the trace id unless the request brought its own."""
        own = () if self.trace_id else (f"REQUEST_TRACE_ID={trace_id}",)
        return "\n".join((*self.lines, *own)) + "\n"

    def at(self, log_file: str) -> Self:
        """The same config with another file. Raises RequestError("bad_config")."""
        if not log_file.isprintable():  # a line break would add keys
            raise bad_config("a log file holds a control character, a line break or half a character")
        key = "ACTIVITIES_LOG_FILE"
        own = (f"{key}={log_file}" if line.partition("=")[0].strip("\t ") == key else line for line in self.lines)
        return self.parse("\n".join(own))

    def final_path(self, pid: int) -> str:
        """Where the finished trace of process `pid` (as it sees itself) will be, by libkineto's rule.

        libkineto puts `_<pid>` before the first `.pt.trace.json`, else before the first `.json` of the path; parse() makes
        sure that this is in the last component. Without either the name stays as it is.
        """
        return self._with_pid(self.log_file, pid)

    def temporary_path(self, pid: int) -> str:
        """The name that the trace has while it is written."""
        return self.final_path(pid) + ".tmp"

    def fallback_paths(self, pid: int) -> tuple[str, ...]:
        """Other final names to look at: libkineto's own choice when it does not allow the one asked for, and the snapshot's."""
        names: tuple[str, ...] = (f"/tmp/libkineto_activities_{pid}.json",)  # noqa: S108 - libkineto's name, not ours to choose
        if self.memory_snapshot:
            names += (f"/tmp/memory_snapshot_{pid}.pickle",)  # noqa: S108
        return tuple(name for name in names if name != self.final_path(pid))

    @staticmethod
    def _with_pid(path: str, pid: int) -> str:
        for ending in (".pt.trace.json", ".json"):
            if ending in path:
                return path.replace(ending, f"_{pid}{ending}", 1)
        return path


def _read_lines(text: str) -> tuple[tuple[str, ...], dict[str, Value]]:
    """The lines that say something, and their values."""
    if len(text.encode("utf-8", "replace")) > MAX_TEXT_BYTES:
        raise bad_config(f"the config text is longer than {MAX_TEXT_BYTES} bytes")
    lines: list[str] = []
    values: dict[str, Value] = {}
    for line in text.split("\n"):
        if not line.strip("\t ") or line.lstrip("\t ").startswith("#"):
            continue
        key, value = _read_line(line)
        if key in values:
            raise bad_config(f"{key} is given twice: give it once")
        values[key] = KEYS[key](key, value)
        lines.append(line)
    if not lines:
        raise bad_config("the config text is empty: give at least ACTIVITIES_LOG_FILE and ACTIVITIES_DURATION_MSECS")
    return tuple(lines), values


def _read_line(line: str) -> tuple[str, str]:
    key, equals, value = line.partition("=")
    key, value = key.strip("\t "), value.strip("\t ")
    if not equals:
        raise bad_config(f"{line[:60]!r} is not of the form KEY=VALUE")
    if key not in KEYS:
        import difflib  # noqa: PLC0415 - only for the hint

        near = difflib.get_close_matches(key[:60], KEYS, 1)
        hint = f": did you mean {near[0]}?" if near else ""
        raise bad_config(f"libkineto has no key {key[:60]!r}{hint}")
    if not value.isprintable():
        raise bad_config(f"the value of {key} holds a control character, a line break or half a character")
    # libkineto takes '#' for the start of a comment anywhere in a line, and refuses a line with two '='.
    for character, why in (("#", "cuts a line at it"), ("=", "refuses a second one in a line")):
        if character in value:
            raise bad_config(f"the value of {key} holds {character!r}, and libkineto {why}: use another name")
    return key, value


def _log_file(values: dict[str, Value]) -> str:
    if values.get("ACTIVITIES_ENABLED") is False:
        raise bad_config("ACTIVITIES_ENABLED=false asks for no trace: leave it out")
    path = values.get("ACTIVITIES_LOG_FILE")
    if not isinstance(path, str):
        raise bad_config("ACTIVITIES_LOG_FILE is missing: say where the trace shall be written")
    if not path.startswith("/"):
        raise bad_config(
            f"ACTIVITIES_LOG_FILE={path} is not an absolute path: the trainer has another working directory"
        )
    directory, _, name = path.rpartition("/")
    if ".." in path.split("/"):
        raise bad_config(f"ACTIVITIES_LOG_FILE={path} holds '..': give the path without it")
    if name in ("", "."):
        raise bad_config(
            f"ACTIVITIES_LOG_FILE={path} names a directory: add a file name, like {path.rstrip('/.')}/trace.json"
        )
    if ".json" in directory:
        raise bad_config(
            f"ACTIVITIES_LOG_FILE={path}: libkineto would put the pid into the directory's name, at its '.json': use another directory"
        )
    # The pid and the ending of the temporary file come on top.
    extra = len(_LARGEST_PID) + len(".tmp")
    if len(name.encode()) + extra > MAX_NAME_BYTES or len(path.encode()) + extra > MAX_PATH_BYTES:
        raise bad_config(f"ACTIVITIES_LOG_FILE is too long for a file system ({len(path.encode())} bytes)")
    return path


def _mode(values: dict[str, Value]) -> Mode:
    durations = [key for key in ("ACTIVITIES_DURATION_MSECS", "ACTIVITIES_DURATION_SECS") if key in values]
    if len(durations) > 1:
        raise bad_config("two durations are given: give ACTIVITIES_DURATION_MSECS alone")
    starts = [key for key in ("PROFILE_START_ITERATION", "PROFILE_START_ITERATION_ROUNDUP") if key in values]
    counts = "ACTIVITIES_ITERATIONS" in values
    if durations and (counts or starts):
        other = "ACTIVITIES_ITERATIONS" if counts else starts[0]
        raise bad_config(
            f"both {durations[0]} and {other} are given: a trace ends after a time or after iterations, not both"
        )
    if counts and not starts:
        raise bad_config(
            "ACTIVITIES_ITERATIONS without PROFILE_START_ITERATION is ignored by libkineto: add PROFILE_START_ITERATION=0"
            " and PROFILE_START_ITERATION_ROUNDUP"
        )
    if starts and not counts:
        raise bad_config(f"{starts[0]} without ACTIVITIES_ITERATIONS is ignored by libkineto: say how many iterations")
    return Mode.ITERATIONS if counts else Mode.DURATION


def _number(values: dict[str, Value], key: str) -> int:
    value = values.get(key, 0)
    assert isinstance(value, int), key
    return value


def _warnings(values: dict[str, Value], path: str, mode: Mode) -> list[str]:
    name = path.rpartition("/")[2]
    said: list[str] = []
    if ".json" not in name:
        said.append(
            f"{name} does not end in .json: libkineto puts no pid into the name, so all processes write the same file"
            " and the last one wins"
        )
    elif not name.endswith(".json"):
        said.append(f"{name} does not end in .json: libkineto writes plain JSON text whatever the name says")
    if mode is Mode.DURATION and not {"ACTIVITIES_DURATION_MSECS", "ACTIVITIES_DURATION_SECS"} & values.keys():
        said.append(f"no duration is given: libkineto records {DEFAULT_DURATION_MS} ms")
    if mode is Mode.ITERATIONS and _number(values, "PROFILE_START_TIME"):
        said.append("PROFILE_START_TIME is ignored by libkineto when iterations are counted")
    if values.get("PROFILE_MEMORY") is True:
        said.append(
            "PROFILE_MEMORY asks for a snapshot of the CUDA allocator (/tmp/memory_snapshot_<pid>.pickle): a PyTorch built for the"
            " CPU cannot write it and leaves an empty .json.tmp"
        )
        if "PROFILE_MEMORY_DURATION_MSECS" not in values:
            said.append("PROFILE_MEMORY without PROFILE_MEMORY_DURATION_MSECS has no effect: say for how long")
    elif "PROFILE_MEMORY_DURATION_MSECS" in values:
        said.append("PROFILE_MEMORY_DURATION_MSECS has no effect without PROFILE_MEMORY=true")
    return said + _without_effect(values)


def _without_effect(values: dict[str, Value]) -> list[str]:
    """Options that PyTorch takes and that leave no trace in the file; seen on 2.13."""
    said: list[str] = []
    if values.get("PROFILE_PROFILE_MEMORY") is True and values.get("PROFILE_MEMORY") is not True:
        said.append(
            "PROFILE_PROFILE_MEMORY: PyTorch 2.13 takes it and records no memory event on demand; a duration in place of iterations"
            " asks for a snapshot of the CUDA allocator"
        )
    if values.get("PROFILE_WITH_FLOPS") is True:
        said.append("PROFILE_WITH_FLOPS: PyTorch 2.13 counts flops and writes none of them to the file")
    if values.get("PROFILE_WITH_MODULES") is True:
        said.append("PROFILE_WITH_MODULES names the modules of TorchScript models only, not those of eager ones")
    activities = values.get("ACTIVITY_TYPES", ())
    if values.get("PROFILE_WITH_STACK") is True and activities and "python_function" not in str(activities):
        said.append("PROFILE_WITH_STACK has no effect without python_function among the ACTIVITY_TYPES")
    return said
