"""A real daemon writes records to a disk that fills up and gets room again."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard

from integration.harness import eventually, needs_root, running_daemon, tool


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 kB."""
    mount, umount = tool("mount"), tool("umount")
    path = tmp_path / "disk"
    path.mkdir()
    subprocess.run([mount, "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(path)], check=True)
    yield path
    subprocess.run([umount, str(path)], check=True)


@needs_root
@pytest.mark.root
@pytest.mark.parametrize("rotation", [(), ("--file_rotate_mb=0.05", "--file_keep=1000", "--file_compress=zstd")])
def test_a_full_disk_loses_records_counts_them_and_recovers(
    tmp_path: Path, small_disk: Path, rotation: tuple[str, ...]
) -> None:
    """Every line that is there is whole, and what is not there was counted as lost."""
    flags = ("--reporting_interval_s=0.1", "--use_file", f"--file_path={small_disk / 'metrics.jsonl'}", *rotation)
    filler = small_disk / "filler"
    with running_daemon(tmp_path / "daemon", *flags) as daemon:

        def counted(what: str) -> int:
            (one,) = daemon.ask("exporters")["exporters"]
            return int(one.get(what, 0))

        eventually(lambda: counted("sent") >= 2, what="records on the disk")
        with pytest.raises(OSError, match="No space left"), filler.open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 512)
        eventually(lambda: counted("dropped") >= 2, what="records lost")
        filler.unlink()
        sent = counted("sent")
        eventually(lambda: counted("sent") >= sent + 2, what="records on the disk again")
        (status,) = daemon.ask("exporters")["exporters"]
        assert status["state"] == "ok"
    assert "No space left" in daemon.output
    lines = [line for path in sorted(small_disk.glob("metrics.jsonl*")) for line in read(path)]
    records = [json.loads(line) for line in lines]
    assert len({record["time"] for record in records}) == len(records) >= status["sent"]


def read(path: Path) -> list[bytes]:
    data = path.read_bytes()
    if path.suffix == ".zst":
        data = zstandard.ZstdDecompressor().decompressobj().decompress(data)
    assert data == b"" or data.endswith(b"\n")
    return data.splitlines()
