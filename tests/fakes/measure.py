"""One round of a collector between two states of a host's files."""

from collections.abc import Callable, Mapping
from typing import Any

from dynolog.collectors.spec import Collector, Context, Values
from dynolog.model.flag import FlagValue
from fakes.collector_context import HostTree

Files = Mapping[str, str | bytes | None]


def put_files(tree: HostTree, files: Files) -> None:
    """Write the files; None removes one."""
    for path, content in files.items():
        if content is None:
            (tree.root / path).unlink(missing_ok=True)
        else:
            tree.write(path, content)


def measure(
    tree: HostTree,
    factory: Callable[[Context], Collector[Any]],
    before: Files,
    after: Files,
    elapsed_s: float = 1.0,
    **flags: FlagValue,
) -> Values:
    """The values of the interval in which `before` became `after`."""
    put_files(tree, before)
    collector = factory(tree.context(**flags))
    first = collector.read()
    put_files(tree, after)
    return collector.compute(first, collector.read(), elapsed_s)
