"""The kubelet's pod-resources service, against a real gRPC server and the official protobuf runtime."""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.model.errors import SourceUnavailable
from dynolog.sources.pod_resources import list_pod_resources
from dynolog.sources.pod_resources_messages import MOST_FIELDS, ContainerDevices, parse_list
from fakes.kubelet import FakeKubelet, Pod, response

TRAIN: Pod = (
    "research",
    "train-0",
    (("sidecar", {}), ("pytorch", {"nvidia.com/gpu": ["GPU-a", "GPU-b"], "rdma/hca": ["x"]})),
)
DEADLINE_S = 30.0


@pytest.fixture
def path() -> Iterator[str]:
    """A short path: a socket's has at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="pods") as directory:
        yield f"{directory}/kubelet.sock"


def test_pods_containers_and_devices_come_over_grpc(path: str) -> None:
    kubelet = FakeKubelet()
    kubelet.fixed = response([TRAIN, ("web", "nginx", (("nginx", {}),))])
    with kubelet.serve(path):
        assert list_pod_resources(path, DEADLINE_S) == (
            ContainerDevices(
                namespace="research",
                pod="train-0",
                container="pytorch",
                resource="nvidia.com/gpu",
                device_ids=("GPU-a", "GPU-b"),
            ),
            ContainerDevices(
                namespace="research", pod="train-0", container="pytorch", resource="rdma/hca", device_ids=("x",)
            ),
        )
        kubelet.fixed = b""
        assert list_pod_resources(path, DEADLINE_S) == ()


def test_an_answer_of_megabytes_comes_through_the_flow_control_and_larger_ones_are_refused(path: str) -> None:
    kubelet = FakeKubelet()
    kubelet.fixed = response([("n", f"p{number}", (("c", {"r": ["x" * 1000] * 10}),)) for number in range(300)])
    with kubelet.serve(path):
        assert len(list_pod_resources(path, DEADLINE_S)) == 300
        kubelet.fixed = bytes(17 << 20)
        with pytest.raises(SourceUnavailable, match="longer than 16 MiB"):
            list_pod_resources(path, DEADLINE_S)


def test_a_kubelet_that_hangs_costs_the_deadline(path: str) -> None:
    kubelet = FakeKubelet()
    kubelet.answer = kubelet.hang
    with kubelet.serve(path), pytest.raises(SourceUnavailable, match=r"within 0\.3 s|DEADLINE|refused|gRPC"):
        list_pod_resources(path, 0.3)


def test_a_refusal_is_told_in_the_kubelets_words(path: str) -> None:
    kubelet = FakeKubelet()

    def refuse(context: grpc.ServicerContext) -> bytes:
        context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "rejected by rate limit: 100 %")

    kubelet.answer = refuse
    with kubelet.serve(path), pytest.raises(SourceUnavailable, match=r"gRPC status 8\): rejected by rate limit: 100 %"):
        list_pod_resources(path, DEADLINE_S)


def test_a_kubelet_without_the_service_is_told_to_be_old(path: str) -> None:
    with FakeKubelet().serve(path, "Get"), pytest.raises(SourceUnavailable, match=r"use Kubernetes 1\.20 or later"):
        list_pod_resources(path, DEADLINE_S)


def test_a_socket_that_is_not_there_or_refuses_is_said_with_the_remedy(path: str) -> None:
    with pytest.raises(SourceUnavailable, match=r"No such file.*--pod_resources_socket"):
        list_pod_resources(path)
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(path)
    with pytest.raises(SourceUnavailable, match="Connection refused"):
        list_pod_resources(path)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"", os.urandom(4096), b"\0" * 9])
def test_what_speaks_something_else_is_not_understood(path: str, answer: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(SourceUnavailable):
            list_pod_resources(path, DEADLINE_S)
        thread.join()


def test_without_its_package_it_says_what_to_install(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h2.connection", None)
    with pytest.raises(SourceUnavailable, match=r"dynolog\[pods\]"):
        list_pod_resources(path)


_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_CONTAINERS = st.lists(st.tuples(_TEXTS, st.dictionaries(_TEXTS, st.lists(_TEXTS, max_size=3), max_size=2)), max_size=3)


@given(st.lists(st.tuples(_TEXTS, _TEXTS, _CONTAINERS), max_size=4))
def test_messages_are_read_as_the_official_runtime_wrote_them(pods: Any) -> None:
    assert parse_list(response(pods)) == tuple(
        ContainerDevices(namespace=namespace, pod=pod, container=container, resource=resource, device_ids=tuple(ids))
        for namespace, pod, containers in pods
        for container, resources in containers
        for resource, ids in resources.items()
    )


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_a_value_error(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        parse_list(data)


@pytest.mark.parametrize(
    "message",
    [
        b"\x0a\x00" * (MOST_FIELDS + 1),  # pods
        b"\x0a\xa0\xc2\x1e" + b"\x1a\x00" * MOST_FIELDS,  # containers of one pod: 500,000 bytes
        b"\x08\x01" * (MOST_FIELDS + 1),  # numbers of a field that is passed over
    ],
)
def test_a_message_of_nothing_but_empty_fields_is_refused_before_it_costs_memory(message: bytes) -> None:
    with pytest.raises(ValueError, match="more than 250,000 fields"):
        parse_list(message)


def test_a_message_that_is_cut_is_refused() -> None:
    whole = response([TRAIN])
    fixed = b"\x09" + bytes(8) + b"\x15" + bytes(4)  # fields of 64 and 32 bits, which are passed over
    assert parse_list(fixed) == ()
    for cut in (*(whole[:length] for length in range(1, len(whole))), fixed[:8], fixed[:-1]):
        with pytest.raises(ValueError, match="message"):
            parse_list(cut)


def test_the_daemons_start_loads_nothing_of_it() -> None:
    """Memory is for those who ask for pods."""
    heavy = "('h2', 'grpc', 'google', 'dynolog.attribution.gpu_labelling')"
    code = f"import sys, dynolog.daemon.main; print([name for name in {heavy} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
