"""`--slurm-job`: the hosts of a SLURM job, asked of `squeue` or `scontrol`, whichever is on PATH and answers."""

import re
from collections.abc import Iterable, Sequence

import msgspec

from dynolog.fleet.hostlist import expand, split_list
from dynolog.fleet.slurm_jobs import SlurmJob, parse_scontrol, parse_squeue
from dynolog.fleet.targets import FleetTarget, HostQuery, HostsError, HostSet
from dynolog.fleet.tool import ToolOutput, on_path, run_tool
from dynolog.model.errors import RequestError
from dynolog.profiling.job import JobSelector, parse_job

_COMPONENT = re.compile(r"(\d{1,20})\+(\d{1,10})", re.ASCII)
_UNKNOWN = "Invalid job id"
_MAX_ELEMENTS = 4_000_000  # MaxArraySize of SLURM is at most this


class SlurmJobId(msgspec.Struct, frozen=True, kw_only=True):
    """What was typed: a job, elements of an array, or the component `component` of a heterogeneous job."""

    text: str
    selector: JobSelector
    component: int | None = None

    @property
    def base(self) -> str:
        """The number that SLURM's tools are asked with."""
        return self.selector.base

    def means(self, job: SlurmJob) -> bool:
        """Whether a record is of this job."""
        if self.component is not None:
            return str(job.het_id or "") == self.base and job.het_offset == self.component
        if self.selector.tasks:
            return str(job.array_id) == self.base and any(
                _overlap(mine, theirs) for mine in self.selector.tasks for theirs in job.tasks
            )
        return self.base in (str(job.job_id), str(job.array_id or ""), str(job.het_id or ""))


def parse_job_id(text: str) -> SlurmJobId:
    """`90210`, `90210_2`, `90210_[1-3]`, `90210.0`, `90210+1`. Raises HostsError."""
    text = text.strip()
    if not text.isascii():
        raise HostsError(f"{text[:80]!r} is no SLURM job: 90210, 90210_2, 90210_[1-3], 90210.0 or 90210+1")
    component = None
    base = text
    if found := _COMPONENT.fullmatch(text):
        base, component = found[1], int(found[2])
    try:
        selector = parse_job(base)
    except RequestError as error:
        raise HostsError(f"{error.sentence}, 90210+1 (component)") from error
    if not selector.base:
        raise HostsError("no SLURM job was named: give one such as 90210, 90210_2 or 90210+1")
    if any(len(part) == 0 or part[-1] > _MAX_ELEMENTS for part in selector.tasks):
        raise HostsError(f"job {text!r} names no array element that SLURM can have")
    return SlurmJobId(text=text, selector=selector, component=component)


class SlurmHosts:
    """`--slurm-job`."""

    def find(self, query: HostQuery) -> HostSet:
        """The hosts on which the job runs now. Raises HostsError when it is pending, over or unknown, or SLURM does not answer."""
        wanted = parse_job_id(query.value)
        jobs = [job for job in ask_slurm(wanted.base) if wanted.means(job)]
        running = [job for job in jobs if job.is_running and job.nodes]
        if not running:
            raise HostsError(_why_none(wanted, jobs))
        names = dict.fromkeys(name for job in running for name in expand_nodes(job.nodes))
        return HostSet(
            targets=tuple(FleetTarget(host=name, port=query.port) for name in names),
            job=_job_of_processes(wanted, running),
            notes=tuple(_notes(wanted, jobs, running)),
        )


def ask_slurm(base: str) -> tuple[SlurmJob, ...]:
    """What SLURM knows of a job, other jobs perhaps among it: SLURM 22.05 filters no JSON. Raises HostsError.

    `squeue --json` first, because a job's name or comment cannot be taken for a field in it; `scontrol` where that is missing,
    older than JSON, or broken.
    """
    complaints: list[str] = []
    if squeue := on_path("squeue"):
        output = run_tool([squeue, "--json", "--all", "--states=all", f"--jobs={base}"])
        if _is_unknown(output):
            return ()
        try:
            return _accepted(output)
        except ValueError as error:
            complaints.append(f"squeue: {_without_name(output) if output.exit_code else error}")
    if scontrol := on_path("scontrol"):
        output = run_tool([scontrol, "--oneliner", "show", "job", base])
        if _is_unknown(output):
            return ()
        if output.exit_code == 0:
            return parse_scontrol(output.stdout.decode("utf-8", "replace"))
        complaints.append(f"scontrol: {_without_name(output)}")
    if not complaints:
        raise HostsError(
            "neither squeue nor scontrol is on PATH: run this where SLURM's tools are, or name the hosts with --hosts"
        )
    raise HostsError(f"SLURM does not say where job {base} runs ({'; '.join(complaints)}): name the hosts with --hosts")


