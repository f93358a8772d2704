"""The public Dynolog's two relays: every byte as it sends them."""

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from dynolog import __version__
from dynolog.exporters import fbrelay, udsrelay
from dynolog.exporters.fbrelay import RelayEncoder
from dynolog.exporters.udsrelay import UdsRelayEncoder
from dynolog.model.record import Record
from fakes.exporter_context import exporter_context, record
from fakes.receivers import StreamReceiver

KERNEL = record({"cpu_i": 71.3424, "uptime": 86400, "nan": float("nan")})
GPU = record({"gpu_power_draw": 300.0, "gpu_name": "NVIDIA H200"}, source="gpu", device="3", job_id="90210_2")
AGENT = f'{{"hostname":"gpu17","name":"gpu17","type":"dyno","version":"{__version__}"}}'
KERNEL_OBJECT = (
    f'{{"@timestamp":"2022-07-21T23:42:34.141Z","agent":{AGENT},"backend":0,"dyno":{{"cpu_i":"71.342","uptime":86400}},'
    '"event":{"module":"dyno"},"stack_metrics":false}'
)
GPU_OBJECT = (
    f'{{"@timestamp":"2022-07-21T23:42:34.141Z","agent":{AGENT},"backend":0,"dyno.device3":{{"gpu_name":"NVIDIA H200",'
    '"gpu_power_draw":"300.000","job_id":"90210_2"},"event":{"module":"dyno.device3"},"stack_metrics":false}'
)


def test_the_fb_relay_gets_objects_with_nothing_between_them() -> None:
    with StreamReceiver.tcp() as receiver:
        exporter = fbrelay.make(exporter_context(use_fbrelay=True, fbrelay_port=receiver.port))
        exporter.export([KERNEL, GPU])
        receiver.wait_for(b"device3")
        receiver.wait_until(lambda: receiver.text.endswith(b'"stack_metrics":false}'))
        exporter.close()
        assert receiver.text == (KERNEL_OBJECT + GPU_OBJECT).encode()
        assert exporter.progress().sent == 2


def test_a_relay_that_comes_back_gets_what_was_made_meanwhile() -> None:
    with StreamReceiver.tcp() as receiver:
        port = receiver.port
        exporter = fbrelay.make(exporter_context(use_fbrelay=True, fbrelay_port=port))
        exporter.export([KERNEL])
        receiver.wait_for(b"stack_metrics")
    exporter.export([GPU])
    with StreamReceiver.tcp(port) as receiver:
        receiver.wait_for(b'"stack_metrics":false}')
        assert receiver.received == [GPU_OBJECT.encode()]
    exporter.close()


def test_the_uds_relay_gets_a_line_of_category_and_object(socket_dir: str) -> None:
    path = Path(socket_dir) / "relay"
    with StreamReceiver.unix(path) as receiver:
        exporter = udsrelay.make(exporter_context(use_udsrelay=True, udsrelay_socket_path=str(path)))
        exporter.export([KERNEL, GPU])
        receiver.wait_until(lambda: receiver.text.count(b"\n") == 2)
        exporter.close()
    assert receiver.text.decode().split("\n") == [
        '::dynolog_cpu_monitor,{"cpu_i":"71.342","hostname":"gpu17","interval_s":1,"t":1658446954,"uptime":86400}',
        (
            '::dynolog_dcgm_gpu_monitor,{"device":3,"gpu_name":"NVIDIA H200","gpu_power_draw":"300.000","hostname":"gpu17",'
            '"interval_s":1,"job_id":"90210_2","t":1658446954}'
        ),
        "",
    ]


def test_the_interval_is_the_measured_one_in_whole_seconds() -> None:
    def line(**intervals_ns: int) -> str:
        made = Record(wall_ns=10**9, source="perf", values={"mips": 1.0}, intervals_ns=intervals_ns)
        return UdsRelayEncoder("h").encode([made])[0].body.decode()

    assert line(perf=10_002_000_000) == '::dynolog_perf_monitor,{"hostname":"h","interval_s":10,"mips":"1.000","t":1}\n'
    assert '"interval_s":1,' in line(perf=100_000_000)
    assert "interval_s" not in line()


@given(
    st.dictionaries(st.text(max_size=9), st.integers() | st.floats() | st.text(max_size=9), max_size=6),
    st.text(max_size=9),
    st.text(max_size=9),
)
def test_no_name_breaks_the_frame(values: dict[str, int | float | str], host: str, device: str) -> None:
    """A relay finds objects by their braces, or lines by their ends, whatever devices are called."""
    made = Record(wall_ns=10**9, source="kernel", values=values, labels={"device": device})
    (relayed,) = RelayEncoder(host).encode([made])
    read = json.loads(relayed.body)
    assert read["agent"]["hostname"] == host
    assert read["event"]["module"] == f"dyno.device{device}"
    assert set(read) == {"@timestamp", "agent", "backend", "event", "stack_metrics", f"dyno.device{device}"}
    (line,) = UdsRelayEncoder(host).encode([made])
    assert line.body.count(b"\n") == 1
    category, _, text = line.body.decode().partition(",")
    assert category == "::dynolog_dcgm_gpu_monitor"
    assert json.loads(text)["hostname"] == host
