"""The `unitrace` command: the arguments of the public Dynolog's script of that name, for `dyno gputrace` on many hosts."""

import argparse
import os
import sys
import time
from collections.abc import Sequence

from dynolog import __version__
from dynolog.cli.main import main as run_dyno
from dynolog.cli.option_types import not_negative, positive

_OUTPUT_DIRECTORY = "/tmp/"  # noqa: S108 - the script's default, on the hosts of the job
# As the script names its files; `{host}` and the pid keep them apart on a shared file system.
FILE_NAMES = "{dir}/libkineto_trace_{host}_{pid}.json"


def main(argv: Sequence[str] | None = None) -> int:
    """Trace a job on all of its hosts; returns the exit code of `dyno gputrace`."""
    return run_dyno(dyno_arguments(sys.argv[1:] if argv is None else argv, time.time_ns()))


def dyno_arguments(argv: Sequence[str], now_ns: int) -> list[str]:
    """The command line of dyno that means the same; options that the script did not know are passed on."""
    arguments, more = _parser().parse_known_args(argv)
    words = ["gputrace"]
    if arguments.hosts:
        words += ["--hosts", ",".join(arguments.hosts), "--job-id", arguments.job_id]
    else:
        words += ["--slurm-job", arguments.job_id]
    words += ["--log-file", os.path.join(os.path.abspath(arguments.output_dir), ""), "--name-template", FILE_NAMES]
    if arguments.iterations > 0:
        words += ["--iterations", str(arguments.iterations)]
        words += ["--profile-start-iteration-roundup", str(arguments.iteration_roundup)]
    else:
        words += ["--duration-ms", str(arguments.duration_ms)]
        if arguments.start_time_delay is not None:
            words += ["--profile-start-time", str(now_ns // 1_000_000 + arguments.start_time_delay * 1000)]
    return words + more


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="unitrace",
        description="Trace every process of a distributed job on all of its hosts at the same moment.",
        epilog="Other options are those of `dyno gputrace`, such as --fetch DIR, --token-file FILE or --port N.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"unitrace {__version__}", help="print the version")
    parser.add_argument("job_id", help="SLURM job: 90210, 90210_2, 90210_[1-3], 90210+1; SLURM is asked for its hosts")
    parser.add_argument("--hosts", nargs="+", metavar="HOST", help="its hosts, so that SLURM is not asked")
    parser.add_argument(
        "-o",
        "--output-dir",
        default=_OUTPUT_DIRECTORY,
        metavar="DIR",
        help="where the processes write their traces (/tmp/)",
    )
    parser.add_argument(
        "-d", "--duration-ms", type=positive, default=500, metavar="MS", help="length of the traces (500)"
    )
    parser.add_argument(
        "--start-time-delay",
        type=not_negative,
        metavar="S",
        help="begin S seconds from now (as soon as every process can have its request and have warmed up)",
    )
    parser.add_argument(
        "-i", "--iterations", type=not_negative, default=0, metavar="N", help="record N iterations instead of a time"
    )
    parser.add_argument(
        "--iteration-roundup",
        type=positive,
        default=1000,
        metavar="N",
        help="begin at an iteration that is a multiple of N (1000)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
