"""dyno trace on files: what is typed, what is said, and how it ends."""

import builtins
import gzip
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from dynolog.cli.main import main
from dynolog.cli.parser import parse
from dynolog.cli.trace_files.slice import moment, steps
from fakes.traces import RECORDED, operation, trace

ROCM = str(RECORDED / "public" / "mi250_rocm62.json.gz")


def run(*words: str) -> int:
    return main(["trace", *words])


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["trace"], "trace"),
        (["trace", "300bb5b7112f7165"], "trace"),
        (["trace", "decade"], "trace"),
        (["trace", "info", "x"], "trace info"),
        (["--timeout", "5", "trace", "validate", "x", "--json"], "trace validate"),
        (["--token-file", "trace", "trace", "info", "x"], "trace info"),
        (["trace-info", "x"], "trace info"),
        (["trace_info", "x"], "trace info"),
    ],
)
def test_a_file_command_is_trace_and_a_word_and_all_else_a_request(words: list[str], name: str) -> None:
    assert parse(words)[0].name == name


def test_the_help_of_a_file_command_has_both_words(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run("slice", "--help")
    assert capsys.readouterr().out.startswith("usage: dyno trace slice ")


def test_validate_says_every_problem_with_its_place_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.json"
    bad.write_bytes(trace([operation("a", 1, 1), '{"ph": "X", "name": oops, "ts": 1}', operation("b", 3, 1)])[:-20])
    assert run("validate", ROCM) == 0
    assert ": valid, 220 events" in capsys.readouterr().out
    assert run("validate", ROCM, str(bad), str(tmp_path / "none.json")) == 1
    out = capsys.readouterr().out
    assert "bad.json: not valid, 2 events" in out
    assert "the file is not whole: " in out
    offset = bad.read_bytes().index(b'{"ph": "X", "name": oops')
    line = bad.read_bytes()[:offset].count(b"\n") + 1
    assert f"1 of 3 events could not be read and were dropped (first at byte {offset}, line {line})" in out
    assert f"line {line}, byte {offset}: an event that cannot be read was dropped" in out
    assert "none.json: not valid, 0 events\n  cannot be read: No such file or directory" in out


def test_validate_notes_what_viewers_would_drop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.json").write_bytes(trace([operation("a", 1.5, 9), operation("b", 5, 9)]))
    assert run("validate", str(tmp_path / "t.json"), "--json") == 0
    (verdict,) = json.loads(capsys.readouterr().out)["files"]
    assert any(note.startswith("1 events overlap others of their track") for note in verdict["notes"])


def test_g15_launches_without_kernels_are_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    launches = [operation("cudaLaunchKernel", i, 0.5, cat="cuda_runtime", args={"correlation": i}) for i in range(10)]
    kernels = [operation("k", i, 0.5, cat="kernel", pid=0, args={"correlation": i}) for i in range(2)]
    (tmp_path / "t.json").write_bytes(trace(launches + kernels))
    run("validate", str(tmp_path / "t.json"))
    assert "only 20% of the kernel launches left a kernel" in capsys.readouterr().out


def test_info_says_what_a_trace_holds(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("info", ROCM) == 0
    out = capsys.readouterr().out
    assert "220 events, 6.8 kB, 66.9 kB of JSON" in out
    assert "4 × AMD Radeon Graphics" in out
    assert "1 to 2 (2, from ProfilerStep)" in out
    assert run("info", "--json", ROCM) == 0
    (facts,) = json.loads(capsys.readouterr().out)["files"]
    assert (facts["categories"]["kernel"], facts["steps"], facts["duration_ns"]) == (14, [1, 2], 9583086)


def names(path: Path) -> list[Any]:
    data = path.read_bytes()
    document = json.loads(gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data)
    return [event["name"] for event in document["traceEvents"] if event["ph"] == "X"]


@pytest.fixture
def stepped(tmp_path: Path) -> Path:
    events = [operation("warm-up", 0, 900)]
    events += [operation(f"ProfilerStep#{i}", 1000 * i, 990, cat="user_annotation") for i in (3, 4, 5)]
    events += [operation(f"op{i}", 1000 * i + 100, 10) for i in (3, 4, 5)]
    (tmp_path / "t.json").write_bytes(trace(events, {"baseTimeNanoseconds": 1_700_000_000 * 10**9}))
    return tmp_path / "t.json"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--steps", "4"], ["ProfilerStep#4", "op4"]),
        (["--steps", "4-9"], ["ProfilerStep#4", "ProfilerStep#5", "op4", "op5"]),
        (["--to", "3"], ["warm-up", "ProfilerStep#3"]),
        (["--from", "5.05"], ["ProfilerStep#5", "op5"]),
        (["--from", "@1700000000.0051", "--to", "5200us"], ["ProfilerStep#5", "op5"]),
    ],
)
def test_slice_by_step_and_by_time(stepped: Path, options: list[str], expected: list[str]) -> None:
    assert run("slice", str(stepped), *options) == 0
    assert names(stepped.parent / "t.slice.json.gz") == expected


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ([], "what to cut out?"),
        (["--steps", "7"], "has no step 7: there are 3 to 5"),
        (["--steps", "4", "--from", "1"], "leave out --from and --to"),
        (["--from", "99"], "that time is not in"),
    ],
)
def test_a_slice_of_nothing_is_refused(
    stepped: Path, options: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("slice", str(stepped), *options) == 2
    assert why in capsys.readouterr().err
    assert [path.name for path in stepped.parent.iterdir()] == ["t.json"]


@pytest.mark.parametrize(
    ("command", "name"), [("slice", "t.slice.json.gz"), ("shrink", "t.small.json.gz"), ("convert", "t.strict.json.gz")]
)
def test_an_output_that_replaces_a_file_says_so(
    stepped: Path, command: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [command, str(stepped), *(["--steps", "4"] if command == "slice" else [])]
    output = stepped.parent / name
    assert run(*words) == 0
    assert not capsys.readouterr().err
    assert run(*words, "--json") == 0
    assert capsys.readouterr().err == f"note: replaces {output}, which was there\n"
    stepped.write_text("no trace")
    assert run(*words) == 1
    assert "note: replaces" not in capsys.readouterr().err


def test_a_merge_that_replaces_a_file_says_so(stepped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = stepped.parent / "job.json"
    for err in ("", f"note: replaces {output}, which was there\n"):
        assert run("merge", str(stepped.parent), "-o", str(output)) == 0
        assert capsys.readouterr().err == err


@pytest.mark.parametrize("command", ["slice", "shrink", "convert", "merge"])
def test_another_original_is_replaced_only_by_force(
    stepped: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    other = stepped.parent / "rank1.json"
    other.write_bytes(stepped.read_bytes())
    words = [command, str(stepped), *(["--steps", "4"] if command == "slice" else []), "-o", str(other)]
    assert run(*words) == 1
    assert "rank1.json is there already and may be an original" in capsys.readouterr().err
    assert other.read_bytes() == stepped.read_bytes()
    assert run(*words, "--force") == 0
    assert other.read_bytes() != stepped.read_bytes()


def test_times_and_steps_as_they_are_typed() -> None:
    assert moment("250") == (False, 250_000_000)
    assert moment("1.5s") == (False, 1_500_000_000)
    assert moment("@1719853884.25") == (True, 1_719_853_884_250_000_000)
    assert steps("3-5") == (3, 5)
    for parse_one, text in ((moment, "soon"), (steps, "5-3"), (steps, "x")):
        with pytest.raises(Exception, match="is no"):
            parse_one(text)


def test_shrink_leaves_out_what_was_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = [operation("op", 1, 1, args={"Call stack": "x" * 999}), operation("frame", 1, 1, cat="python_function")]
    (tmp_path / "t.json").write_bytes(trace([*events, operation("overhead", 1, 1, cat="overhead")]))
    assert run("shrink", str(tmp_path / "t.json"), "-o", str(tmp_path / "o.json")) == 0
    assert names(tmp_path / "o.json") == ["op", "overhead"]
    assert "2 events of 3, " in capsys.readouterr().out
    assert (
        run(
            "shrink",
            str(tmp_path / "t.json"),
            "--drop",
            "overhead",
            "--json",
            "-o",
            str(tmp_path / "o.json"),
            "--force",
        )
        == 0
    )
    assert names(tmp_path / "o.json") == ["op", "frame"]
    assert json.loads(capsys.readouterr().out)["events_after"] == 2
    with pytest.raises(SystemExit):
        run("shrink", "t", "--drop", "pythn")
    assert "'pythn' cannot be dropped" in capsys.readouterr().err


def test_convert_can_keep_overlaps_and_write_a_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.json").write_bytes(trace([operation("a", 1.5, 9), operation("b", 5, 9)]))
    output = tmp_path / "o.json"
    assert run("convert", str(tmp_path / "t.json"), "-o", str(output)) == 0
    assert "1 event overlapped others" in capsys.readouterr().out
    assert (
        run("convert", str(tmp_path / "t.json"), "--keep-overlaps", "--top", "list", "-o", str(output), "--force") == 0
    )
    assert [event["tid"] for event in json.loads(output.read_bytes())] == [1, 1]


def test_a_file_may_be_called_anything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / os.fsdecode(b"rank\xff.json"))
    Path(path).write_bytes(trace([operation("a", 1, 1), operation("b", 3, 1)]))
    shown = f"{tmp_path}/rank\\udcff"
    assert run("info", path, "--json") == 0
    assert json.loads(capsys.readouterr().out)["files"][0]["path"] == f"{shown}.json"
    assert run("shrink", path, "--json") == 0
    assert json.loads(capsys.readouterr().out)["output"] == f"{shown}.small.json.gz"
    merged = tmp_path / "merged.json"
    assert run("merge", path, "-o", str(merged)) == 0
    assert json.loads(merged.read_bytes())["ranks"][0]["path"] == f"{shown}.json"
    assert main(["analyze", path + "x", "--json"]) == 1
    assert f"{shown}.jsonx" in json.loads(capsys.readouterr().out.splitlines()[-1])["error"]


def test_merge_shows_each_ranks_clock(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(RECORDED / f"iter_1326{i}.json.gz") for i in range(4)]
    output = tmp_path / "o.json.gz"
    assert run("merge", *files, "--ranks", "0,1,2,3", "-o", str(output)) == 0
    out = capsys.readouterr().out
    assert out.count("same host") == 4
    assert run("validate", str(output)) == 0
    assert run("merge", *files, "-o", str(output)) == 1
    assert "have no rank" in capsys.readouterr().err


def test_errors_are_one_line_and_leave_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.json").write_text("no trace")
    for command in ("shrink", "convert"):
        assert run(command, str(tmp_path / "t.json")) == 1
        assert (
            capsys.readouterr().err == f"dyno trace {command}: {tmp_path}/t.json: the file is neither JSON nor gzip\n"
        )
        assert run(command, str(tmp_path / "none")) == 1
        assert capsys.readouterr().err == f"dyno trace {command}: {tmp_path}/none: No such file or directory\n"
    assert [path.name for path in tmp_path.iterdir()] == ["t.json"]


def test_without_numpy_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name == "numpy":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    assert run("info", ROCM) == 1
    assert f"pip install 'dynolog[analysis]', or install numpy for {sys.executable}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["analyze", "A"],
        ["analyze", "A", "B", "--ranks", "0,1"],
        ["analyze", "A", "--against", "A"],
        ["trace", "info", "A"],
        ["trace", "validate", "A", "B"],
        ["trace", "slice", "A", "--from", "0", "-o", "OUT"],
        ["trace", "shrink", "A", "-o", "OUT"],
        ["trace", "convert", "A", "-o", "OUT"],
        ["trace", "merge", "A", "B", "--ranks", "0,1", "-o", "OUT"],
    ],
    ids=" ".join,
)
def test_the_bar_only_goes_forward_and_ends_full(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rich_progress = pytest.importorskip("rich.progress")
    steps: list[int] = []
    totals: list[int] = []

    class Bar(rich_progress.Progress):  # type: ignore[misc, name-defined] # rich is optional
        def add_task(self, *given: Any, total: int, **more: Any) -> Any:
            totals.append(total)
            return super().add_task(*given, total=total, **more)

        def update(self, *given: Any, advance: int, **more: Any) -> None:
            steps.append(advance)
            super().update(*given, advance=advance, **more)

    monkeypatch.setattr(rich_progress, "Progress", Bar)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    names = {"A": ROCM, "B": str(tmp_path / "b.json"), "OUT": str(tmp_path / "out.json.gz")}
    (tmp_path / "b.json").write_bytes(gzip.decompress(Path(ROCM).read_bytes()))
    assert main([names.get(word, word) for word in words]) == 0
    assert min(steps) > 0
    assert [sum(steps)] == totals
