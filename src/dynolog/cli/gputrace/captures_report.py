"""What became of captures, in words: one by one and in sum."""

from collections import Counter
from collections.abc import Iterable, Sequence

from dynolog.cli.exit_codes import DONE, FAILED
from dynolog.cli.printable import printable
from dynolog.cli.quantities import count, duration, microseconds, processes, size
from dynolog.model.capture import CaptureInfo, CaptureState

_LONGEST = 3


def is_empty(capture: CaptureInfo) -> bool:
    """Whether a file was written with nothing in it: a launcher's, or one whose recording missed all work."""
    if capture.state is not CaptureState.WRITTEN:
        return False
    file = capture.file
    return file is None or (file.events == 0 and not file.memory_snapshot) or bool(capture.reason)


def succeeded(capture: CaptureInfo) -> bool:
    """Whether there is a checked file with events in it."""
    return capture.state is CaptureState.WRITTEN and not is_empty(capture)


def exit_code(captures: Iterable[CaptureInfo]) -> int:
    """1 when a capture has ended without a good file."""
    return FAILED if any(capture.state.is_final and not succeeded(capture) for capture in captures) else DONE


def who(pid: int, host_pid: int, rank: int | None = None) -> str:
    """`pid 2869, rank 0`; with the host's pid where the process says another."""
    words = [f"pid {pid}"]
    if host_pid not in (0, pid):
        words.append(f"host pid {host_pid}")
    if rank is not None:
        words.append(f"rank {rank}")
    return ", ".join(words)


def whose(capture: CaptureInfo) -> str:
    """The process of a capture."""
    return who(capture.pid, capture.host_pid, capture.rank)


def elapsed_s(capture: CaptureInfo, now_wall_ns: int) -> float | None:
    """Time from the request to now, or to the end; by the daemon's clock. None when its history is not known."""
    if not capture.history:
        return None
    end = capture.history[-1].wall_ns if capture.state.is_final else now_wall_ns
    return max(end - capture.history[0].wall_ns, 0) / 1e9


def capture_lines(capture: CaptureInfo) -> list[str]:
    """One capture: the file and what is in it, or what it waits for, or why there is none."""
    match capture.state:
        case CaptureState.WRITTEN:
            lines = _written_lines(capture)
        case CaptureState.FAILED | CaptureState.EXPIRED:
            lines = [f"{capture.path} ({whose(capture)}): {capture.state}: {capture.reason or 'no reason is known'}"]
        case _:
            fact = f": {capture.history[-1].fact}" if capture.history else ""
            lines = [f"{capture.path} ({whose(capture)}): {capture.state}{fact}"]
    return [printable(line) for line in lines]


def _written_lines(capture: CaptureInfo) -> list[str]:
    file = capture.file
    if file is None:
        return [f"{capture.path} ({whose(capture)}): written, not checked: {capture.reason or 'no reason is known'}"]
    if file.memory_snapshot:
        facts = f"{size(file.size_bytes)}, a memory snapshot (pickle; not read further: unpickle only what you trust)"
    else:
        facts = f"{size(file.size_bytes)}, {count(file.events, 'event')}"
    if is_empty(capture):
        reason = capture.reason or "nothing was recorded"
        lines = [f"{capture.path} ({whose(capture)}): empty: {reason} ({facts})"]
    else:
        span = f" over {microseconds(file.duration_us)}" if file.duration_us else ""
        lines = [f"{capture.path} ({whose(capture)}): {facts}{span}"]
    if file.longest:
        named = (f"{operation.name} {microseconds(operation.duration_us)}" for operation in file.longest[:_LONGEST])
        lines.append(f"    longest: {', '.join(named)}")
    if capture.host_path not in ("", capture.path):
        lines.append(
            f"    that path is the process's own: its host has the file at {capture.host_path} (--fetch DIR brings it here)"
        )
    lines += (f"    warning: {warning}" for warning in file.warnings)
    return lines


def summary(captures: Sequence[CaptureInfo]) -> str:
    """`3 processes: 2 written, 1 failed, in 7.2 s`."""
    words = Counter("empty" if is_empty(capture) else str(capture.state) for capture in captures)
    order = ("written", "recording", "delivered", "pending", "empty", "failed", "expired")
    parts = ", ".join(f"{words[word]:,} {word}" for word in order if words[word])
    known = [capture for capture in captures if capture.history]
    if not known or not all(capture.state.is_final for capture in captures):
        return f"{processes(len(captures))}: {parts}"
    first = min(capture.history[0].wall_ns for capture in known)
    last = max(capture.history[-1].wall_ns for capture in known)
    return f"{processes(len(captures))}: {parts}, in {duration((last - first) / 1e9)}"
