"""The nodes of pods: asked of an API server from inside a cluster, and of kubectl."""

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.fleet import kubernetes_api
from dynolog.fleet.kubernetes_api import InClusterApi
from dynolog.fleet.kubernetes_pods import Pod, hosts_of, parse_pods
from dynolog.fleet.targets import HostsError, HostSet, find_hosts
from fakes.kubernetes_api import PODS, KubernetesApi, running_api, write_kubeconfig, write_service_account
from fakes.tools import Tools

REAL_KUBECTL = shutil.which("kubectl")
OTHERS = "Kubernetes names nodes: processes of other pods on them are meant as well, unless --name, --pids or --ranks says less"
NOT_RUNNING = "3 of the 6 pods with app=train not running (1 Pending, 1 Succeeded, 1 Terminating): not traced"


@pytest.fixture(scope="module")
def server() -> Iterator[KubernetesApi]:
    with running_api() as api:
        yield api


@pytest.fixture(params=["in the cluster", *(["kubectl"] if REAL_KUBECTL else [])])
def api(
    request: pytest.FixtureRequest, server: KubernetesApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> KubernetesApi:
    """Each way to the recorded API server: from a pod, and with the real kubectl where there is one."""
    fresh = KubernetesApi()
    server.__dict__.update({key: value for key, value in fresh.__dict__.items() if key not in ("port", "ca_pem")})
    tools = Tools(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(tools.directory))
    monkeypatch.setenv("HOME", str(tmp_path))
    if request.param == "kubectl":
        assert REAL_KUBECTL
        os.symlink(REAL_KUBECTL, tools.directory / "kubectl")
        monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path / "kubeconfig", server)))
    else:
        account = write_service_account(tmp_path / "account", server)
        monkeypatch.setattr(InClusterApi.__init__, "__defaults__", (str(account),))
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(server.port))
    return server


def find(**options: str) -> HostSet:
    return find_hosts({f"--k8s-{name}": value for name, value in options.items()})


def test_pods_become_the_nodes_on_which_they_run(api: KubernetesApi) -> None:
    """Each node once, by address, under its name; pods that do not run are counted by state."""
    found = find(selector="app=train")
    assert [(target.host, target.label) for target in found.targets] == [
        ("192.0.2.10", "gpu-a"),
        ("192.0.2.11", "gpu-b"),
    ]
    assert found.notes == (NOT_RUNNING, OTHERS)


def test_every_page_counts(api: KubernetesApi) -> None:
    """The server gives two pods at a time."""
    api.page_limit = 2
    assert find(selector="app=train").notes[0] == NOT_RUNNING
    pages = [target for target in api.requests if "/pods" in target]
    assert len(pages) == 3
    assert all("limit=500" in page for page in pages)


def test_a_list_that_expires_between_pages_is_asked_again(api: KubernetesApi) -> None:
    """410 Gone: from the start, once."""
    api.page_limit, api.expire_lists = 2, 1
    assert len(find(selector="app=train").targets) == 2


@pytest.mark.parametrize(("job", "hosts"), [("trainer", ["gpu-a", "gpu-b"]), ("llm", ["gpu-d"])])
def test_jobs_of_kubernetes_and_of_kubeflow(api: KubernetesApi, job: str, hosts: list[str]) -> None:
    """Each puts its own label on its pods."""
    assert [target.name for target in find(job=job, namespace="train").targets] == hosts


def test_an_expired_token_is_said(api: KubernetesApi) -> None:
    """401 → log in again."""
    api.token = "another"
    with pytest.raises(HostsError, match=r"does not accept the credentials, which have perhaps expired .*log in again"):
        find(selector="app=train")


def test_a_token_that_is_replaced_while_it_is_used_is_read_again_once(
    server: KubernetesApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kubelet writes a new one; the old one is refused from then on."""
    account = write_service_account(tmp_path / "account", server)
    in_cluster = InClusterApi("127.0.0.1", str(server.port), str(account))
    read = iter(["the old one", server.token, server.token])
    monkeypatch.setattr(in_cluster, "_read", lambda name: next(read) if name == "token" else "train")
    server.requests.clear()
    assert in_cluster.pods("app=train", "")
    assert len(server.requests) == 2


def test_a_missing_right_is_said(api: KubernetesApi) -> None:
    """403 → which account needs which right."""
    api.forbidden = True
    with pytest.raises(HostsError, match=r"system:serviceaccount:train:default.*grant it `list` on pods"):
        find(selector="app=train")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"selector": "app=other"}, "no pod has app=other"),
        ({"selector": "app=train", "namespace": "else"}, "no pod has app=train in namespace else"),
        ({"job": "other"}, "no pod belongs to a job 'other'"),
        ({"job": "Not a name"}, "is no name of a Kubernetes job"),
        ({"selector": "app=train", "namespace": "../kube-system"}, "is no Kubernetes namespace"),
    ],
)
def test_nothing_there(api: KubernetesApi, options: dict[str, str], sentence: str) -> None:
    """What was asked for is named."""
    with pytest.raises(HostsError, match=sentence):
        find(**options)


def test_an_api_server_that_does_not_answer(api: KubernetesApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence, in a bounded time."""
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "9")
    monkeypatch.setenv("KUBECONFIG", "/nonexistent")
    with pytest.raises(HostsError, match=r"does not answer|cannot list pods"):
        find(selector="app=train")


