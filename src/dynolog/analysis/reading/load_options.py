"""What of a trace is loaded."""

import msgspec

from dynolog.analysis.reading.categories import Category


class LoadOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Less loaded is less memory. Times in ns, absolute (the same clock as `begin_ns`); an event that touches the window is in it.

    `categories` None means all, but Python frames only with `python_frames`: they are often most of a file and few answers need them.
    """

    from_ns: int | None = None
    to_ns: int | None = None
    categories: frozenset[Category] | None = None
    python_frames: bool = False
    arguments: bool = True
    flows: bool = True
    counters: bool = True

    def wanted(self, category: Category) -> bool:
        """Whether events of a kind become rows."""
        if self.categories is not None:
            return category in self.categories
        return self.python_frames or category is not Category.PYTHON_FUNCTION
