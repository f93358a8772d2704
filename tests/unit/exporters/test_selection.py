"""Which records an exporter gets, under which names, how often."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.exporters.selection.rules import Rules
from dynolog.exporters.selection.selection import Selection
from dynolog.model.metric import Scope
from dynolog.model.record import Record
from fakes.small_catalogue import CATALOGUE

S = 1_000_000_000


OWNERS = {("cpu_u", Scope.HOST): "cpu", ("mips", Scope.HOST): "perf", ("rx_bytes", Scope.NIC): "network"}


def selection(**rules: object) -> Selection:
    return Selection(Rules(**rules), CATALOGUE, OWNERS)  # type: ignore[arg-type]


def record(seconds: float, source: str = "kernel", every: float = 1.0, **values: float | str) -> Record:
    return Record(
        wall_ns=round(seconds * S),
        source=source,
        values={key.replace("__", "."): value for key, value in values.items()},
        intervals_ns={"cpu": round(every * S), "network": round(every * S)},
    )


ALL = record(1, cpu_u=1.0, cpu_u_node0=2.0, cpu_u__cpu3=3.0, uptime=9, rx_bytes__eth0=5, rx_bytes__lo=6)


def keys(made: Selection, given_record: Record = ALL) -> list[str]:
    return [key for got in made.apply([given_record]) for key in got.values]


def test_without_rules_records_pass_as_they_are() -> None:
    (got,) = selection().apply([ALL])
    assert got is ALL


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({"metrics": ("cpu_u",)}, ["cpu_u", "cpu_u_node0", "cpu_u.cpu3"]),
        ({"metrics": ("cpu_u.cpu*", "uptime")}, ["cpu_u.cpu3", "uptime"]),
        ({"metrics": ("rx_*",), "without": ("*.lo",)}, ["rx_bytes.eth0"]),
        ({"without": ("cpu_*", "rx_bytes")}, ["uptime"]),
        ({"sources": ("gpu",)}, []),
        ({"sources": ("k*",), "metrics": ("uptime",)}, ["uptime"]),
    ],
)
def test_metrics_are_chosen_by_name_or_key(rules: dict[str, object], expected: list[str]) -> None:
    assert keys(selection(**rules)) == expected


def test_labels_stay_with_the_values_they_are_about() -> None:
    gpu = Record(wall_ns=1, source="gpu", values={"gpu_name": "H200", "gpu_power_draw": 90.0}, labels={"device": "0"})
    assert keys(selection(metrics=("gpu_power_draw",)), gpu) == ["gpu_name", "gpu_power_draw"]
    assert keys(selection(metrics=("cpu_u",)), gpu) == []
    assert keys(selection(metrics=("uptime",)), record(1, uptime=1, boot_id="ab")) == ["uptime"]
    assert keys(selection(without=("gpu_name",)), gpu) == ["gpu_power_draw"]


def test_names_change_in_every_scope_and_in_the_catalogue() -> None:
    made = selection(rename={"cpu_u": "cpu_user", "port_rcv_data": "received_words"})
    data = record(1, cpu_u=1.0, cpu_u_node0=2.0, cpu_u__cpu3=3.0, mlx5_0__port_rcv_data=4, other=1)
    assert keys(made, data) == ["cpu_user", "cpu_user_node0", "cpu_user.cpu3", "mlx5_0.received_words", "other"]
    for key in ("cpu_user", "cpu_user_node0", "cpu_user.cpu3", "mlx5_0.received_words"):
        assert made.renamed_catalogue.resolve(key) is not None
    assert made.renamed_catalogue.resolve("cpu_u") is None
    assert made.renamed_owners[("cpu_user", Scope.HOST)] == "cpu"


def test_a_longer_interval_sums_deltas_takes_the_last_gauge_and_averages_ratios_and_rates() -> None:
    made = selection(interval_s=10.0)
    out: list[Record] = []
    for second in range(1, 21):
        out += made.apply([record(second + 0.003, cpu_u=float(second), mips=10.0, uptime=second, rx_bytes__eth0=7)])
    assert [got.wall_ns for got in out] == [10_003_000_000, 20_003_000_000]
    assert out[0].values == {"cpu_u": 5.5, "mips": 10.0, "uptime": 10, "rx_bytes.eth0": 70}
    assert out[1].values == {"cpu_u": 15.5, "mips": 10.0, "uptime": 20, "rx_bytes.eth0": 70}
    assert out[1].intervals_ns == {"cpu": 10 * S, "network": 10 * S}


def test_averages_are_weighted_by_the_measured_interval() -> None:
    """(10 % over 1 s, 40 % over 3 s) is 32.5 % over 4 s."""
    made = selection(interval_s=4.0)
    assert made.apply([record(1, cpu_u=10.0)]) == []
    (got,) = made.apply([record(4, cpu_u=40.0, every=3.0)])
    assert got.values["cpu_u"] == pytest.approx(32.5)


def test_an_interval_no_longer_than_that_of_the_records_changes_nothing() -> None:
    for interval_s in (1.0, 0.5):
        made = selection(interval_s=interval_s)
        out = [got for second in range(1, 6) for got in made.apply([record(second + 0.01, uptime=second)])]
        assert [got.values["uptime"] for got in out] == [1, 2, 3, 4, 5]


def test_what_was_missing_for_a_while_is_over_what_there_was() -> None:
    made = selection(interval_s=4.0)
    out: list[Record] = []
    out += made.apply([record(1, cpu_u=10.0), record(2), record(3, cpu_u=30.0, rx_bytes__eth0=5), record(4, uptime=1)])
    assert [got.values for got in out] == [{"cpu_u": 20.0, "rx_bytes.eth0": 5, "uptime": 1}]


def test_devices_and_their_labels_are_kept_apart_and_given_up_when_they_are_gone() -> None:
    def gpu(second: float, device: str, job: str, power: float) -> Record:
        return Record(
            wall_ns=round(second * S),
            source="gpu",
            values={"gpu_power_draw": power},
            labels={"device": device, "job_id": job},
            intervals_ns={"gpu": S},
        )

    made = selection(interval_s=10.0)
    out = [got for second in range(1, 6) for got in made.apply([gpu(second, "0", "a", 100.0 + second)])]
    out += [
        got
        for second in range(6, 41)
        for got in made.apply([gpu(second, "0", "b", 200.0 + second), gpu(second, "1", "b", 300.0)])
    ]
    seen = [(got.wall_ns // S, got.labels["device"], got.labels["job_id"], got.values["gpu_power_draw"]) for got in out]
    assert seen[:2] == [(10, "0", "b", 210.0), (10, "1", "b", 300.0)]
    # The job that ended within a window is not lost.
    assert (5, "0", "a", 105.0) in seen
    assert len(seen) == 9


def test_the_rest_comes_at_the_end() -> None:
    made = selection(interval_s=10.0)
    assert made.apply([record(11, rx_bytes__eth0=5), record(12, rx_bytes__eth0=6)]) == []
    assert [got.values for got in made.flush()] == [{"rx_bytes.eth0": 11}]
    assert made.flush() == []


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 1000)), min_size=1, max_size=60),
    st.sampled_from([0.7, 2.0, 5.0, 60.0]),
)
def test_no_delta_is_lost_or_counted_twice(steps: list[tuple[int, int]], interval_s: float) -> None:
    """Whatever the distances of the records, steps of the clock back included."""
    made = selection(interval_s=interval_s)
    now, out = 1000.0, []
    for tenths, added in steps:
        now += -3.0 if tenths == 40 else tenths / 10
        out += made.apply([record(now, every=tenths / 10, rx_bytes__eth0=added)])
    out += made.flush()
    assert sum(got.values["rx_bytes.eth0"] for got in out) == sum(added for _, added in steps)  # type: ignore[misc]
    assert sum(got.intervals_ns["cpu"] for got in out) == sum(round(tenths / 10 * S) for tenths, _ in steps)
