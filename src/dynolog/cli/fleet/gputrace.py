"""dyno gputrace on many hosts: ask all what would be traced, decide, start everywhere at one time, then follow."""

import os
import time
from collections.abc import Sequence

import msgspec

from dynolog.cli.exit_codes import DONE, FAILED, UNREACHABLE, USAGE, CommandError, Interrupted
from dynolog.cli.fleet.conclusion import conclude_group, interrupted, say_trouble
from dynolog.cli.fleet.many_hosts import Fleet, print_failures
from dynolog.cli.fleet.plan_report import offsets_lines, plan_lines
from dynolog.cli.gputrace.arguments import TraceCommand, trace_command, trace_options
from dynolog.cli.gputrace.follow_up import follow_options
from dynolog.cli.option_types import job
from dynolog.cli.parser import Invocation
from dynolog.cli.printable import printable
from dynolog.cli.quantities import processes
from dynolog.cli.reply_text import print_json
from dynolog.fleet.aliases import without_aliases
from dynolog.fleet.manifest import Manifest, ManifestFile
from dynolog.fleet.manifest_place import manifest_path
from dynolog.fleet.naming import NameTemplate, name_template
from dynolog.fleet.plan import Choice, Plan, host_log_file, labelled, make_plan, manifest_of, requests_of
from dynolog.fleet.start_time import iterations_in_a_poll, lead_s, roundup_for, start_on_host_ns
from dynolog.fleet.survey import Survey, survey_hosts
from dynolog.fleet.trigger import trigger
from dynolog.profiling.kineto_config import Mode
from dynolog.profiling.trace_options import render_request


def gputrace(arguments: Invocation, fleet: Fleet) -> int:
    """Both phases and what follows. Raises CommandError, HostsError, TokenFileError."""
    if arguments.resume:
        raise CommandError("--resume takes the hosts from the manifest: leave the options that name hosts out", USAGE)
    if not arguments.log_file:
        raise CommandError(
            "where shall the traces be written? Give --log-file, such as --log-file /shared/traces/", USAGE
        )
    if not arguments.log_file.startswith("/"):
        raise CommandError(f"--log-file {arguments.log_file} must be absolute: the trainers write there", USAGE)
    if arguments.auto_roundup and (arguments.iterations <= 0 or arguments.step_ms):
        raise CommandError("--auto-roundup is for --iterations, and --step-ms makes it needless", USAGE)
    if arguments.step_ms and arguments.iterations <= 0:
        raise CommandError("--step-ms is for --iterations: a trace of a duration begins at one time anyway", USAGE)
    options = follow_options(arguments)
    names = name_template(arguments.log_file, arguments.name_template)
    number, text = job(fleet.hosts.job) if fleet.hosts.job and arguments.job_id == (0, "") else arguments.job_id
    # As a text an id means every element of the array of that id as well; as a number only the element that SLURM gave it to.
    arguments.job_id = (number, text or (str(number) if number > 0 else ""))
    arguments.log_file = names.log_file("host")
    command = trace_command(arguments)
    try:
        surveys = survey_hosts(labelled(fleet.hosts.targets), command.request, names, fleet.options)
    except KeyboardInterrupt:
        raise Interrupted("interrupted while the hosts were asked what they would trace: nothing was started") from None
    surveys, aliases = without_aliases(surveys)
    plan = make_plan(surveys, _choice(arguments, command))
    manifest = manifest_of(
        plan,
        group_id=f"g{time.time_ns() // 1_000_000:x}{os.urandom(3).hex()}",
        job=fleet.hosts.job
        or command.request.job
        or (str(command.request.job_id) if command.request.job_id > 0 else ""),
        config=command.request.config,
        originals_reason=f"the original C++ dynolog does not know {command.only_ours or '--sample and --one-per-host'}",
    )
    _report(arguments, plan, manifest)
    _check(arguments, surveys)
    group = _Group(arguments, command, names, plan)
    for sentence in aliases:
        group.note(manifest, sentence)
    if arguments.auto_roundup and not arguments.dry_run and plan.process_count > 1:
        group.find_step_time(manifest, fleet)
    group.decide(manifest)
    if arguments.dry_run:
        return _dry_run(arguments, plan, manifest)
    if not plan.starting:
        raise CommandError("nothing was started: no host has a process that can be traced")
    path = manifest_path(manifest, arguments.manifest, options.fetch, names.directory)
    file = ManifestFile(manifest, path, on_trouble=say_trouble)
    file.save()
    try:
        group.start(manifest, fleet)
    except KeyboardInterrupt:
        raise interrupted(file, options) from None
    manifest.state = "following"
    file.attempt()
    return conclude_group(arguments, fleet.options, options, file)


def _choice(arguments: Invocation, command: TraceCommand) -> Choice:
    only_ours = "" if command.only_ours == "--dry-run" else command.only_ours
    return Choice(sample=arguments.sample or 0, one_per_host=arguments.one_per_host, only_ours=only_ours)