def _without_name(output: ToolOutput) -> str:
    """Its complaint; some begin with the tool's own name."""
    return output.complaint.removeprefix("squeue: ").removeprefix("scontrol: ")


def _accepted(output: ToolOutput) -> tuple[SlurmJob, ...]:
    if output.exit_code:
        raise ValueError(output.complaint)
    return parse_squeue(output.stdout)


def _is_unknown(output: ToolOutput) -> bool:
    return output.exit_code != 0 and _UNKNOWN in output.stderr


def expand_nodes(nodes: str) -> tuple[str, ...]:
    """The names in a host list of SLURM's, by `scontrol show hostnames` where it is, else by our own reading. Raises HostsError."""
    if "[" in nodes and (scontrol := on_path("scontrol")):
        output = run_tool([scontrol, "show", "hostnames", nodes])
        names = output.stdout.decode("utf-8", "replace").split()
        if output.exit_code == 0 and names:
            return tuple(names)
    return tuple(name for part in split_list(nodes) for name in expand(part))


def _why_none(wanted: SlurmJobId, jobs: Sequence[SlurmJob]) -> str:
    if not jobs:
        return (
            f"SLURM knows no job {wanted.text}: it never was, or it ended longer ago than SLURM remembers (MinJobAge): "
            "`squeue` lists those there are"
        )
    pending = [job for job in jobs if job.is_pending]
    if pending:
        reason = pending[0].reason
        why = f" ({reason})" if reason not in ("", "None") else ""
        return f"job {wanted.text} is pending{why}: it has no hosts yet. Try again when `squeue -j {wanted.base}` shows it running"
    states = ", ".join(dict.fromkeys(state.lower() for job in jobs for state in job.states)) or "state unknown"
    return f"job {wanted.text} is over ({states}): nothing of it runs any more"


def _job_of_processes(wanted: SlurmJobId, running: Sequence[SlurmJob]) -> str:
    """The job as its processes carry it: those of every component of a heterogeneous job have the first one's id."""
    if running[0].het_id and not wanted.selector.tasks:
        return f"{running[0].het_id}.{step}" if (step := wanted.selector.step) else str(running[0].het_id)
    return wanted.selector.text


def _notes(wanted: SlurmJobId, jobs: Sequence[SlurmJob], running: Sequence[SlurmJob]) -> Iterable[str]:
    pending = sum(_count(wanted, job) for job in jobs if job.is_pending)
    if pending:
        reasons = ", ".join(
            dict.fromkeys(job.reason for job in jobs if job.is_pending and job.reason not in ("", "None"))
        )
        yield f"{pending} of job {wanted.text} pending" + (f" ({reasons})" if reasons else "") + ": not traced"
    over = [job.text for job in jobs if not job.is_pending and not job.is_running]
    if over:
        yield f"over already: {', '.join(over[:8])}" + (f" and {len(over) - 8} more" if len(over) > 8 else "")
    if wanted.component is not None or (running[0].het_id and str(running[0].het_id) != wanted.base):
        yield (
            f"processes of all components of job {running[0].het_id} carry its id: where another one shares a host "
            "with this one, it is meant as well"
        )


def _count(wanted: SlurmJobId, job: SlurmJob) -> int:
    if not wanted.selector.tasks:
        return job.count
    return sum(_common(mine, theirs) for mine in wanted.selector.tasks for theirs in job.tasks)


def _overlap(mine: range, theirs: range) -> bool:
    return _common(mine, theirs) > 0


def _common(mine: range, theirs: range) -> int:
    """How many numbers two ranges share; `mine` has the stride 1."""
    low, high = max(mine.start, theirs.start), min(mine.stop, theirs.stop)
    first = theirs.start + -(-(low - theirs.start) // theirs.step) * theirs.step
    return len(range(first, high, theirs.step))
