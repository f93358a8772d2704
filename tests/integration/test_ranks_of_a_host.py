"""Two real ranks of one host: traced, fetched, and analysed and merged from the folder they are in."""

import json
from pathlib import Path

import pytest

from integration.harness import needs_torch, running_daemon, running_trainer, trainer_env

pytestmark = [needs_torch, pytest.mark.torch]


def test_what_was_fetched_is_analysed_merged_and_sliced_as_the_recipe_says(tmp_path: Path) -> None:
    got = tmp_path / "ranks"
    with running_daemon(tmp_path / "d") as daemon:
        with running_trainer(trainer_env(tmp_path, daemon.ipc_dir), ranks=2):
            trainers = daemon.wait_for_trainers(3)
            pids = ",".join(str(one["pid"]) for one in trainers if one.get("rank") is not None)
            recording = ("--log-file", f"{tmp_path}/f.json", "--pids", pids, "--duration-ms", "600", "--warmup-s", "0")
            answer = daemon.ask("gputrace", *recording, "--fetch", str(got))
            again = daemon.ask("trace", answer["request_id"], "--fetch", str(got))
        assert [one["already_here"] for one in again["fetched"]] == [True, True]
        for one in answer["fetched"]:
            assert one["distributed_info_added"], one
            assert one["host_tracks"] >= 8, one
            info = json.loads(Path(one["path"]).read_bytes())["distributedInfo"]
            assert (info["world_size"], info["backend"]) == (2, "gloo")
        first = answer["fetched"][0]["path"]
        for _ in range(2):
            for words in (
                ("analyze", str(got)),
                ("trace", "merge", str(got), "-o", str(got / "job.json.gz")),
                ("trace", "slice", first, "--from", "100"),
            ):
                done = daemon.dyno(*words)
                assert done.returncode == 0, done.stdout + done.stderr
        assert sorted(rank["rank"] for rank in daemon.ask("analyze", str(got))["ranks"]) == [0, 1]
    assert "note: replaces " in done.stderr
