"""dyno trace host."""

import argparse
from collections.abc import Sequence

import msgspec

from dynolog.cli.daemon_kind import asking_for_ours
from dynolog.cli.exit_codes import DONE, FAILED, CommandError
from dynolog.cli.gputrace.one_request import ask_about
from dynolog.cli.printable import printable
from dynolog.cli.quantities import count
from dynolog.cli.reply_text import print_json
from dynolog.cli.table import table, terminal_columns
from dynolog.model.capture import CaptureInfo
from dynolog.model.host_samples import SampleBlock
from dynolog.model.trace_request import RequestProgress
from dynolog.rpc.client import Target
from dynolog.rpc.messages import GetTrace


class HostReport(msgspec.Struct, frozen=True, kw_only=True):
    """What --json prints."""

    request_id: str
    blocks: Sequence[SampleBlock]


class TraceHost:
    """Show what the host did while a request was traced, or add it to a trace of that request that is here.

    The daemon has it when the request was made with --with-host. Exit code 1 when there is nothing.
    """

    name = "trace host"

    def prepare_parser(self, parser: argparse.ArgumentParser) -> None:
        """Which request, and which file."""
        parser.add_argument("request_id", metavar="REQUEST_ID", help="the request: `dyno trace` lists them")
        parser.add_argument(
            "--add",
            default="",
            metavar="FILE",
            help="add counter tracks to this file, as its trainer wrote it; it is replaced when the new one is whole",
        )

    def run(self, arguments: argparse.Namespace, target: Target) -> int:
        """Show or add."""
        with asking_for_ours(target, "trace requests"):
            progress = ask_about(target, GetTrace(request_id=arguments.request_id))
        if arguments.add:
            return _add(arguments.add, target, progress)
        from dynolog.cli.gputrace.host_tracks import NoSamples, samples_of  # noqa: PLC0415 - hashing loads libcrypto: only here

        try:
            blocks = samples_of(target, progress.request_id)
        except NoSamples as error:
            raise CommandError(str(error)) from None
        if arguments.json:
            print_json(HostReport(request_id=progress.request_id, blocks=blocks))
        elif blocks:
            print(
                table(
                    ("COUNTER", "SAMPLES", "MEAN", "LOWEST", "HIGHEST"), _rows(blocks), (1, 2, 3, 4), terminal_columns()
                )
            )
        else:
            print("The host was not sampled for this request: ask with --with-host.")
        return DONE if blocks else FAILED


def _rows(blocks: Sequence[SampleBlock]) -> list[tuple[str, ...]]:
    found: dict[str, list[float]] = {}
    for block in blocks:
        for series in block.series:
            found.setdefault(series.name, []).extend(value for value in series.values if value is not None)
    return [
        (
            name,
            f"{len(values):,}",
            *(f"{value:,.1f}" for value in (sum(values) / len(values), min(values), max(values))),
        )
        for name, values in sorted(found.items())
        if values
    ]


def _add(path: str, target: Target, progress: RequestProgress) -> int:
    from dynolog.analysis.editing.host_tracks import original_sha256_of  # noqa: PLC0415 - as above
    from dynolog.cli.gputrace.host_tracks import HostTracks  # noqa: PLC0415 - as above
    from dynolog.fleet.distributed_info import sha256_before, sha256_of  # noqa: PLC0415 - as above

    try:
        known = {sha256_of(path), sha256_before(path)}
        done = original_sha256_of(path)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}") from None
    if done and _capture_of(progress, {done}):
        print(printable(f"{path} has the host's counters already"))
        return DONE
    capture = _capture_of(progress, known)
    if capture is None:
        raise CommandError(f"{path} is no trace of request {progress.request_id}, as its trainer wrote it")
    amended = HostTracks().add_to_capture(target, capture, path, path)
    if amended.note or not amended.tracks:
        raise CommandError(f"{path} stays as it is: {amended.note or 'a memory snapshot has no time line'}")
    print(printable(f"{path}: {count(amended.tracks, 'counter track')} of the host added"))
    return DONE


def _capture_of(progress: RequestProgress, known: set[str]) -> CaptureInfo | None:
    return next((one for one in progress.captures if one.file is not None and one.file.sha256 in known), None)
