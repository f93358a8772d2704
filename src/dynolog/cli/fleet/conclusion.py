"""After the requests of many hosts were taken: follow, fetch, sum up, and a manifest that is true whatever happens."""

import shlex
import sys

from dynolog.cli.exit_codes import DONE, FAILED, UNREACHABLE, Interrupted
from dynolog.cli.fleet.summary import summary_lines
from dynolog.cli.fleet.trace_view import choose_view
from dynolog.cli.gputrace.follow_up import FollowOptions
from dynolog.cli.parser import Invocation
from dynolog.cli.printable import printable
from dynolog.cli.quantities import count
from dynolog.cli.reply_text import print_json
from dynolog.fleet.fan_out import FanOutOptions
from dynolog.fleet.follow import follow_hosts
from dynolog.fleet.manifest import Manifest, ManifestFile


def conclude_group(arguments: Invocation, fan_out: FanOutOptions, options: FollowOptions, file: ManifestFile) -> int:
    """Returns the exit code. Raises Interrupted on Ctrl-C, with how to go on."""
    manifest = file.manifest
    if not options.wait:
        kept = file.attempt()
        if arguments.json:
            print_json(manifest)
        else:
            for line in summary_lines(manifest):
                print(printable(line))
            if any(host.request_id for host in manifest.hosts):
                print(printable(f"Follow them with: {how_to_resume(file.path, options)}"))
        return _exit_code(manifest, waited=False) if kept else FAILED
    try:
        _follow(arguments, fan_out, options, file)
        if options.fetch:
            from dynolog.cli.fleet.fetch_all import fetch_group  # noqa: PLC0415 - hashing loads libcrypto: only for files

            fetch_group(file, fan_out, options, as_json=arguments.json)
    except KeyboardInterrupt:
        raise interrupted(file, options) from None
    manifest.state = "done" if all(process.is_final for process in manifest.processes) else "following"
    kept = file.attempt()
    _report(arguments, options, file)
    return _exit_code(manifest, waited=True) if kept else FAILED


def _follow(arguments: Invocation, fan_out: FanOutOptions, options: FollowOptions, file: ManifestFile) -> None:
    view = choose_view(file.manifest, as_json=arguments.json)

    def changed() -> None:
        view.show()
        file.touch()

    def settle() -> None:
        view.show()
        file.settle()

    try:
        changed()
        follow_hosts(file.manifest, fan_out, changed, on_tick=settle, wait_timeout_s=options.wait_timeout_s)
    finally:
        view.close()
    file.attempt()


def _report(arguments: Invocation, options: FollowOptions, file: ManifestFile) -> None:
    manifest = file.manifest
    if arguments.json:
        print_json(manifest)
        return
    for line in summary_lines(manifest):
        print(printable(line))
    print(printable(f"Manifest: {file.path}"))
    again = how_to_resume(file.path, options)
    if manifest.state != "done":
        say_trouble(f"not all have ended: go on with `{again}`")
    elif missing := sum(bool(process.fetch_error) for process in manifest.processes):
        say_trouble(f"{count(missing, 'file')} not fetched: try again with `{again}`, or another directory there")


def say_trouble(sentence: str) -> None:
    """What goes wrong beside the traces, on stderr."""
    print(printable(f"dyno: {sentence}"), file=sys.stderr)


def interrupted(file: ManifestFile, options: FollowOptions) -> Interrupted:
    """After Ctrl-C: the manifest as it stands, and what to type."""
    file.manifest.state = "interrupted"
    kept = file.attempt()
    again = how_to_resume(file.path, options)
    stands = "says how they stand" if kept else "could not be brought up to date"
    processes = file.manifest.processes
    over = bool(processes) and all(process.is_final for process in processes)
    traces = "the traces have ended, but not all are fetched" if over else "the traces go on"
    return Interrupted(f"interrupted: {traces}; {file.path} {stands}: go on with `{again}`")


def how_to_resume(path: str, options: FollowOptions) -> str:
    """What to type."""
    words = ["dyno", "gputrace", "--resume", path]
    if options.fetch:
        words += ["--fetch", options.fetch]
    return shlex.join(words)


def _exit_code(manifest: Manifest, *, waited: bool) -> int:
    """0 when every host answered and every process has a good file (or, not waited for, was asked); 3 when no host is left."""
    if all(host.outcome != "answered" for host in manifest.hosts):
        return UNREACHABLE
    if any(host.outcome != "answered" or (host.error and not host.request_id) for host in manifest.hosts):
        return FAILED
    if not manifest.processes:
        return FAILED
    if not waited:
        return FAILED if any(process.outcome == "not_traced" for process in manifest.processes) else DONE
    # Nobody can know what became of a trace of the original daemon.
    originals = {host.label for host in manifest.hosts if host.original}
    good = all(
        process.host in originals or (process.is_good and not process.fetch_error) for process in manifest.processes
    )
    return DONE if good else FAILED
