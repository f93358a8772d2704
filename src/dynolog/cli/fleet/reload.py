"""dyno reload on many hosts."""

from dynolog.cli.exit_codes import DONE, FAILED
from dynolog.cli.fleet.many_hosts import Fleet, exit_code_of, names_of, print_answers, print_failures
from dynolog.cli.parser import Invocation
from dynolog.cli.printable import printable
from dynolog.cli.reload import report_lines
from dynolog.fleet.fan_out import Outcome, ask_all
from dynolog.rpc.messages import Reload, ReloadReply

_ORIGINAL = "it closed the connection without an answer: it is an older dynolog, which reloads on SIGHUP only"


def reload(arguments: Invocation, fleet: Fleet) -> int:
    """Hosts with the same outcome share a paragraph."""
    answers = ask_all(fleet.hosts.targets, Reload(), fleet.options)
    names = names_of(answers)
    replies = [answer.decode(ReloadReply) for answer in answers]
    failed = any(reply is not None and reply.errors for reply in replies)
    if arguments.json:
        print_answers(answers, replies)
    else:
        alike: dict[tuple[str, ...], list[str]] = {}
        for name, reply in zip(names, replies, strict=True):
            if reply is not None:
                alike.setdefault(tuple(report_lines(reply)), []).append(name)
        for lines, hosts in alike.items():
            print(printable(f"{', '.join(hosts)}:"))
            print("\n".join(f"    {printable(line)}" for line in lines))
        print_failures(
            (
                (name, _ORIGINAL if answer.outcome is Outcome.NO_ANSWER else answer.error)
                for name, answer in zip(names, answers, strict=True)
                if not answer.answered
            ),
            len(answers),
        )
    return exit_code_of(answers) or (FAILED if failed else DONE)
