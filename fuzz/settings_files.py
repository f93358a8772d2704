"""What an operator writes: flag files, rules of exporters, rules of access."""

import os
from collections.abc import Callable
from contextlib import ExitStack

from dynolog.collectors.registry import declared_catalogue
from dynolog.daemon.flag_parser import FlagParser
from dynolog.daemon.flags import declared_flags
from dynolog.exporters.selection.rules import read_rules
from dynolog.model.errors import FlagError
from dynolog.model.flag import Settings
from dynolog.rpc.authz_file import read_policy
from fuzz.target import Feed, Target


def file_feed(directory: str, stack: ExitStack, read: Callable[[str], object]) -> Feed:
    """Feeds by way of a file that nobody else may write."""
    path = os.path.join(directory, "input")
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    stack.callback(os.close, fd)

    def feed(data: bytes) -> None:
        os.ftruncate(fd, 0)
        os.pwrite(fd, data, 0)
        read(path)

    return feed


def _flag_file(directory: str, stack: ExitStack) -> Feed:
    flags = declared_flags()
    parser = FlagParser(flags)

    def read(path: str) -> None:
        parsed = parser.parse([f"--flagfile={path}"])
        Settings(flags, parsed.given)

    feed = file_feed(directory, stack, read)

    def only_itself(data: bytes) -> None:
        # A name of another file would read that: another test's business.
        if b"flagfile" not in data:
            feed(data)

    return only_itself


def _rules(directory: str, stack: ExitStack) -> Feed:
    catalogue = declared_catalogue()
    return file_feed(directory, stack, lambda path: read_rules(path, ("log", "file", "prometheus"), catalogue))


def _access(directory: str, stack: ExitStack) -> Feed:
    feed = file_feed(directory, stack, read_policy)

    def without_tokens(data: bytes) -> None:
        # The files that it names are read as well.
        if b"token_file" not in data:
            feed(data)

    return without_tokens


TARGETS: tuple[Target, ...] = (
    Target("flag_file", _flag_file, (FlagError,), share=0.2),
    Target("exporter_rules", _rules, (FlagError,), share=0.2),
    Target("access_rules", _access, (FlagError,), share=0.2),
)