def _report(arguments: Invocation, plan: Plan, manifest: Manifest) -> None:
    if not arguments.json:
        for line in plan_lines(plan, manifest):
            print(printable(line))
    failures = [(host.label, host.error) for host in manifest.hosts if host.outcome != "answered"]
    print_failures(failures, len(manifest.hosts))


def _check(arguments: Invocation, surveys: Sequence[Survey]) -> None:
    """Raises CommandError when no host answered, or not enough of them can start."""
    if not any(survey.answer.answered for survey in surveys):
        raise CommandError("nothing was started: no host answered", UNREACHABLE)
    able = sum(survey.can_start for survey in surveys)
    share = arguments.require or 0.0
    if able < share * len(surveys):
        raise CommandError(
            f"nothing was started: {able} of {len(surveys)} hosts have a process that can be traced, and --require asks for {share:.0%}"
        )


def _dry_run(arguments: Invocation, plan: Plan, manifest: Manifest) -> int:
    manifest.state = "dry_run"
    if arguments.json:
        print_json(manifest)
    else:
        print("Dry run: nothing was triggered")
    complete = all(survey.answer.answered for survey in plan.surveys) and plan.starting
    return DONE if complete else FAILED


class _Group:
    """The second phase: when or at which iteration it begins everywhere, and the requests."""

    def __init__(self, arguments: Invocation, command: TraceCommand, names: NameTemplate, plan: Plan) -> None:
        self._arguments = arguments
        self._command = command
        self._names = names
        self._plan = plan
        self._roundup = arguments.profile_start_iteration_roundup
        self._step_ms = arguments.step_ms

    def find_step_time(self, manifest: Manifest, fleet: Fleet) -> None:
        """Measure it, for `decide`. Raises CommandError when that does not succeed."""
        from dynolog.cli.fleet.step_time import Measurement  # noqa: PLC0415 - hashing loads libcrypto: only with this option

        if not self._arguments.json:
            print("Measuring how long an iteration takes, by short traces of a few processes ...", flush=True)
        found = Measurement(fleet, self._command, self._names, manifest.group_id).measure(self._plan)
        self._step_ms = found.step_ms
        self.note(
            manifest,
            f"an iteration takes {found.step_ms:.3g} ms, from {found.steps:,} of them in {processes(found.processes)}",
        )

    def decide(self, manifest: Manifest) -> None:
        """The round-up in iteration mode. Raises CommandError (usage) for one that would let ranks start apart."""
        arguments = self._arguments
        if self._command.config.mode is not Mode.ITERATIONS or self._plan.process_count < 2:
            return
        if not self._step_ms:
            how = (
                "which is measured when it starts"
                if arguments.auto_roundup
                else "say --auto-roundup or --step-ms for that"
            )
            self.note(
                manifest,
                f"ranks start together only if the round-up exceeds the iterations in one poll interval: {how}",
            )
            return
        passing = iterations_in_a_poll(self._plan.starting, self._step_ms)
        if self._roundup == 1:
            self._roundup = roundup_for(passing)
            self.note(
                manifest,
                f"round-up {self._roundup}: {passing} iterations of {self._step_ms:.3g} ms pass in one poll interval",
            )
        elif self._roundup <= passing:
            raise CommandError(
                f"--profile-start-iteration-roundup {self._roundup} is too small: {passing} iterations of {self._step_ms:.3g} ms pass "
                f"in one poll interval, so ranks would start apart: use {roundup_for(passing)} or leave it out",
                USAGE,
            )

    def note(self, manifest: Manifest, sentence: str) -> None:
        """A sentence for the user and for the manifest."""
        manifest.notes.append(sentence)
        if not self._arguments.json:
            print(printable(f"note: {sentence}"))

    def start(self, manifest: Manifest, fleet: Fleet) -> None:
        """Choose the time, and send the requests."""
        arguments = self._arguments
        if self._command.config.mode is Mode.DURATION:
            asked_ns = arguments.profile_start_time * 1_000_000
            ahead_s = lead_s(self._plan.starting, self._command.config.effective_warmup_s)
            manifest.start_wall_ns = asked_ns or time.time_ns() + int(ahead_s * 1e9)
            if not arguments.json:
                for line in offsets_lines(manifest, ahead_s):
                    print(printable(line))
        by_label = {host.label: host for host in manifest.hosts}
        for survey in self._plan.starting:
            if manifest.start_wall_ns:
                by_label[survey.target.name].start_wall_ns = start_on_host_ns(manifest.start_wall_ns, survey)

        def config_for(survey: Survey) -> str:
            return self._config(survey, manifest)

        trigger(manifest, requests_of(self._plan, self._command.request, config_for), fleet.options)

    def _config(self, survey: Survey, manifest: Manifest) -> str:
        start_ns = start_on_host_ns(manifest.start_wall_ns, survey) if manifest.start_wall_ns else 0
        options = msgspec.structs.replace(
            trace_options(self._arguments),
            log_file=host_log_file(self._names, survey, manifest.job),
            start_time_ms=start_ns // 1_000_000,
            roundup=self._roundup,
        )
        return f"{render_request(options)}\nREQUEST_GROUP_TRACE_ID={manifest.group_id}"
