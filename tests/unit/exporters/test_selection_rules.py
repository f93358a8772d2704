"""The file of --exporters_config, and what is said of a bad one."""

from pathlib import Path

import msgspec
import pytest

from dynolog.exporters.selection.rules import Rules, read_rules
from dynolog.exporters.selection.selected_exporter import Selections
from dynolog.exporters.spec import ExporterContext, ExporterSpec
from dynolog.model.errors import FlagError
from dynolog.model.record import Record
from fakes.recording_exporter import RecordingExporter
from fakes.scripted_transport import delivery_context
from fakes.small_catalogue import CATALOGUE

NAMES = ("log", "otlp", "prometheus")


def written(directory: Path, text: str) -> str:
    path = directory / "exporters.toml"
    path.write_text(text)
    return str(path)


def test_a_file_gives_rules_by_exporter(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
        [otlp]
        sources = ["kernel"]
        metrics = ["cpu_*", "rx_bytes.eth*", "cpu_u_node0"]
        without = ["uptime"]
        interval_s = 10
        rename = { cpu_u = "cpu_user" }
        [log]
        """,
    )
    assert read_rules(path, NAMES, CATALOGUE) == {
        "otlp": Rules(
            sources=("kernel",),
            metrics=("cpu_*", "rx_bytes.eth*", "cpu_u_node0"),
            without=("uptime",),
            interval_s=10.0,
            rename={"cpu_u": "cpu_user"},
        ),
        "log": Rules(),
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[otlp\n", r"is not TOML: .*line 1"),
        ("[otpl]\n", r"\[otpl\]: there is no such exporter: did you mean otlp\?; there are log, otlp, prometheus"),
        ("otlp = 1\n", r"\[otlp\] should be a table"),
        ("[otlp]\ninterval = 3\n", r"interval means nothing: did you mean interval_s\?"),
        ("[otlp]\ninterval_s = '3'\n", r"\[otlp\]: interval_s should be a number of seconds"),
        ("[otlp]\ninterval_s = true\n", "interval_s should be a number"),
        ("[otlp]\ninterval_s = -1\n", "interval_s should be a number"),
        ("[otlp]\ninterval_s = nan\n", "interval_s should be a number"),
        ("[otlp]\nmetrics = 'cpu_u'\n", r'metrics should be a list of texts: type metrics = \["one", "two\*"\]'),
        ("[otlp]\nmetrics = []\n", "metrics is empty"),
        ("[otlp]\nsources = [1]\n", "sources should be a list of texts"),
        ("[otlp]\nmetrics = ['cpu_x']\n", r"no metric is called cpu_x: did you mean cpu_u\?"),
        ("[otlp]\nwithout = ['zzz*']\n", r"no metric is called zzz\*; `dyno metrics` lists them"),
        ("[otlp]\nrename = ['a']\n", "rename should be a table"),
        ("[otlp.rename]\nuptim = 'x'\n", r"no metric is called uptim: did you mean uptime\?"),
        ("[otlp.rename]\nuptime = 'a b'\n", "cannot be renamed to 'a b'"),
        ("[otlp.rename]\nuptime = 'mips'\n", "uptime cannot become mips: another metric has that name"),
        ("[otlp.rename]\nuptime = 'x'\nmips = 'x'\n", "two metrics would be called x"),
    ],
)
def test_a_bad_file_says_what_to_type(tmp_path: Path, text: str, said: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(FlagError, match=said) as caught:
        read_rules(path, NAMES, CATALOGUE)
    assert f"--exporters_config={path}" in str(caught.value)


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(FlagError, match="cannot be read: No such file"):
        read_rules(str(tmp_path / "none.toml"), NAMES, CATALOGUE)


def context() -> ExporterContext:
    return msgspec.structs.replace(delivery_context(), catalogue=CATALOGUE)


def one(seconds: int, **values: int) -> Record:
    return Record(wall_ns=seconds * 10**9, source="kernel", values=values, intervals_ns={"cpu": 10**9})


def test_rules_are_read_again_and_what_waited_is_not_lost(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = written(tmp_path, "[log]\nmetrics = ['uptime']\ninterval_s = 10\n")
    recording = RecordingExporter()
    selections = Selections(path, NAMES, context())
    made = selections.make(ExporterSpec(name="log", summary="", flags=(), factory=lambda _context: recording))
    made.export([one(11, uptime=1, mips=2)])
    written(tmp_path, "[log]\nmetrics = ['mips']\nrename = { mips = 'x' }\n")
    selections.reload()
    assert "rename takes effect at the next start" in caplog.text
    made.export([one(12, uptime=1, mips=2)])
    assert [record.values for record in recording.records] == [{"uptime": 1}, {"mips": 2}]
    written(tmp_path, "[nonsense")
    selections.reload()
    assert "not reloaded" in caplog.text
    made.export([one(13, mips=3)])
    assert recording.records[-1].values == {"mips": 3}
    made.close()
    assert recording.closed.is_set()


def test_the_end_delivers_what_waits(tmp_path: Path) -> None:
    path = written(tmp_path, "[log]\ninterval_s = 60\n")
    recording = RecordingExporter()
    made = Selections(path, NAMES, context()).make(
        ExporterSpec(name="log", summary="", flags=(), factory=lambda _context: recording)
    )
    made.export([one(11, uptime=1)])
    assert recording.records == []
    made.close()
    assert [record.values for record in recording.records] == [{"uptime": 1}]


def test_without_a_file_exporters_are_as_they_are() -> None:
    recording = RecordingExporter()
    made = Selections("", NAMES, context()).make(
        ExporterSpec(name="log", summary="", flags=(), factory=lambda _context: recording)
    )
    assert made is recording
