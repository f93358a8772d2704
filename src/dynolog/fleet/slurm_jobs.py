"""What SLURM says of its jobs: `squeue --json` of every version, and the lines of `scontrol show job --oneliner`.

Up to 22.05 numbers are plain and the state is a text; from 23.02 numbers are `{"set":true,"infinite":false,"number":7}` and
the state is a list.
"""

import re
from collections.abc import Iterator

import msgspec

_RUNNING = frozenset({"RUNNING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING", "CONFIGURING"})
_PENDING = frozenset({"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"})
# `ArrayTaskId=2-9:2%4`: elements, a stride, and how many may run at once, which is no element.
_TASKS = re.compile(r"(\d{1,10})(?:-(\d{1,10})(?::(\d{1,10}))?)?")
# None of these can hold a blank. The first of each counts: comments, which can hold anything, come last.
_FIELD = re.compile(
    r"(?:^| )(JobId|ArrayJobId|ArrayTaskId|HetJobId|HetJobOffset|JobState|Reason|NodeList)=(\S*)", re.ASCII
)


class SlurmJob(msgspec.Struct, frozen=True, kw_only=True):
    """One record: a job, an element of an array, the pending rest of an array, or a component of a heterogeneous job.

    `array_id` 0: no array; `tasks` are its elements. `het_id` 0: not heterogeneous. `nodes` is SLURM's host list, "" before it runs.
    """

    job_id: int
    array_id: int = 0
    tasks: tuple[range, ...] = ()
    het_id: int = 0
    het_offset: int = 0
    states: tuple[str, ...] = ()
    reason: str = ""
    nodes: str = ""

    @property
    def text(self) -> str:
        """As `squeue` shows it: `90210`, `90210_2`, `90210+1`."""
        if self.het_id:
            return f"{self.het_id}+{self.het_offset}"
        if self.array_id:
            only = len(self.tasks) == 1 and len(self.tasks[0]) == 1
            return f"{self.array_id}_{self.tasks[0][0] if only else f'[{_shown(self.tasks)}]'}"
        return str(self.job_id)

    @property
    def is_running(self) -> bool:
        """Whether it has hosts with its processes on them."""
        return bool(_RUNNING.intersection(self.states)) and "COMPLETING" not in self.states

    @property
    def is_pending(self) -> bool:
        """Whether it has not begun."""
        return not self.is_running and bool(_PENDING.intersection(self.states))

    @property
    def count(self) -> int:
        """How many jobs this record stands for: the pending elements of an array share one."""
        return sum(map(len, self.tasks)) or 1


class _Number(msgspec.Struct):
    set: bool = True
    infinite: bool = False
    number: int = 0


class _Job(msgspec.Struct):
    """One job as either shape has it; unknown keys are skipped."""

    job_id: int | _Number | None = None
    array_job_id: int | _Number | None = None
    array_task_id: int | _Number | None = None
    array_task_string: str | None = None
    het_job_id: int | _Number | None = None
    het_job_offset: int | _Number | None = None
    job_state: str | list[str] | None = None
    state_reason: str | None = None
    nodes: str | None = None


class _Answer(msgspec.Struct):
    jobs: list[msgspec.Raw]


def parse_squeue(text: bytes) -> tuple[SlurmJob, ...]:
    """The jobs in the output of `squeue --json`. Raises ValueError when it is something else, or no job in it is understood."""
    try:
        records = msgspec.json.decode(text, type=_Answer).jobs
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ValueError(f"not what squeue --json prints: {error}") from error
    jobs: list[SlurmJob] = []
    problem: msgspec.MsgspecError | None = None
    for record in records:
        try:
            jobs.append(_from_json(msgspec.json.decode(record, type=_Job)))
        except msgspec.MsgspecError as error:  # an odd job of somebody else hides no other
            problem = error
    if problem and not jobs:
        raise ValueError(f"not what squeue --json prints: {problem}") from problem
    return tuple(jobs)


def _from_json(job: _Job) -> SlurmJob:
    task = _number(job.array_task_id)
    states = [job.job_state] if isinstance(job.job_state, str) else job.job_state or []
    array_id = _number(job.array_job_id) or 0
    return SlurmJob(
        job_id=_number(job.job_id) or 0,
        array_id=array_id,
        tasks=((range(task, task + 1),) if task is not None else parse_tasks(job.array_task_string or ""))
        if array_id
        else (),
        het_id=_number(job.het_job_id) or 0,
        het_offset=_number(job.het_job_offset) or 0,
        states=tuple(states),
        reason=job.state_reason or "",
        nodes=job.nodes or "",
    )


def _number(value: int | _Number | None) -> int | None:
    if isinstance(value, _Number):
        return value.number if value.set and not value.infinite else None
    return value


def parse_scontrol(text: str) -> tuple[SlurmJob, ...]:
    """The jobs in the output of `scontrol --oneliner show job`."""
    return tuple(_from_line(line) for line in text.splitlines() if line.startswith("JobId="))


def _from_line(line: str) -> SlurmJob:
    fields: dict[str, str] = {}
    for key, value in _fields(line):
        fields.setdefault(key, "" if value == "(null)" else value)
    array_id = _decimal(fields.get("ArrayJobId"))
    return SlurmJob(
        job_id=_decimal(fields.get("JobId")),
        array_id=array_id,
        tasks=parse_tasks(fields.get("ArrayTaskId", "")) if array_id else (),
        het_id=_decimal(fields.get("HetJobId")),
        het_offset=_decimal(fields.get("HetJobOffset")),
        states=tuple(filter(None, fields.get("JobState", "").split(","))),
        reason=fields.get("Reason", ""),
        nodes=fields.get("NodeList", ""),
    )


def _fields(line: str) -> Iterator[tuple[str, str]]:
    """Ids stand before the job's name and the rest behind ` UserId=`, so that words in a name count for neither."""
    head, _, rest = line.partition(" JobName=")
    yield from _FIELD.findall(head)
    yield from _FIELD.findall(rest[max(rest.find(" UserId="), 0) :])


def _decimal(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdecimal() else 0


def parse_tasks(text: str) -> tuple[range, ...]:
    """`2-4,7,10-20:5%3` as ranges; a part that SLURM cut short (`...`) is left out."""
    parts = []
    for part in text.partition("%")[0].split(","):
        if found := _TASKS.fullmatch(part.strip()):
            first, last, stride = found.groups()
            parts.append(range(int(first), int(last or first) + 1, max(int(stride or 1), 1)))
    return tuple(parts)


def _shown(tasks: tuple[range, ...]) -> str:
    return ",".join(
        str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" + (f":{part.step}" if part.step > 1 else "")
        for part in tasks
        if part
    )
