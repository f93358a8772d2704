"""A spool on a file system that is really full."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from dynolog.exporters.delivery.outbox import Outbox
from dynolog.exporters.delivery.payload import Payload
from dynolog.exporters.delivery.spool import Spool
from dynolog.pipeline.losses import Losses
from fakes.stepped_time import SteppedTime


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 512 kB."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(tmp_path)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount a tmpfs: {mounted.stderr.strip()}")
    yield tmp_path
    subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


@pytest.mark.root
def test_spooling_goes_off_and_on_again_and_everything_leaves_in_order(
    small_disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    time = SteppedTime()
    losses = Losses("test", time)
    box = Outbox(
        "test",
        time,
        losses,
        max_records=2000,
        max_bytes=10_000_000,
        spool=Spool(str(small_disk / "spool"), 100_000_000),
    )
    for number in range(300):
        box.put(Payload(body=f"{number:08d}".encode() + bytes(3000), records=1))
    assert box.levels.spool == "off: No space left on device"
    assert 100 < box.levels.records < 200
    assert caplog.text.count("spooling is off") == 1
    sent: list[int] = []
    while len(sent) < 290:
        payload = box.take()
        assert payload is not None
        sent.append(int(payload.body[:8]))
        box.finish()
    time.run(11)
    box.put(Payload(body=b"00000300", records=1))
    assert box.levels.spool == "on"
    assert box.levels.records == 0
    while (payload := box.take()) is not None:
        sent.append(int(payload.body[:8]))
        box.finish()
    assert sent == list(range(301))
    assert losses.total == 0
    box.close()
