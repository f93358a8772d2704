"""dyno gputrace --auto-roundup: how long an iteration takes, from a short trace of a few processes."""

import os
import tempfile
import time
from collections import Counter

import msgspec

from dynolog.cli.exit_codes import CommandError, Interrupted
from dynolog.cli.fleet.fetch_all import fetch_group
from dynolog.cli.fleet.many_hosts import Fleet
from dynolog.cli.gputrace.arguments import TraceCommand
from dynolog.cli.gputrace.follow_up import FollowOptions
from dynolog.fleet.choose import sample
from dynolog.fleet.fan_out import HostAnswer, ask_all
from dynolog.fleet.follow import follow_hosts
from dynolog.fleet.manifest import Manifest, ManifestFile
from dynolog.fleet.naming import WITH_STEM, NameTemplate
from dynolog.fleet.plan import Plan, manifest_of, requests_of
from dynolog.fleet.step_time import StepTime, step_time, steps_in
from dynolog.fleet.survey import Candidate, Survey, key_of, log_files
from dynolog.fleet.trigger import trigger
from dynolog.model.trainer import TrainerState
from dynolog.profiling.trace_options import TraceOptions, render_request
from dynolog.rpc.messages import ListProcesses, ProcessesReply

# The second for iterations so long that the first does not hold three of them.
_LENGTHS_MS = (2_000, 30_000)
_MOST_PROCESSES = 8
# Steps are annotations of the user's thread: without the operators a trace of them is some kB.
_ACTIVITIES = ("user_annotation",)
_SETTLING_S = 5.0
_PAUSE_S = 0.2
# Beyond polling and recording: to write, check and bring here.
_PATIENCE_S = 60.0


class Measurement:
    """One `measure` a command; `names` says where the short traces are written, beside those that are asked for."""

    def __init__(self, fleet: Fleet, command: TraceCommand, names: NameTemplate, group_id: str) -> None:
        self._fleet = fleet
        self._command = command
        self._names = names
        self._group_id = group_id

    def measure(self, plan: Plan) -> StepTime:
        """Trace a process of each of up to eight hosts for two seconds, or for thirty when that is too short.

        Raises CommandError when no trace tells, and Interrupted on Ctrl-C.
        """
        reasons: Counter[str] = Counter()
        try:
            for length_ms in _LENGTHS_MS:
                with tempfile.TemporaryDirectory(prefix="dyno-steps-") as directory:
                    few = self._few_of(plan, length_ms)
                    manifest = self._record(few, length_ms, directory)
                    found = step_time(map(_steps_of, [one.fetched for one in manifest.processes if one.fetched]))
                self._wait_until_idle(few)
                if found is not None:
                    return found
                reasons = Counter(_why_not(manifest))
                if not any(process.is_good for process in manifest.processes):
                    break  # a longer one would go no better
        except KeyboardInterrupt:
            raise Interrupted(
                "interrupted while the time of an iteration was measured: nothing else was started, and the short traces end by themselves"
            ) from None
        said = "; ".join(reason for reason, _ in reasons.most_common(3)) or "no process here can be followed"
        raise CommandError(
            f"nothing was started: --auto-roundup cannot tell how long an iteration takes: {said}: say --step-ms"
        )

    def _few_of(self, plan: Plan, length_ms: int) -> Plan:
        names = NameTemplate(
            directory=self._names.directory, stem=f"steps-{self._group_id}-{length_ms}ms", template=WITH_STEM
        )
        chosen = sample(plan.chosen, min(_MOST_PROCESSES, sum(map(bool, plan.chosen))))
        renamed = [
            _renamed(survey.target.name, of_host, names) for survey, of_host in zip(plan.surveys, chosen, strict=True)
        ]
        return msgspec.structs.replace(plan, chosen=tuple(renamed), originals=False)

    def _record(self, plan: Plan, length_ms: int, directory: str) -> Manifest:
        """Both phases, the wait and the files, in small."""
        options = TraceOptions(
            log_file=self._command.config.log_file, duration_ms=length_ms, warmup_s=0, activities=_ACTIVITIES
        )
        config = render_request(options)
        manifest = manifest_of(plan, group_id=self._group_id, job="", config=config, originals_reason="")
        requests = requests_of(plan, self._command.request, lambda _: config)
        trigger(manifest, requests, self._fleet.options)
        patience_s = max(map(_poll_s, plan.starting), default=0.0) + length_ms / 1000 + _PATIENCE_S
        follow_hosts(manifest, self._fleet.options, lambda: None, wait_timeout_s=patience_s)
        following = FollowOptions(wait=True, wait_timeout_s=None, fetch=directory, compress=False)
        file = ManifestFile(manifest, os.path.join(directory, "manifest.json"))
        fetch_group(file, self._fleet.options, following, as_json=True)
        return manifest

    def _wait_until_idle(self, few: Plan) -> None:
        """Until the traced processes have polled again: one that still profiles takes its next config an interval after the others."""
        keys = {survey.target: {one.key for one in few.chosen[index]} for index, survey in enumerate(few.surveys)}
        deadline_s = time.monotonic() + 2 * max(map(_poll_s, few.starting), default=0.0) + _SETTLING_S
        busy = [target for target, of_host in keys.items() if of_host]
        while busy and time.monotonic() < deadline_s:
            time.sleep(_PAUSE_S)
            answers = ask_all(busy, ListProcesses(), self._fleet.options)
            busy = [answer.target for answer in answers if _is_busy(answer, keys[answer.target])]


def _is_busy(answer: HostAnswer, keys: set[int]) -> bool:
    reply = answer.decode(ProcessesReply)
    return reply is not None and any(
        key_of(trainer) in keys and trainer.state is TrainerState.BUSY for trainer in reply.trainers
    )


def _renamed(host: str, chosen: list[Candidate], names: NameTemplate) -> tuple[Candidate, ...]:
    files = log_files(host, [candidate.trainer for candidate in chosen], names)
    return tuple(
        msgspec.structs.replace(candidate, log_file=file) for candidate, file in zip(chosen, files, strict=True)
    )


def _poll_s(survey: Survey) -> float:
    return survey.slowest_poll_s


def _steps_of(path: str) -> list[float]:
    with open(path, "rb") as file:
        return steps_in(file.read())


def _why_not(manifest: Manifest) -> list[str]:
    """For each process that was to tell, why it does not."""
    return [
        "fewer than three steps of a torch.optim optimizer in 30 s"
        if process.fetched
        else process.fetch_error or process.reason or f"its trace is still {process.outcome}"
        for process in manifest.processes
        if process.log_file
    ]
