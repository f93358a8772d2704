"""`dyno doctor` on many hosts: what each daemon tells of itself, hosts with the same finding on one line."""

from dynolog.cli.doctor.checks import examine
from dynolog.cli.doctor.evidence import Evidence
from dynolog.cli.doctor.finding import Finding, Level
from dynolog.cli.exit_codes import FAILED, USAGE, CommandError
from dynolog.cli.fleet.many_hosts import Fleet, exit_code_of, names_of, print_answers, print_failures
from dynolog.cli.parser import Invocation
from dynolog.cli.printable import printable
from dynolog.fleet.clocks import clock_offset
from dynolog.fleet.fan_out import HostAnswer, ask_all
from dynolog.rpc.client import Target
from dynolog.rpc.messages import GetStatus, StatusReply
from dynolog.sources.host_files import HostFiles
from dynolog.sources.process_privileges import Privileges

_MOST_NAMED = 8


def doctor(arguments: Invocation, fleet: Fleet) -> int:
    """Ask all, print what is wrong first."""
    if arguments.pid or arguments.job_id:
        raise CommandError("--pid and --job-id look at one machine: run it there, or leave the hosts out", USAGE)
    answers = ask_all(fleet.hosts.targets, GetStatus(verbose=True), fleet.options)
    names = names_of(answers)
    findings = [_findings(answer) for answer in answers]
    if arguments.json:
        print_answers(answers, [{"findings": found} for found in findings])
        arguments.printed = True
    else:
        _print_grouped(names, findings, verbose=arguments.verbose)
    silent = [(name, answer.error) for name, answer in zip(names, answers, strict=True) if not answer.answered]
    print_failures(silent, len(answers))
    is_wrong = any(one.level is Level.WRONG for found in findings for one in found)
    return exit_code_of(answers) or (FAILED if is_wrong else 0)


def _findings(answer: HostAnswer) -> list[Finding]:
    """Of one host; none when it gave no answer, which is said apart."""
    reply = answer.decode(StatusReply)
    if reply is None:
        return []
    offset = clock_offset(answer)
    evidence = Evidence(
        host=HostFiles(),
        target=Target(hostname=answer.target.host, port=answer.target.port),
        is_local=False,
        own=Privileges(uid=-1),
        status=reply.daemon,
        unreachable=""
        if reply.daemon
        else "it is the original C++ dynolog or an older one: it tells nothing of itself",
        clock_offset_ns=offset.offset_ns if offset else None,
        clock_uncertainty_ns=offset.uncertainty_ns if offset else 0,
    )
    return [finding for finding in examine(evidence) if finding.topic != "machine"]


def _print_grouped(names: list[str], findings: list[list[Finding]], *, verbose: bool) -> None:
    alike: dict[Finding, list[str]] = {}
    for name, found in zip(names, findings, strict=True):
        for finding in found:
            if verbose or finding.level is not Level.OK:
                alike.setdefault(finding, []).append(name)
    for level in Level:
        for finding, hosts in alike.items():
            if finding.level is level:
                more = f" and {len(hosts) - _MOST_NAMED:,} more hosts" if len(hosts) > _MOST_NAMED else ""
                print(printable(f"{level:<6}{finding.topic}: {finding.text} [{', '.join(hosts[:_MOST_NAMED])}{more}]"))
                if finding.remedy:
                    print(printable(f"      -> {finding.remedy}"))
    if not any(finding.level is Level.WRONG for finding in alike):
        print("Nothing is wrong by what the daemons tell; `dyno doctor` on a machine itself sees more.")
