"""The subcommands that ask each of many hosts one thing and print a table with a host column."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from dynolog.cli.dcgm import NOT_DONE
from dynolog.cli.exit_codes import DONE, FAILED, USAGE, CommandError
from dynolog.cli.exporters_report import EXPORTERS_HEADER, exporter_remarks, exporter_row
from dynolog.cli.fleet.by_reason import lines_by_reason
from dynolog.cli.fleet.many_hosts import Fleet, exit_code_of, names_of, print_answers, print_failures
from dynolog.cli.fleet.plan_report import clocks_off
from dynolog.cli.gpus.table import GPUS_HEADER, gpu_rows, no_gpus, source_lines
from dynolog.cli.gpus.table import RIGHT as GPUS_RIGHT
from dynolog.cli.metrics import no_values
from dynolog.cli.metrics_table import VALUES_HEADER, chosen, value_rows
from dynolog.cli.parser import Invocation
from dynolog.cli.printable import printable
from dynolog.cli.quantities import count, duration, size
from dynolog.cli.table import table, terminal_columns
from dynolog.cli.trainers_table import TRAINER_HEADER, trainer_row
from dynolog.fleet.clocks import clock_offset
from dynolog.fleet.fan_out import HostAnswer, Outcome, ask_all
from dynolog.fleet.host_fold import folded
from dynolog.model.status import CollectorState, DaemonStatus, ExporterState
from dynolog.rpc.messages import (
    BoolReply,
    DcgmProfPause,
    DcgmProfResume,
    GetGpus,
    GetMetrics,
    GetStatus,
    GetVersion,
    GpusReply,
    ListProcesses,
    MetricsReply,
    ProcessesReply,
    Request,
    StatusReply,
    VersionReply,
)

T = TypeVar("T")
Row = tuple[str, ...]
# Without it no process can register.
_NO_IPC = "the daemon runs without --enable_ipc_monitor: nothing can be traced there"
_ORIGINAL = "it is the original C++ dynolog, which tells nothing about that"


class _Replies(msgspec.Struct, frozen=True):
    """Answers and what is in them, beside each other; None where there is none."""

    names: list[str]
    answers: list[HostAnswer]
    replies: list[Any]

    def given(self) -> Iterable[tuple[str, Any]]:
        return ((name, reply) for name, reply in zip(self.names, self.replies, strict=True) if reply is not None)


def _ask(fleet: Fleet, request: Request, reply_type: type[T], *, ours: bool = False) -> _Replies:
    """Everybody's reply. What is not understood counts as no answer; with `ours`, silence is the original daemon's."""
    answers, replies = [], []
    for answer in ask_all(fleet.hosts.targets, request, fleet.options):
        reply = answer.decode(reply_type)
        kept = answer
        if answer.answered and reply is None:
            kept = msgspec.structs.replace(
                answer,
                outcome=Outcome.NOT_UNDERSTOOD,
                code=str(Outcome.NOT_UNDERSTOOD),
                error="its reply is not understood: is it a dynolog of another version?",
            )
        elif ours and answer.outcome is Outcome.NO_ANSWER:
            kept = msgspec.structs.replace(answer, error=f"{answer.error}, which tells nothing about that")
        answers.append(kept)
        replies.append(reply)
    return _Replies(names_of(answers), answers, replies)


def _print(
    arguments: Invocation, found: _Replies, header: Sequence[str], rows: Iterable[Row], right: Iterable[int] = ()
) -> int:
    """The table, or the object; then who gave no answer."""
    if arguments.json:
        print_answers(found.answers, found.replies)
        arguments.printed = True
    elif text := table(("HOST", *header), rows, right=[place + 1 for place in right], columns=terminal_columns()):
        print(text)
    failures = [
        (name, answer.error) for name, answer in zip(found.names, found.answers, strict=True) if not answer.answered
    ]
    print_failures(failures, len(found.answers))
    return exit_code_of(found.answers)


def _rows(found: _Replies, rows_of: Callable[[Any], Iterable[Row]]) -> list[Row]:
    return [(name, *row) for name, reply in found.given() for row in rows_of(reply)]


def status(arguments: Invocation, fleet: Fleet) -> int:
    """`dyno status`: whether each daemon runs, its clock and how long it took; with --verbose how it fares."""
    request = GetStatus(verbose=True) if arguments.verbose else GetStatus(time=True)
    found = _ask(fleet, request, StatusReply)
    rows = []
    for name, answer, reply in zip(found.names, found.answers, found.replies, strict=True):
        if reply is None:
            rows.append((name, str(answer.outcome), *["-"] * (6 if arguments.verbose else 2)))
        elif arguments.verbose:
            rows.append((name, _state(reply), *_daemon_cells(reply.daemon)))
        else:
            offset = clock_offset(answer)
            rows.append((name, _state(reply), f"{answer.elapsed_s * 1e3:.1f} ms", str(offset) if offset else "-"))
    if arguments.verbose:
        header: Row = ("STATE", "VERSION", "UP", "CPU 1 min", "MEMORY", "CAPTURES", "REMARKS")
        code = _print(arguments, found, header, rows, right=(2, 3, 4, 5))
    else:
        code = _print(arguments, found, ("STATE", "ROUND TRIP", "CLOCK"), rows, right=(1, 2))
    if not arguments.json:
        for line in _status_lines(found):
            print(printable(line))
    return code


def _status_lines(found: _Replies) -> Iterator[str]:
    """What nobody finds in a long table: whose clock is off, whose GPUs are not read, and how many are well."""
    offsets = [(name, clock_offset(answer)) for name, answer in zip(found.names, found.answers, strict=True)]
    if off := [(name, offset) for name, offset in offsets if offset is not None and offset.is_off]:
        yield f"warning: {clocks_off(off)}"
    failing = [name for name, reply in found.given() if not reply.status]
    if failing:
        yield f"warning: the GPU source fails on {folded(failing)}"
    well = sum(1 for _ in found.given()) - len(failing)
    yield f"{well:,} of {count(len(found.answers), 'host')} ok"


def _state(reply: StatusReply) -> str:
    return "ok" if reply.status else "GPU source fails"


def _daemon_cells(daemon: DaemonStatus | None) -> Row:
    if daemon is None:
        return ("original", "-", "-", "-", "-", "tells no more of itself")
    bad = [one.name for one in daemon.collectors if one.state in (CollectorState.FAILING, CollectorState.STALLED)]
    bad += [one.name for one in daemon.exporters if one.state in (ExporterState.FAILING, ExporterState.RETRYING)]
    own = daemon.own
    return (
        daemon.version,
        duration(own.uptime_s),
        f"{own.cpu_pct_1m:.2f} %",
        size(own.rss_bytes),
        str(daemon.active_captures),
        f"in trouble: {', '.join(bad)}" if bad else "",
    )


def version(arguments: Invocation, fleet: Fleet) -> int:
    """`dyno version`, and which versions are mixed."""
    found = _ask(fleet, GetVersion(), VersionReply)
    code = _print(arguments, found, ("VERSION",), _rows(found, lambda reply: [(reply.version,)]))
    versions = Counter(reply.version for _, reply in found.given())
    if len(versions) > 1 and not arguments.json:
        print(
            printable("Versions: " + ", ".join(f"{name} on {count(n, 'host')}" for name, n in versions.most_common()))
        )
    return code


def ps(arguments: Invocation, fleet: Fleet) -> int:
    """`dyno ps`: the trainers of all hosts, by rank where they have one."""
    number, text = arguments.job_id
    job = text or (str(number) if number else "") or fleet.hosts.job
    request = ListProcesses(job=job, pids=[pid for pid in arguments.pids if pid])
    found = _ask(fleet, request, ProcessesReply, ours=True)
    users: dict[int, str] = {}
    trainers = [(name, trainer) for name, reply in found.given() for trainer in reply.trainers]
    trainers.sort(key=lambda pair: (pair[1].job, pair[1].rank is None, pair[1].rank or 0))
    rows = [(name, *trainer_row(trainer, users)) for name, trainer in trainers]
    code = _print(arguments, found, TRAINER_HEADER, rows, right=(0, 1, 3, 6, 7, 8))
    if not arguments.json:
        without = [(name, _NO_IPC) for name, reply in found.given() if not reply.ipc_enabled]
        print("".join(f"{printable(line)}\n" for line in lines_by_reason(without)), end="")
    if not trainers and not arguments.json:
        print("No trainer" + (f" of job {job}" if job else "") + " is registered on the hosts that answered.")
    return code or (DONE if trainers else FAILED)


def gpus(arguments: Invocation, fleet: Fleet) -> int:
    """`dyno gpus` of all hosts: the devices in one table, then the hosts whose GPUs are not read or paused."""
    found = _ask(fleet, GetGpus(), GpusReply, ours=True)
    rows = _rows(found, gpu_rows)
    code = _print(arguments, found, GPUS_HEADER, rows, right=GPUS_RIGHT)
    if not arguments.json:
        said = [
            (name, line)
            for name, reply in found.given()
            for line in (source_lines(reply.gpu, reply.wall_ns)[1:] if reply.devices else [no_gpus(reply.gpu)])
        ]
        for line in lines_by_reason(said):
            print(printable(line))
    return code or (DONE if rows else FAILED)


def metrics(arguments: Invocation, fleet: Fleet) -> int:
    """`dyno metrics`: the latest values of all hosts."""
    if arguments.list:
        raise CommandError("--list prints one daemon's catalogue: name it with --hostname", USAGE)
    found = _ask(fleet, GetMetrics(source=arguments.source), MetricsReply, ours=True)
    replies = [chosen(reply, arguments.filter) if reply else None for reply in found.replies]
    found = _Replies(found.names, found.answers, replies)
    rows = _rows(found, value_rows)
    header: Row = VALUES_HEADER
    if not any(row[-1] for row in rows):
        header, rows = header[:-1], [row[:-1] for row in rows]
    code = _print(arguments, found, header, rows, right=(1, 4))
    if not rows and not code:
        raise CommandError(no_values(arguments))
    return code


def exporters(arguments: Invocation, fleet: Fleet) -> int:
    """`dyno exporters` of all hosts."""
    found = _ask(fleet, GetStatus(verbose=True), StatusReply)
    rows, remarks, troubled = [], [], False
    for name, reply in found.given():
        daemon = reply.daemon
        if daemon is None or not daemon.exporters:
            remarks.append((name, _ORIGINAL if daemon is None else "no exporter is on"))
            troubled = True
            continue
        rows += [(name, *exporter_row(exporter, daemon.wall_ns)) for exporter in daemon.exporters]
        remarks += [(name, f"{one.name}: {said}") for one in daemon.exporters for said in exporter_remarks(one)]
        troubled |= any(one.state in (ExporterState.RETRYING, ExporterState.FAILING) for one in daemon.exporters)
    code = _print(arguments, found, EXPORTERS_HEADER, rows, right=(4, 5, 6, 7))
    if remarks and not arguments.json:
        print("\n".join(map(printable, lines_by_reason(remarks))))
    return code or (FAILED if troubled else DONE)


def dcgm_pause(arguments: Invocation, fleet: Fleet) -> int:
    """`dyno dcgm-pause` on all hosts."""
    return _dcgm(arguments, fleet, DcgmProfPause(duration_s=arguments.duration_s))


def dcgm_resume(arguments: Invocation, fleet: Fleet) -> int:
    """`dyno dcgm-resume` on all hosts."""
    return _dcgm(arguments, fleet, DcgmProfResume())


def _dcgm(arguments: Invocation, fleet: Fleet, request: DcgmProfPause | DcgmProfResume) -> int:
    found = _ask(fleet, request, BoolReply)
    code = _print(arguments, found, ("DONE",), _rows(found, lambda reply: [("yes" if reply.status else "no",)]))
    undone = [name for name, reply in found.given() if not reply.status]
    if undone and not arguments.json:
        print(printable(f"Nothing was done on {folded(undone)}: {NOT_DONE}"))
    return code or (FAILED if undone else DONE)
