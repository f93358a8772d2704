"""Contexts for collectors on a tree of files that a test writes."""

from pathlib import Path

from dynolog.collectors.registry import COLLECTORS
from dynolog.collectors.spec import Context, Values
from dynolog.model.flag import FlagValue, Settings
from dynolog.sources.host_files import HostFiles


class FakeNotices:
    """Keeps what was said."""

    def __init__(self) -> None:
        self.said: dict[str, str] = {}

    def say(self, key: str, sentence: str) -> None:
        self.said[key] = sentence


class HostTree:
    """A root directory whose files a test writes; rewriting keeps the inode, as procfs does."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.notices = FakeNotices()

    def write(self, path: str, text: str | bytes) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)

    def context(self, **flags: FlagValue) -> Context:
        declared = {flag.name: flag for spec in COLLECTORS for flag in spec.flags}
        return Context(
            host=HostFiles(str(self.root)), settings=Settings(declared.values(), flags), notices=self.notices
        )


def numbers(values: Values) -> dict[str, float]:
    """The values that are numbers, for arithmetic in a test."""
    return {key: value for key, value in values.items() if not isinstance(value, str)}
