"""The options of `dyno gputrace`, and the request they make."""

import argparse
import os
from collections.abc import Iterator

import msgspec

from dynolog.cli.exit_codes import USAGE, CommandError
from dynolog.cli.gputrace.follow_up import follow_options
from dynolog.cli.option_types import (
    NO_JOB_NUMBER,
    gpus,
    host_interval_ms,
    job,
    names,
    not_negative,
    pids,
    positive,
    positive_seconds,
    ranks,
    required_share,
    whole_seconds,
)
from dynolog.model.errors import RequestError
from dynolog.profiling.kineto_config import KinetoConfig
from dynolog.profiling.trace_options import TraceOptions, render_request
from dynolog.rpc.messages import SetKinetOnDemandRequest

# More processes than Linux can have (PID_MAX_LIMIT): "all" to our daemon and to the original, for which 0 means none.
ALL_PROCESSES = 4194304
_HOST_INTERVAL_MS = 100


def add_trace_options(parser: argparse.ArgumentParser) -> None:
    """Those of the original first, with its defaults (but for --process-limit, whose 3 left ranks out), then ours."""
    _add_targets(parser.add_argument_group("which processes"))
    _add_recording(parser.add_argument_group("what to record"))
    _add_many_hosts(parser.add_argument_group("with many hosts"))


def _add_targets(group: "argparse._ArgumentGroup") -> None:
    group.add_argument(
        "--job-id", type=job, default=(0, ""), metavar="JOB", help="SLURM job: 90210, 90210_2 or 90210.0 (0: none)"
    )
    group.add_argument(
        "--pids", type=pids, default=[0], metavar="PID,...", help="pids or their ancestors (0: all of the job)"
    )
    group.add_argument(
        "--process-limit", type=not_negative, default=0, metavar="N", help="at most N processes (0: all)"
    )
    group.add_argument(
        "--name", type=names, action="extend", default=[], metavar="NAME,...", help="processes of this name"
    )
    group.add_argument(
        "--ranks", "--only-ranks", type=ranks, default=[], metavar="RANK,...", help="only these ranks: 0,8-15"
    )
    group.add_argument(
        "--gpu",
        type=gpus,
        action="extend",
        default=[],
        metavar="GPU,...",
        help="only processes that hold one of these GPUs: number, 0/gi1 (MIG) or uuid",
    )
    group.add_argument(
        "--include-launchers", action="store_true", help="trace torchrun and the like too: their traces are empty"
    )
    group.add_argument("--fail-on-no-process", action="store_true", help="exit code 1 when nothing matched (always so)")
    group.add_argument("--dry-run", action="store_true", help="say what would be traced, and trace nothing")


def _add_recording(group: "argparse._ArgumentGroup") -> None:
    group.add_argument(
        "--log-file", default="", metavar="PATH", help="file to write, absolute; _PID comes before .json"
    )
    group.add_argument("--duration-ms", type=positive, default=500, metavar="MS", help="length of the trace (500)")
    group.add_argument("--iterations", type=int, default=-1, metavar="N", help="record N iterations instead of a time")
    group.add_argument(
        "--profile-start-time",
        type=not_negative,
        default=0,
        metavar="MS",
        help="Unix time in ms to start at, 0 for now",
    )
    group.add_argument(
        "--profile-start-iteration-roundup",
        type=positive,
        default=1,
        metavar="N",
        help="start at a multiple of N iterations",
    )
    group.add_argument(
        "--warmup-s", type=whole_seconds, metavar="S", help="warm-up before it records (the trainer's: 5)"
    )
    group.add_argument(
        "--activities", type=names, default=[], metavar="TYPE,...", help="activity types to record, e.g. cpu_op"
    )
    group.add_argument("--record-shapes", action="store_true", help="operator input shapes and types")
    group.add_argument("--profile-memory", action="store_true", help="memory of PyTorch")
    group.add_argument("--with-stacks", action="store_true", help="Python stacks")
    group.add_argument("--with-flops", action="store_true", help="flops of operators")
    group.add_argument("--with-modules", action="store_true", help="modules of operators")
    group.add_argument(
        "--host-interval-ms",
        type=host_interval_ms,
        default=_HOST_INTERVAL_MS,
        metavar="MS",
        help="with --with-host, sample the host this often meanwhile, 20 to 10000 (100)",
    )


