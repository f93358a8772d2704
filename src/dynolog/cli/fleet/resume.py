"""dyno gputrace --resume: a trace of many hosts, taken up again from its manifest."""

import argparse

import msgspec

from dynolog.cli.exit_codes import CommandError
from dynolog.cli.fleet.conclusion import conclude_group, say_trouble
from dynolog.cli.gputrace.follow_up import follow_options
from dynolog.cli.parser import Invocation
from dynolog.fleet.fan_out import FanOutOptions
from dynolog.fleet.manifest import ASKED, PLANNED, UNKNOWN, ManifestFile, read_manifest
from dynolog.fleet.recover import may_be_tracing
from dynolog.fleet.trigger import processes_by_host
from dynolog.rpc.client import Target


def resume(arguments: argparse.Namespace, target: Target) -> int:
    """Follow what has not ended, fetch what is not here. A daemon that was lost, or did not acknowledge its request, is asked again."""
    assert isinstance(arguments, Invocation)
    manifest = read_manifest(arguments.resume)
    options = follow_options(arguments)
    if arguments.wait is None:
        options = msgspec.structs.replace(options, wait=True)
    by_host = processes_by_host(manifest)
    requested = {host.label for host in manifest.hosts if host.request_id}
    if not requested and not any(may_be_tracing(host, by_host.get(host.label, [])) for host in manifest.hosts):
        raise CommandError(f"{arguments.resume}: no daemon was asked for a trace: there is nothing to follow")
    for process in manifest.processes:
        if process.outcome == UNKNOWN and process.host in requested and process.capture_id:
            process.outcome, process.reason = ASKED, ""
        elif process.outcome in (ASKED, PLANNED) and process.host not in requested:
            # Following asks its daemon; without an answer this is what remains.
            process.outcome, process.reason = UNKNOWN, "its daemon had not acknowledged the request when dyno ended"
    manifest.state = "following"
    fan_out = FanOutOptions(
        timeout_s=target.timeout_s, fanout=arguments.fanout, token_file=target.token_file, tls=target.tls
    )
    file = ManifestFile(manifest, arguments.resume, on_trouble=say_trouble)
    return conclude_group(arguments, fan_out, options, file)
