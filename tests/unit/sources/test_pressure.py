"""PSI lines and files."""

import errno
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.model.errors import SourceUnavailable
from dynolog.sources.host_files import HostFiles, KernelFile
from dynolog.sources.pressure import PressureReader, Stall, parse
from fakes.collector_context import HostTree

SOME = b"some avg10=1.72 avg60=0.75 avg300=0.30 total=4838357\n"
FULL = b"full avg10=0.50 avg60=0.00 avg300=0.00 total=17\n"


def test_each_line_is_optional() -> None:
    """D16: no `full` line for the CPU on older kernels."""
    assert parse(SOME) == {"some": Stall(1.72, 4838357)}
    assert parse(FULL) == {"full": Stall(0.5, 17)}


@pytest.mark.parametrize(
    "bad",
    [
        b"some avg10=x avg60=0 avg300=0 total=1\n",
        b"some avg10=1.0\n",
        b"some\n",
        b"some avg10=nan total=5\n",
        b"most avg10=1 total=2\n",
    ],
)
def test_a_malformed_line_costs_only_itself(bad: bytes) -> None:
    assert parse(bad + FULL) == {"full": Stall(0.5, 17)}


def test_a_missing_file_costs_only_its_resource(host_tree: HostTree) -> None:
    """D16: no irq file before Linux 6.1."""
    for resource in ("cpu", "memory", "io"):
        host_tree.write(f"proc/pressure/{resource}", SOME + FULL)
    assert set(PressureReader(HostFiles(str(host_tree.root))).read()) == {"cpu", "memory", "io"}


def test_psi_that_is_switched_off_is_said_with_its_remedy(host_tree: HostTree, monkeypatch: pytest.MonkeyPatch) -> None:
    """D15: the files open, and answer EOPNOTSUPP to read. How often to ask again is the scheduler's business."""
    host_tree.write("proc/pressure/cpu", SOME)
    answers = True

    def refuse(file: KernelFile) -> bytes:
        if answers:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        return SOME

    monkeypatch.setattr(KernelFile, "read", refuse)
    reader = PressureReader(HostFiles(str(host_tree.root)))
    for _ in range(2):
        with pytest.raises(SourceUnavailable, match=r"not supported.*psi=1"):
            reader.read()
    answers = False
    assert reader.read()["cpu"]["some"].total_us == 4838357


def test_a_file_that_is_not_there_is_not_looked_for_at_every_round(
    host_tree: HostTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    host_tree.write("proc/pressure/cpu", SOME)
    tried: list[str] = []
    real = KernelFile.read

    def count(file: KernelFile) -> bytes:
        tried.append(file.path.rpartition("/")[2])
        return real(file)

    monkeypatch.setattr(KernelFile, "read", count)
    reader = PressureReader(HostFiles(str(host_tree.root)))
    for _ in range(60):
        reader.read()
    assert (tried.count("cpu"), tried.count("irq")) == (60, 1)
    reader.read()
    assert tried.count("irq") == 2


def test_no_line_at_all_is_unavailable(host_tree: HostTree) -> None:
    host_tree.write("proc/pressure/cpu", b"nonsense\n")
    with pytest.raises(SourceUnavailable):
        PressureReader(HostFiles(str(host_tree.root))).read()


PIECES = st.sampled_from([b"some", b"full", b" ", b"\n", b"avg10=", b"total=", b"1", b"inf", b"=", b"\xff"])


@given(st.binary(max_size=200) | st.lists(PIECES, max_size=40).map(b"".join))
def test_any_bytes_parse(data: bytes) -> None:
    assert set(parse(data)) <= {"some", "full"}