def _add_many_hosts(group: "argparse._ArgumentGroup") -> None:
    group.add_argument(
        "--require",
        type=required_share,
        metavar="all|any|N%",
        help="hosts that must have something to trace, else none is (any)",
    )
    group.add_argument("--sample", type=positive, metavar="N", help="trace N processes, spread over the hosts")
    group.add_argument("--one-per-host", action="store_true", help="trace one process of each host")
    group.add_argument(
        "--name-template",
        default="",
        metavar="T",
        help="{dir}/{job}/{host}_rank{rank}_{pid}.json; {dir} and {stem} are --log-file's",
    )
    group.add_argument("--step-ms", type=positive_seconds, metavar="MS", help="time of an iteration, for the round-up")
    group.add_argument(
        "--auto-roundup", action="store_true", help="find that time out first, by short traces of a few processes"
    )
    group.add_argument("--manifest", default="", metavar="FILE", help="where manifest.json goes (beside the traces)")
    group.add_argument(
        "--resume", default="", metavar="FILE", help="go on following and fetching a trace by its manifest"
    )


FOR_MANY_HOSTS = ("require", "sample", "one_per_host", "name_template", "step_ms", "auto_roundup", "manifest")


class TraceCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A request, its config as libkineto reads it, and what must be known of the daemon before it is sent."""

    request: SetKinetOnDemandRequest
    config: KinetoConfig
    only_ours: str  # the option that the original would ignore, and so trace something else; "" for none


def trace_command(arguments: argparse.Namespace) -> TraceCommand:
    """What was asked for. Raises CommandError (usage) for what libkineto would not carry out."""
    if not arguments.log_file:
        raise CommandError(
            "where shall the traces be written? Give --log-file, such as --log-file /tmp/trace.json", USAGE
        )
    if not arguments.log_file.isprintable():  # a line break would add keys to the config
        raise CommandError("--log-file holds a character that cannot be printed: leave it out", USAGE)
    if not arguments.log_file.startswith("/"):
        raise CommandError(
            f"--log-file {arguments.log_file} must be absolute, such as /tmp/{os.path.basename(arguments.log_file) or 'trace.json'}: the "
            "trainer writes it, and its directory is not yours",
            USAGE,
        )
    text = render_request(trace_options(arguments))
    try:
        config = KinetoConfig.parse(text)
    except RequestError as error:
        raise CommandError(error.sentence, USAGE) from None
    number, job_text = arguments.job_id
    request = SetKinetOnDemandRequest(
        config=text,
        pids=arguments.pids,
        job_id=number,
        process_limit=arguments.process_limit or ALL_PROCESSES,
        job=job_text,
        names=arguments.name,
        ranks=arguments.ranks,
        include_launchers=arguments.include_launchers,
        dry_run=arguments.dry_run,
        gpus=arguments.gpu,
        host_interval_ms=arguments.host_interval_ms if follow_options(arguments).with_host else 0,
    )
    return TraceCommand(request=request, config=config, only_ours=_only_ours(arguments))


def trace_options(arguments: argparse.Namespace) -> TraceOptions:
    """What to record."""
    return TraceOptions(
        log_file=arguments.log_file,
        duration_ms=arguments.duration_ms,
        iterations=arguments.iterations,
        start_time_ms=arguments.profile_start_time,
        roundup=arguments.profile_start_iteration_roundup,
        record_shapes=arguments.record_shapes,
        profile_memory=arguments.profile_memory,
        with_stacks=arguments.with_stacks,
        with_flops=arguments.with_flops,
        with_modules=arguments.with_modules,
        warmup_s=arguments.warmup_s,
        activities=tuple(arguments.activities),
    )


def without_effect(arguments: argparse.Namespace) -> Iterator[str]:
    """Options of one host that were given and do nothing without another."""
    if arguments.profile_start_iteration_roundup > 1 and arguments.iterations < 1:
        yield "--profile-start-iteration-roundup has no effect without --iterations"
    if arguments.host_interval_ms != _HOST_INTERVAL_MS and not follow_options(arguments).with_host:
        yield "--host-interval-ms has no effect without --fetch or --with-host"


def _only_ours(arguments: argparse.Namespace) -> str:
    chosen = {
        "--dry-run": arguments.dry_run,
        "--name": arguments.name,
        "--ranks": arguments.ranks,
        "--gpu": arguments.gpu,
        "--job-id with an array task": arguments.job_id[0] == NO_JOB_NUMBER,
    }
    return next((option for option, given in chosen.items() if given), "")
