"""Which job a trainer belongs to, and which jobs a text like `90210_2` means (sbatch(1), srun(1))."""

import re
import sys
from collections.abc import Mapping

import msgspec

from dynolog.model.errors import RequestError

# `90210`, `90210_2`, `90210_[1,3-5]`, each optionally with a step: `.0`, `.batch`.
_SELECTOR = re.compile(
    r"^(\d{1,20})(?:_(?:(\d{1,10})|\[([\d,\-]{1,256})(?:%\d+)?\]))?(?:\.(\d{1,10}|batch|extern|interactive))?$"
)
# Steps that are not numbered have the top of the uint32 range in SLURM_STEP_ID (slurm.h).
_NAMED_STEPS = {"batch": "4294967291", "extern": "4294967292", "interactive": "4294967290"}


class JobIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """The job of one trainer. `wire_id` is the number in its messages, the rest comes from its environment ("" when not there).

    An element of a job array has a SLURM_JOB_ID of its own besides `array_id`_`task`.
    """

    wire_id: int
    job_id: str = ""
    array_id: str = ""
    task: str = ""
    step: str = ""

    @property
    def text(self) -> str:
        """As `squeue` shows it: `90210_2` for an array element, else `90210`; "" outside a job."""
        if self.array_id and self.task:
            return f"{self.array_id}_{self.task}"
        return self.job_id or (str(self.wire_id) if self.wire_id else "")

    def with_wire_id(self, wire_id: int) -> "JobIdentity":
        """The same with another number on the wire."""
        return JobIdentity(wire_id=wire_id, job_id=self.job_id, array_id=self.array_id, task=self.task, step=self.step)


NO_JOB = JobIdentity(wire_id=0)


def job_of(wire_id: int, environment: Mapping[str, str]) -> JobIdentity:
    """The job by a trainer's message and its own environment."""

    def value(key: str) -> str:
        return sys.intern(environment.get(key, ""))  # the same in every process of a job

    return JobIdentity(
        wire_id=wire_id,
        job_id=value("SLURM_JOB_ID"),
        array_id=value("SLURM_ARRAY_JOB_ID"),
        task=value("SLURM_ARRAY_TASK_ID"),
        step=value("SLURM_STEP_ID"),
    )


def identity_of(text: str, wire_id: int) -> JobIdentity:
    """The job behind its text and number as lists of trainers show them; the step is not in them."""
    base, _, task = text.partition("_")
    if task:
        return JobIdentity(wire_id=wire_id, job_id=str(wire_id), array_id=base, task=task)
    return JobIdentity(wire_id=wire_id, job_id=base)


class JobSelector(msgspec.Struct, frozen=True, kw_only=True):
    """Which trainers a request's job means.

    A bare id means that job and every element of the array of that id, as `scancel` takes it; `_` picks elements, `.` a step.
    Without a text the number on the wire must be equal, all 64 bits of it.
    """

    wire_id: int = 0
    text: str = ""
    base: str = ""
    tasks: tuple[range, ...] = ()
    step: str = ""

    def matches(self, job: JobIdentity) -> bool:
        """Whether a trainer of `job` is meant."""
        if not self.text:
            return job.wire_id == self.wire_id
        if self.step and not self._step_matches(job):
            return False
        if self.tasks:
            return (
                job.array_id == self.base and job.task.isdecimal() and any(int(job.task) in part for part in self.tasks)
            )
        return self.base in (job.job_id, job.array_id, str(job.wire_id))

    def _step_matches(self, job: JobIdentity) -> bool:
        if self.step == "batch" and not job.step:  # a batch script's own processes carry no step before SLURM 20.11
            return bool(job.job_id)
        return job.step == _NAMED_STEPS.get(self.step, self.step)

    def __str__(self) -> str:
        return self.text or str(self.wire_id)


def parse_job(text: str, wire_id: int = 0) -> JobSelector:
    """The selector of a request: `text` wins over the number. Raises RequestError("bad_request")."""
    text = text.strip()
    if not text:
        return JobSelector(wire_id=wire_id)
    found = _SELECTOR.match(text)
    if not found:
        raise RequestError(
            "bad_request",
            f"job id {text[:80]!r} is not one of 90210, 90210_2 (array element), 90210_[1-3], 90210.0 (step)",
        )
    base, task, elements, step = found.groups()
    return JobSelector(
        text=text,
        base=str(int(base)),
        tasks=_elements(text, task or elements or ""),
        step=str(int(step)) if step and step.isdecimal() else step or "",
    )


def _elements(text: str, elements: str) -> tuple[range, ...]:
    parts: list[range] = []
    for element in filter(None, elements.split(",")):
        first, dash, last = element.partition("-")
        try:
            parts.append(range(int(first), int(last if dash else first) + 1))
        except ValueError as error:
            raise RequestError(
                "bad_request", f"job id {text[:80]!r}: {element!r} is not a range of array elements"
            ) from error
    return tuple(parts)
