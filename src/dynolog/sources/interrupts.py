"""Interrupts by class (`/proc/interrupts`, proc_interrupts(5)): only the lines with a name, not the numbered devices."""

import msgspec

from dynolog.model.errors import SourceUnavailable
from dynolog.sources.host_files import HostFiles, unavailable

# On ARM inter-processor interrupts are numbered, and their numbers differ between kernels: the text tells them apart.
_IPI_CLASSES = {
    b"Rescheduling interrupts": "res",
    b"Function call interrupts": "cal",
    b"IRQ work interrupts": "iwi",
}
_ONE_COUNT = (b"err", b"mis")


class InterruptCounts(msgspec.Struct, frozen=True):
    """Counts by class in lower case (`nmi`, `loc`), summed over the CPUs that are online, which are named by `header`.

    A CPU that comes or goes takes its counts with it, so only readings with the same header can be compared.
    """

    header: bytes
    classes: dict[str, int]


class InterruptsParser:
    """Finds the named lines from the end of the file, where the kernel prints them.

    With 256 CPUs and 600 devices the file has 1.7 MB, so the numbered lines before are never looked at; a line that has not
    changed since last time (most never do) is not summed again.
    """

    # No kernel has as many classes; it bounds the search in a file that is not what it should be.
    LINES = 64

    def __init__(self) -> None:
        self._sums: dict[bytes, tuple[bytes, tuple[str, int] | None]] = {}

    def parse(self, data: bytes | bytearray, length: int) -> InterruptCounts:
        """Counts of the classes in the first `length` bytes; a line that does not parse is left out.

        Raises ValueError when the header is missing.
        """
        header = bytes(data[: max(data.find(b"\n", 0, length), 0)])
        cpus = header.count(b"CPU")
        if not cpus:
            raise ValueError("no header that names the CPUs")
        classes: dict[str, int] = {}
        end = length
        for _ in range(self.LINES):
            start = data.rfind(b"\n", 0, end)
            colon = data.find(b":", start + 1, end)
            label = bytes(data[start + 1 : colon]).strip() if colon >= 0 else b""
            if start < 0 or label.isdigit():
                break
            if label and (found := self._count(label, bytes(data[start + 1 : end]), cpus)):
                classes[found[0]] = found[1]
            end = start
        return InterruptCounts(header, classes)

    def _count(self, label: bytes, line: bytes, cpus: int) -> tuple[str, int] | None:
        known = self._sums.get(label)
        if known and known[0] == line:
            return known[1]
        counted = count_line(line, cpus)
        if len(self._sums) < self.LINES or known:
            self._sums[label] = (line, counted)
        return counted


def count_line(line: bytes, cpus: int) -> tuple[str, int] | None:
    """The class and the sum of one line; None for one that is not known or does not parse.

    A line has a count for each CPU and a description, or (ERR, MIS) a single count and nothing else.
    """
    label, _, rest = line.partition(b":")
    name = label.strip().lower()
    columns = rest.split(None, cpus)
    if len(columns) != (1 if name in _ONE_COUNT else cpus) and len(columns) != cpus + 1:
        return None
    try:
        total = sum(map(int, columns[:cpus]))
    except ValueError:
        return None
    if name.startswith(b"ipi"):
        found = _IPI_CLASSES.get(columns[-1].strip())
        return (found, total) if found else None
    return name.decode("latin-1"), total


class InterruptsReader:
    """Reads `/proc/interrupts` again and again. Raises SourceUnavailable when it cannot."""

    def __init__(self, host: HostFiles) -> None:
        self._file = host.file("proc/interrupts")
        self._parser = InterruptsParser()
        self._buffer = bytearray(16384)

    def read(self) -> InterruptCounts:
        """One reading."""
        try:
            return self._parser.parse(self._buffer, self._file.read_into(self._buffer))
        except OSError as error:
            raise unavailable("/proc/interrupts", error) from error
        except ValueError as error:
            raise SourceUnavailable("/proc/interrupts", str(error)) from error
