"""What tables look like, character by character."""

from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.cli import quantities
from dynolog.cli.metric_filter import matches
from dynolog.cli.metrics_table import catalogue_table, chosen, unit, values_table
from dynolog.cli.status_report import report
from dynolog.cli.table import fit, table
from dynolog.cli.trainers_table import no_trainers, trainer_row, trainers_table
from dynolog.model.metric import Kind, Metric, Scope
from dynolog.model.record import Record
from dynolog.model.status import (
    CollectorState,
    CollectorStatus,
    DaemonStatus,
    ExporterStatus,
    IpcStatus,
    RecentTrouble,
    SelfStatus,
)
from dynolog.model.trainer import TrainerState
from dynolog.rpc.messages import MetricsReply
from fakes.services import trainer

NOW = 1_700_000_000_000_000_000
S = 1_000_000_000


def lines(text: str) -> list[str]:
    return text.splitlines()


def test_trainers() -> None:
    text = trainers_table(
        [
            trainer(
                1, host_pid=771, uid=987654, rank=1, world_size=2, job="90210_2", poll_interval_s=5.0, gpus=("0/gi1",)
            ),
            trainer(1, host_pid=0, unverified=True, uid=987654, command="", name="py\x1b[2Jthon"),
            trainer(40, launcher=True, uid=987654, state=TrainerState.BUSY, age_s=7300.0),
        ],
        columns=None,
    )
    assert lines(text) == [
        r"PID    HOST PID  JOB      RANK  GPU    STATE        AGE  LAST POLL  EVERY  USER    COMMAND",
        r"  1  unverified  -           -  -      idle        12 s      1.5 s      -  987654  py\x1b[2Jthon",
        r" 40          40  -           -  -      busy   2 h 1 min      1.5 s      -  987654  (launcher) python train.py",
        r"  1         771  90210_2   1/2  0/gi1  idle        12 s      1.5 s  5.0 s  987654  python train.py",
    ]


def test_a_terminal_has_no_columns_that_tell_nothing_and_no_folder_of_python() -> None:
    trainers = [
        trainer(40, launcher=True, command="/opt/venv/bin/python -m torch.distributed.run"),
        trainer(41, rank=0, world_size=2, command="/opt/venv/bin/python -u train.py"),
        trainer(42, rank=1, world_size=2, command=""),
    ]
    assert [line.split()[:2] + line.split()[8:] for line in lines(trainers_table(trainers, columns=100))][1:] == [
        ["40", "-", "root", "(launcher)", "python", "-m", "torch.distributed.run"],
        ["41", "0/2", "root", "python", "-u", "train.py"],
        ["42", "1/2", "root", "python"],
    ]
    (head, *_) = lines(trainers_table(trainers, columns=100))
    assert head.split() == ["PID", "RANK", "STATE", "AGE", "LAST", "POLL", "EVERY", "USER", "COMMAND"]
    (head, *_) = lines(trainers_table([*trainers, trainer(43, host_pid=900, job="7", gpus=("0",))], columns=200))
    assert head.split()[:6] == ["PID", "HOST", "PID", "JOB", "RANK", "GPU"]
    assert trainers_table([], columns=80) == ""


def test_no_trainers_says_how_to_get_one() -> None:
    assert "KINETO_USE_DAEMON=1" in no_trainers(ipc_enabled=True)
    assert "--enable_ipc_monitor" in no_trainers(ipc_enabled=False)


def test_a_line_is_cut_to_the_terminal() -> None:
    assert fit("abcdef", 4) == "abc…"
    assert fit("abcd", 4) == "abcd"
    assert fit("abcdef", None) == "abcdef"
    assert lines(table(("A", "B"), [("1", "long text")], columns=8)) == ["A  B", "1  long…"]
    assert table(("A",), []) == ""


def test_on_a_narrow_terminal_long_names_and_texts_make_room_for_the_numbers() -> None:
    name = "filesystem_free_bytes./var/lib/some/very/long/mount/point"
    record = Record(
        wall_ns=NOW, source="kernel", values={name: 5, "boot_id": "89d95612-0809-4584-ad39-0399b40d278f", "up": 1}
    )
    text = values_table(MetricsReply(records=(record,), units={name: "By"}, wall_ns=NOW), columns=66)
    assert all(len(line) == 66 and line.endswith("  0.0 s") for line in lines(text)[1:])
    assert [line.split()[:2] for line in lines(text)[1:]] == [
        ["boot_id", "89d95612-…b40d278f"],
        ["filesystem_f…/mount/point", "5"],
        ["up", "1"],
    ]


