"""The entry point of dyno: what was typed, run, and every error as one line and an exit code."""

import os
import sys
from collections.abc import Sequence

from dynolog.cli.command import Command
from dynolog.cli.exit_codes import BROKEN_PIPE, FAILED, INTERRUPTED, UNREACHABLE, USAGE, CommandError
from dynolog.cli.parser import Invocation, parse
from dynolog.cli.printable import printable, printable_json
from dynolog.fleet.targets import HostsError
from dynolog.model.errors import DynologError, RequestError
from dynolog.model.json_text import encode_json
from dynolog.rpc.client import CannotReach, NoAnswer, Target
from dynolog.rpc.client_tls import ClientTlsError, client_tls


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code (exit_codes.py)."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a name that the terminal's encoding lacks must not end the command
            stream.reconfigure(errors="backslashreplace")
    try:
        entry, arguments = parse(sys.argv[1:] if argv is None else argv)
        code = _run(entry.load(), arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # The interpreter flushes stdout once more at its end, which must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except OSError as error:  # stdout is a file on a full disk
        print(f"dyno: the output cannot be written: {error.strerror or error}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except KeyboardInterrupt:  # before the command itself could say what it means
        return INTERRUPTED
    return code


def _run(command: Command, arguments: Invocation) -> int:
    try:
        target = Target(
            hostname=arguments.hostname,
            port=arguments.port,
            unix=arguments.unix,
            token_file=arguments.token_file,
            timeout_s=arguments.timeout,
            tls=client_tls(
                authority=arguments.tls_ca,
                certificate=arguments.tls_cert,
                key=arguments.tls_key,
                server_name=arguments.tls_server_name,
                directory=arguments.certs_dir,
            ),
        )
        if hosts := arguments.hosts_given:
            from dynolog.cli.fleet.many_hosts import run_on_hosts  # noqa: PLC0415 - asyncio, only for many hosts

            return run_on_hosts(arguments, target, hosts)
        return command.run(arguments, target)
    except DynologError as error:
        return _fail(arguments, error, *_judge(error))
    except KeyboardInterrupt:
        return _fail(arguments, "interrupted", "interrupted", INTERRUPTED)


def _judge(error: DynologError) -> tuple[str, int]:
    """The code that a program may test, and the exit code."""
    match error:
        case CannotReach():
            return "cannot_reach", UNREACHABLE
        case NoAnswer():
            return "no_answer", UNREACHABLE
        case HostsError() | ClientTlsError():
            return "hosts" if isinstance(error, HostsError) else "tls", USAGE
        case CommandError():
            return "failed", error.exit_code
        case RequestError():
            return error.code, FAILED
        case _:
            return "error", FAILED


def _fail(arguments: Invocation, error: DynologError | str, code: str, exit_code: int) -> int:
    """One line on stderr; with --json the same as an object on stdout, unless the command has printed its own."""
    if arguments.json and not getattr(arguments, "printed", False):
        text = encode_json({"status": "failed", "code": code, "error": str(error)}).decode()
        print(printable_json(text))
    print(f"dyno {arguments.command}: {printable(str(error))}", file=sys.stderr)
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
