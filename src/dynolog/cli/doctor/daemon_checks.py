"""The daemon by its own word, over the RPC: works for one on another machine too."""

from collections.abc import Iterator

from dynolog import __version__
from dynolog.cli.doctor.evidence import Evidence
from dynolog.cli.doctor.finding import Finding, note, ok, wrong
from dynolog.cli.quantities import age, duration
from dynolog.model.status import CollectorState, CollectorStatus, ExporterState

# Collectors that are off unless asked for: whoever asked wants them.
_ASKED_FOR = ("perf", "gpu", "rdma", "tpu")
# Traces of several hosts start at one time by each host's clock; below this nobody sees the difference.
_CLOCK_APART_NS = 100_000_000
# Sentences of the daemon that another check says with more facts.
_SAID_ELSEWHERE = ("IPC monitor is off", "ipc:", "perf:", "pressure:")


def check_answer(evidence: Evidence) -> Iterator[Finding]:
    """Whether it answers, and is of our version."""
    status = evidence.status
    if status is None:
        yield wrong("daemon", evidence.unreachable)
        return
    yield ok(
        "daemon",
        f"dynolog {status.version} on {status.hostname}, pid {status.own.pid}, up {duration(status.own.uptime_s)}",
    )
    if status.version != __version__:
        yield note(
            "daemon",
            f"the daemon is dynolog {status.version} and this dyno is {__version__}",
            "restart the daemon after an upgrade: systemctl restart dynolog",
        )


def check_collectors(evidence: Evidence) -> Iterator[Finding]:
    """Each that gives nothing, with what it says itself; those whose device is simply not here in one sentence."""
    absent = []
    for collector in evidence.status.collectors if evidence.status else ():
        if collector.state in (CollectorState.FAILING, CollectorState.STALLED):
            yield wrong("collectors", f"{collector.name} is {collector.state}: {_reason(collector)}", _look(collector))
        elif collector.state is not CollectorState.UNAVAILABLE:
            yield ok("collectors", f"{collector.name} is {collector.state}")
        elif collector.name in _ASKED_FOR:
            yield wrong("collectors", f"{collector.name} gives nothing: {_reason(collector)}")
        elif collector.name != "pressure":  # which has a check of its own
            absent.append(f"{collector.name} ({_reason(collector)})")
    if absent:
        yield note("collectors", f"nothing to measure here for {'; '.join(absent)}")


def _reason(collector: CollectorStatus) -> str:
    return collector.error or "it gives no reason"


def _look(collector: CollectorStatus) -> str:
    if collector.state is CollectorState.STALLED:
        return "what it reads hangs (a driver, a dead mount): look at `dmesg`; it goes on by itself when that returns"
    return ""


def check_exporters(evidence: Evidence) -> Iterator[Finding]:
    """Each that delivers nothing now."""
    status = evidence.status
    if status is None:
        return
    if not status.exporters:
        yield note(
            "exporters",
            "no destination is on: what is measured can be seen by `dyno metrics` only",
            "--use_JSON logs it",
        )
    for exporter in status.exporters:
        where = f"{exporter.name} to {exporter.destination}"
        if exporter.state in (ExporterState.FAILING, ExporterState.RETRYING):
            lost = f"; {exporter.dropped:,} records are lost" if exporter.dropped else ""
            yield wrong("exporters", f"{where} is {exporter.state}: {exporter.error or 'it gives no reason'}{lost}")
        elif exporter.spool.startswith("off"):
            yield wrong("exporters", f"{where} keeps nothing on disk: its spool is {exporter.spool}")
        else:
            yield ok("exporters", f"{where} is {exporter.state}")


def check_missing(evidence: Evidence) -> Iterator[Finding]:
    """What else the daemon misses, and what went wrong in the last hour, in its own words."""
    status = evidence.status
    if status is None:
        return
    known = [collector.error for collector in status.collectors if collector.error]
    for sentence in status.missing:
        covered = sentence.startswith(_SAID_ELSEWHERE) or sentence.startswith("no destination is on")
        if (
            not covered
            and not any(error in sentence or sentence in error for error in known)
            and "max_dgram_qlen" not in sentence
        ):
            yield note("daemon", sentence)
    for trouble in status.recent:
        yield note("daemon", f"{age(trouble.wall_ns, status.wall_ns)}: {trouble.text}")


def check_clock_offset(evidence: Evidence) -> Iterator[Finding]:
    """The daemon's clock against this machine's."""
    offset_ns = evidence.clock_offset_ns
    if offset_ns is None or evidence.is_local:
        return
    shown = f"{offset_ns / 1e6:+.1f} ±{evidence.clock_uncertainty_ns / 1e6:.1f} ms"
    if abs(offset_ns) - evidence.clock_uncertainty_ns > _CLOCK_APART_NS:
        yield wrong(
            "clock",
            f"its clock is {shown} from this machine's: traces of several hosts do not lie over each other",
            "chronyc tracking (or timedatectl timesync-status) on both says which one is off",
        )
    else:
        yield ok("clock", f"its clock is {shown} from this machine's")