def test_a_server_that_another_authority_vouches_for_is_refused(server: KubernetesApi, tmp_path: Path) -> None:
    """The token goes to the cluster's own API server only."""
    server.requests.clear()
    account = write_service_account(tmp_path / "account", server)
    with running_api() as other:
        (account / "ca.crt").write_bytes(other.ca_pem)
    with pytest.raises(HostsError, match=r"does not answer: .*certificate"):
        InClusterApi("127.0.0.1", str(server.port), str(account)).pods("app=train", "")
    assert server.requests == []


@pytest.mark.parametrize("name", ["token", "namespace", "ca.crt"])
def test_a_pod_without_an_account(tmp_path: Path, server: KubernetesApi, name: str) -> None:
    """automountServiceAccountToken: false."""
    account = write_service_account(tmp_path / "account", server)
    (account / name).unlink()
    with pytest.raises(HostsError, match="this pod has no service account"):
        InClusterApi("127.0.0.1", str(server.port), str(account)).pods("app=train", "")


# --- a stand-in for kubectl --------------------------------------------------------------------------------------------


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tools:
    tools = Tools(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(tools.directory))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    return tools


def test_what_kubectl_is_asked(tools: Tools) -> None:
    """Its own paging; the selector as one word; the namespace only when one was given."""
    tools.put("kubectl", PODS.read_text())
    find(selector="app in (train, eval)")
    find(selector="app=train", namespace="train")
    common = "--output=json --request-timeout=15s"
    assert tools.calls("kubectl") == [
        f"get pods --selector=app in (train, eval) {common}",
        f"get pods --selector=app=train {common} --namespace=train",
    ]


@pytest.mark.parametrize(
    ("stderr", "sentence"),
    [
        ("error: You must be logged in to the server (Unauthorized)", "perhaps expired"),
        ("Error from server (Forbidden): pods is forbidden: User cannot list", "grant it `list` on pods"),
        ("Unable to connect to the server: dial tcp: i/o timeout", "kubectl cannot list pods: Unable to connect"),
        ("error: unable to parse requirement", "kubectl cannot list pods: error: unable to parse requirement"),
    ],
)
def test_what_kubectl_complains_about(tools: Tools, stderr: str, sentence: str) -> None:
    """In its words, and what to do."""
    tools.put("kubectl", stderr=stderr, exit_code=1)
    with pytest.raises(HostsError, match=sentence):
        find(selector="app=train")


def test_neither_kubectl_nor_a_cluster(tools: Tools) -> None:
    """What to do instead."""
    with pytest.raises(HostsError, match="kubectl is not on PATH, and this is no pod of a cluster"):
        find(selector="app=train")


def test_kubectl_printing_something_else(tools: Tools) -> None:
    """Refused in one sentence."""
    tools.put("kubectl", "No resources found")
    with pytest.raises(HostsError, match="no list of pods"):
        find(selector="app=train")


# --- pods --------------------------------------------------------------------------------------------------------------


def test_pods_that_all_wait() -> None:
    """Their states are said."""
    pods = [parse_pods(json.dumps({"items": [{"metadata": {}, "status": {"phase": "Pending"}}]}).encode()).items[0]] * 2
    with pytest.raises(HostsError, match=r"none of the 2 pods with app=x runs \(2 Pending\)"):
        hosts_of(pods, "app=x", 1778)


def test_a_node_whose_address_is_not_known_is_asked_by_name() -> None:
    """hostIP comes a moment after the phase."""
    text = b'{"items":[{"metadata":{"name":"a"},"spec":{"nodeName":"gpu-a"},"status":{"phase":"Running"}}]}'
    (target,) = hosts_of(parse_pods(text).items, "app=x", 1779).targets
    assert (target.host, target.port, target.name) == ("gpu-a", 1779, "gpu-a")


@given(st.binary(max_size=200))
def test_any_bytes_are_pods_or_refused(text: bytes) -> None:
    """HostsError and nothing else."""
    with contextlib.suppress(HostsError):
        assert all(isinstance(pod, Pod) for pod in parse_pods(text).items)


def test_urllib3_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the name of the extra."""
    monkeypatch.setitem(__import__("sys").modules, "urllib3", None)
    with pytest.raises(HostsError, match=r"pip install 'dynolog\[k8s\]'"):
        kubernetes_api.InClusterApi("127.0.0.1", "443")
