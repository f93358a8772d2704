"""dyno doctor."""

import argparse

from dynolog.cli.doctor.checks import examine
from dynolog.cli.doctor.dry_run import with_verdicts
from dynolog.cli.doctor.evidence import Evidence, gather
from dynolog.cli.doctor.finding import Level
from dynolog.cli.doctor.jobs import subjects_of_job
from dynolog.cli.doctor.report import findings_text, walk_object, walk_text, walks_text
from dynolog.cli.doctor.subject import find_subject
from dynolog.cli.doctor.walk import walk
from dynolog.cli.exit_codes import DONE, FAILED, USAGE, CommandError
from dynolog.cli.option_types import job, positive
from dynolog.cli.reply_text import print_json
from dynolog.rpc.client import Target
from dynolog.sources.host_files import HostFiles


class Doctor:
    """Say what is missing on this machine, why, and what gives it; with --pid or --job-id, why processes would not be traced.

    Exit code 1 when something is wrong. It reads only.
    """

    name = "doctor"

    def prepare_parser(self, parser: argparse.ArgumentParser) -> None:
        """What to look at."""
        parser.add_argument("--pid", type=positive, metavar="PID", help="why would this process not be traced?")
        parser.add_argument(
            "--job-id", "--job", type=job, metavar="JOB", help="the same for each process of a job: 90210, 90210_2"
        )
        parser.add_argument(
            "--log-file", default="", metavar="PATH", help="with these: where its trace would go (/tmp/trace.json)"
        )
        parser.add_argument("-v", "--verbose", action="store_true", help="what is in order too")

    def run(self, arguments: argparse.Namespace, target: Target) -> int:
        """Look, and print."""
        if arguments.pid and arguments.job_id:
            raise CommandError("--pid and --job-id: give one of them", USAGE)
        if arguments.log_file and not (arguments.log_file.startswith("/") and arguments.log_file.isprintable()):
            raise CommandError("--log-file must be an absolute path", USAGE)
        evidence = gather(target, HostFiles())
        if arguments.pid:
            return _one(arguments, evidence)
        if arguments.job_id:
            return _of_job(arguments, evidence)
        findings = examine(evidence)
        is_wrong = any(finding.level is Level.WRONG for finding in findings)
        if arguments.json:
            print_json({"status": "wrong" if is_wrong else "ok", "findings": findings})
        else:
            print(findings_text(findings, verbose=arguments.verbose))
        return FAILED if is_wrong else DONE


def _one(arguments: argparse.Namespace, evidence: Evidence) -> int:
    (subject,) = with_verdicts(evidence, [find_subject(evidence, arguments.pid)], arguments.log_file)
    walked = walk(subject, evidence)
    if arguments.json:
        print_json(walk_object(walked, evidence))
    else:
        print(walk_text(walked, evidence))
    return FAILED if walked.obstacles else DONE


def _of_job(arguments: argparse.Namespace, evidence: Evidence) -> int:
    number, text = arguments.job_id
    name = text or str(number)
    subjects = with_verdicts(evidence, subjects_of_job(evidence, name), arguments.log_file)
    walks = [walk(subject, evidence) for subject in subjects]
    if arguments.json:
        print_json({"job": name, "processes": [walk_object(one, evidence) for one in walks]})
    elif walks:
        print(walks_text(walks, evidence))
    else:
        hidden = evidence.survey.unreadable
        remark = f"; {hidden} Python processes of other users could not be looked into (run as root)" if hidden else ""
        print(f"No process of job {name} with PyTorch is here, and none is registered{remark}.")
    return DONE if walks and not any(one.obstacles for one in walks) else FAILED
