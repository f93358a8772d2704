"""Names of pods by the links for log collectors."""

from pathlib import Path

from dynolog.sources.host_files import HostFiles
from dynolog.sources.pod_names import PodName, PodNames, parse_link

ID = "ab12" * 16


def test_a_link_names_pod_namespace_and_container() -> None:
    assert parse_link(f"train-0_research_pytorch-{ID}.log") == (
        ID,
        PodName(namespace="research", pod="train-0", container="pytorch"),
    )
    for other in ("", "x.log", f"train-0_research_{ID}.log", f"a_b_c_d-{ID}.log", f"a_b_c-{ID}"):
        assert parse_link(other) is None


def test_an_unknown_container_is_looked_for_again_after_a_while(tmp_path: Path) -> None:
    now = [100.0]
    names = PodNames(HostFiles(str(tmp_path)), lambda: now[0])
    assert names.of(ID) is None
    directory = tmp_path / "var/log/containers"
    directory.mkdir(parents=True)
    (directory / f"train-0_research_pytorch-{ID}.log").symlink_to("/nowhere")
    assert names.of(ID) is None
    now[0] += 31
    assert names.of(ID) == PodName(namespace="research", pod="train-0", container="pytorch")
