"""dyno analyze: what is typed, what is said, and how it ends."""

import json
from pathlib import Path
from typing import Any

import pytest

from dynolog.cli.analyze import layout as analyze_layout
from dynolog.cli.main import main
from fakes.traces import RECORDED
from fakes.training_job import TrainingJob

PUBLIC = RECORDED / "public"
A100 = str(PUBLIC / "a100_8ranks_rank3_slice.json.gz")


def run(*words: str) -> int:
    return main(["analyze", *words])


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out


def test_findings_come_first_and_every_line_fits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = TrainingJob(4)
    job.slow_ranks[2] = 1.4
    job.hosts = {rank: f"a-rather-long-name-of-a-node-{rank}" for rank in range(4)}
    job.write(tmp_path)
    assert run(str(tmp_path)) == 0
    out = said(capsys)
    assert out.index(" 1. Rank 2 on a-rather-long-name-of-a-node-2 is slow") < out.index("Time of the GPU")
    assert "to win: up to 5." in out
    assert "Who waits for whom" in out
    assert max(map(len, out.splitlines())) <= 100


@pytest.mark.parametrize("columns", [80, 120])
def test_a_terminal_gets_lines_of_its_width(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(analyze_layout, "terminal_columns", lambda: columns)
    assert run(A100) == 0
    assert max(map(len, said(capsys).splitlines())) <= columns


def test_a_clean_job_says_that_nothing_stands_out_and_exits_with_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*TrainingJob().write(tmp_path)) == 0
    assert "Nothing stands out." in said(capsys)


def test_json_is_one_object_with_findings_ranks_job_and_comparison(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--json", A100, "--against", A100) == 0
    found: dict[str, Any] = json.loads(said(capsys))
    assert set(found) == {"findings", "ranks", "job", "comparison", "notes"}
    assert {change["verdict"] for change in found["comparison"]["kernels"]} == {"same"}
    assert found["ranks"][0]["device_name"] == "NVIDIA A100-PG509-200"


def test_a_comparison_shows_what_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    after = TrainingJob()
    after.slow_kernels["gemm_3"] = 1.5
    before = TrainingJob().write(tmp_path / "before")
    assert run(*after.write(tmp_path / "after"), "--against", *before) == 0
    out = said(capsys)
    assert "Kernel gemm_3: 1.50 × as long a call" in out
    assert "Compared: a step lasts" in out


def test_traces_without_a_device_have_operators_and_steps(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(RECORDED / "iter_13260.json.gz")) == 0
    out = said(capsys)
    assert "No GPU work in the trace" in out
    assert "3 steps (from the optimizer's steps)" in out
    assert "aten::addmm" in out
    assert "GPU is what they launch" not in out


def test_an_empty_trace_is_no_error_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(RECORDED / "iter_13238.json.gz")) == 0
    out = said(capsys)
    assert "Nothing stands out." in out
    assert "the trace is empty" in out
    assert "steps are unknown" in out


def test_a_bad_file_costs_only_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    TrainingJob(2).write(tmp_path)
    (tmp_path / "rank2.json").write_bytes(b'{"traceEvents": [] , "schemaVersion": 1')
    (tmp_path / "notes.json").write_text("{}")
    assert run(str(tmp_path)) == 0
    out = said(capsys)
    assert "other files were left aside" in out
    assert "Ranks 0-2" in out or "rank2.json was left out" in out


def test_no_trace_at_all_is_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(tmp_path)) == 1
    assert "no trace in" in capsys.readouterr().err
    assert run(str(tmp_path / "none.json")) == 1
    assert "No such file" in capsys.readouterr().err


def test_traces_without_ranks_are_refused_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(RECORDED / f"iter_{pid}.json.gz") for pid in (13260, 13261)]
    assert run(*files) == 1
    assert "have no rank" in capsys.readouterr().err
    assert run(*files, "--ranks", "0,1") == 0


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ("ray://node1:10001", "only dask://HOST:PORT is known"),
        ("dask://", "say the scheduler's host and port"),
        ("spark", "only dask://HOST:PORT is known"),
    ],
)
def test_an_engine_that_is_not_known_is_refused_with_what_is(
    engine: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(A100, "--engine", engine) == 1
    assert words in capsys.readouterr().err


def test_names_from_traces_cannot_steer_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = TrainingJob()
    job.renamed[0] = {"gemm_1": "gemm\x1b]0;title\x07"}
    assert run(*job.write(tmp_path)) == 0
    assert "\x1b" not in said(capsys)


def test_a_report_that_cannot_be_written_is_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(A100, "--html", str(tmp_path / "none" / "report.html")) == 1
    assert "No such file or directory" in capsys.readouterr().err


def test_a_page_replaces_only_a_page_and_a_page_that_cannot_be_written_does_not_cost_the_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    original = tmp_path / "rank0.json"
    original.write_bytes(Path(A100).read_bytes())
    assert run("--html", str(original), A100) == 1
    assert "is there already and is no page" in capsys.readouterr().err
    assert original.read_bytes() == Path(A100).read_bytes()
    page = tmp_path / "report.html"
    for _ in range(2):
        assert run(A100, "--html", str(page)) == 0
    assert f"report: {page}" in said(capsys)
    assert run(A100, "--html", str(tmp_path / "none" / "report.html")) == 1
    assert "Time of the GPU" in said(capsys)