@given(st.lists(st.lists(st.text(), min_size=2, max_size=2), min_size=1))
def test_a_table_has_one_line_a_row_whatever_the_cells_hold(rows: list[list[str]]) -> None:
    text = table(("A", "B"), rows, right=(1,))
    assert len(text.split("\n")) == len(rows) + 1
    assert all(line.isprintable() for line in text.split("\n"))


REPLY = MetricsReply(
    records=(
        Record(wall_ns=NOW - 2 * S, source="kernel", values={"uptime": 93_000, "cpu_u": 12.5, "boot_id": "ab-cd"}),
        Record(wall_ns=NOW - 1 * S, source="gpu", values={"gpu_power_draw": 0.0123}, labels={"device": "0"}),
    ),
    units={"uptime": "s", "cpu_u": "%", "gpu_power_draw": "W"},
    wall_ns=NOW,
)


def test_latest_values() -> None:
    assert lines(values_table(REPLY, columns=None)) == [
        "METRIC           VALUE  UNIT  SOURCE    AGE  LABELS",
        "gpu_power_draw  0.0123  W     gpu     1.0 s  device=0",
        "boot_id          ab-cd        kernel  2.0 s",
        "cpu_u           12.500  %     kernel  2.0 s",
        "uptime          93,000  s     kernel  2.0 s",
    ]
    assert lines(values_table(chosen(REPLY, "cpu"), columns=None)) == [
        "METRIC   VALUE  UNIT  SOURCE    AGE",
        "cpu_u   12.500  %     kernel  2.0 s",
    ]


def test_filters_are_texts_or_patterns() -> None:
    assert matches("rx_bytes.eth0", "bytes")
    assert not matches("rx_bytes.eth0", "bytes*")
    assert matches("rx_bytes.eth0", "rx_*.eth?")
    assert matches("anything", "")


def test_catalogue() -> None:
    metrics = [
        Metric(name="rx_bytes", kind=Kind.DELTA, unit="By", scope=Scope.NIC, description="Received"),
        Metric(name="cpu_u", kind=Kind.RATIO, unit="%", description="User"),
    ]
    assert lines(catalogue_table(metrics, "", columns=None)) == [
        "METRIC    KIND   UNIT  SCOPE  DESCRIPTION",
        "cpu_u     ratio  %     host   User",
        "rx_bytes  delta  By    nic    Received",
    ]
    assert catalogue_table(metrics, "nothing", columns=None) == ""
    assert catalogue_table(metrics, "nothing", columns=30) == ""


def test_on_a_narrow_terminal_descriptions_have_lines_of_their_own() -> None:
    metrics = [Metric(name="cpu_u", kind=Kind.RATIO, unit="%", description="Share of CPU time of the host: user mode")]
    assert lines(catalogue_table(metrics, "", columns=30)) == [
        "METRIC  KIND   UNIT  SCOPE",
        "cpu_u   ratio  %     host",
        "    Share of CPU time of the",
        "    host: user mode",
    ]


def test_units_as_people_write_them() -> None:
    assert [unit(text) for text in ("By", "{packet}", "1", "%", "ms", "")] == ["B", "packet", "", "%", "ms", ""]


def test_quantities() -> None:
    assert [quantities.size(number) for number in (0, 999, 1000, 999_960, 5e15)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "1.0 MB",
        "5000.0 TB",
    ]
    assert [quantities.duration(number) for number in (-1, 0.04, 9.96, 59.6, 3599.7, 90000)] == [
        "0.0 s",
        "0.0 s",
        "10 s",
        "1 min 0 s",
        "1 h 0 min",
        "1 d 1 h",
    ]
    assert [quantities.microseconds(number) for number in (3, 999.6, 999_960)] == ["3 µs", "1.0 ms", "1.00 s"]
    assert [quantities.value(number) for number in (5, 0.0, 0.00012, 1234.5, "x")] == [
        "5",
        "0.000",
        "0.00012",
        "1,234.500",
        "x",
    ]
    assert quantities.age(0, NOW) == "never"


DAEMON = DaemonStatus(
    version="0.1.0",
    hostname="node1",
    wall_ns=NOW,
    own=SelfStatus(pid=7, cpu_pct=0.1, cpu_pct_1m=0.25, rss_bytes=21_500_000, threads=4, open_files=1, uptime_s=61),
    ipc=IpcStatus(enabled=True, addresses=("@dynolog",), requests=10, replies=9, dropped_replies=1),
    collectors=(
        CollectorStatus(
            name="cpu", state=CollectorState.OK, interval_s=1.0, configured_interval_s=1.0, last_ms=0.12, max_ms=3.4
        ),
        CollectorStatus(
            name="rapl",
            state=CollectorState.UNAVAILABLE,
            interval_s=2.0,
            configured_interval_s=1.0,
            error="powercap: not there",
            stalls=2,
        ),
    ),
    exporters=(ExporterStatus(name="log", destination="stderr", sent=1200, last_success_wall_ns=NOW - S),),
    rpc_addresses=("127.0.0.1:1778",),
    missing=("perf: forbidden: grant CAP_PERFMON",),
    recent=(
        RecentTrouble(wall_ns=NOW - 61_000_000_000, text="the daemon did not run for 60 s"),
        RecentTrouble(wall_ns=NOW - 2_000_000_000, text="exporter \x1b[31m lost records", times=1200),
    ),
)


def utc(wall_ns: int) -> str:
    return datetime.fromtimestamp(wall_ns / 1e9, UTC).strftime("%H:%M:%S")


def test_status_report() -> None:
    """A21: collectors with their last error, exporters with their last success."""
    assert lines(report(DAEMON, [])) == [
        "dynolog 0.1.0 on node1, pid 7, up 1 min 1 s",
        "  cost      0.25 % of a core in the last minute (0.10 % since start)",
        "            21.5 MB resident, 4 threads, 1 open file",
        "  rpc       127.0.0.1:1778",
        "  captures  0 going on",
        "",
        "  COLLECTOR  STATE                 EVERY  LAST ms  MAX ms  REMARKS",
        "  cpu        ok                      1 s     0.12    3.40",
        "  rapl       unavailable  2 s (set: 1 s)     0.00    0.00  powercap: not there; 2 stalls",
        "",
        "  EXPORTER  TO       SENT  DROPPED  QUEUED  LAST SUCCESS  ERROR",
        "  log       stderr  1,200        0       0  1.0 s ago",
        "",
        "The IPC listens on @dynolog",
        "  10 requests, 9 answered, 0 malformed",
        "  1 answer dropped: the trainer had gone or took none",
        "",
        *no_trainers(ipc_enabled=True).splitlines(),
        "",
        "Missing here, and how to get it:",
        "  perf: forbidden: grant CAP_PERFMON",
        "",
        "Went wrong in the last hour:",
        f"  {utc(NOW - 61_000_000_000)} UTC (1 min 1 s ago)  the daemon did not run for 60 s",
        f"  {utc(NOW - 2_000_000_000)} UTC (2.0 s ago, 1,200 times)  exporter \\x1b[31m lost records",
    ]


def test_a_young_daemon_has_no_last_minute_and_losses_are_told_only_when_there_are_some() -> None:
    own = SelfStatus(pid=7, cpu_pct=0.4, cpu_pct_1m=0.4, rss_bytes=21_500_000, threads=4, open_files=1, uptime_s=11)
    ipc = IpcStatus(enabled=True, addresses=("@dynolog",), requests=10, replies=10)
    text = report(msgspec.structs.replace(DAEMON, own=own, ipc=ipc), [])
    assert "  cost      0.40 % of a core since start, the start itself included" in lines(text)
    assert "last minute" not in text
    assert "dropped: the trainer" not in text


def test_status_report_without_exporter_or_ipc_says_what_that_means() -> None:
    """A21: nothing is logged anywhere, and status says so."""
    bare = DaemonStatus(version="0", hostname="n", wall_ns=NOW, own=DAEMON.own, ipc=IpcStatus(enabled=False))
    text = report(bare, [])
    assert "No exporter is on" in text
    assert "The IPC is off" in text
    assert "No collector is on." in text
    assert "KINETO_USE_DAEMON" not in text


@pytest.mark.parametrize(
    ("held", "cell"),
    [((), "-"), (("3",), "3"), (("0", "1"), "0,1"), (("4", "5", "6", "7"), "4-7"), (("0", "2", "3"), "0,2,3")],
)
def test_devices_in_a_row_are_written_as_one(held: tuple[str, ...], cell: str) -> None:
    assert trainer_row(trainer(1, gpus=held), {})[4] == cell
