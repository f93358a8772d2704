"""A kubelet's pod-resources service: a real gRPC server on a unix socket, with messages of the official protobuf runtime."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

_TEXT, _MESSAGE, _INT64 = 9, 11, 3
_REPEATED, _OPTIONAL = 3, 1
# (number, name, type, repeated) of each field, as in the service's public description.
_MESSAGES: dict[str, tuple[tuple[int, str, int | str, bool], ...]] = {
    "NUMANode": ((1, "ID", _INT64, False),),
    "TopologyInfo": ((1, "nodes", "NUMANode", True),),
    "ContainerDevices": (
        (1, "resource_name", _TEXT, False),
        (2, "device_ids", _TEXT, True),
        (3, "topology", "TopologyInfo", False),
    ),
    "ContainerResources": (
        (1, "name", _TEXT, False),
        (2, "devices", "ContainerDevices", True),
        (3, "cpu_ids", _INT64, True),
    ),
    "PodResources": (
        (1, "name", _TEXT, False),
        (2, "namespace", _TEXT, False),
        (3, "containers", "ContainerResources", True),
        (4, "cpu_ids", _INT64, True),
    ),
    "ListPodResourcesResponse": ((1, "pod_resources", "PodResources", True),),
}


def _response_class() -> type[Message]:
    file = descriptor_pb2.FileDescriptorProto(name="podresources.proto", package="v1", syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, field, kind, repeated in fields:
            message.field.add(
                name=field,
                number=number,
                type=_MESSAGE if isinstance(kind, str) else kind,
                type_name=f".v1.{kind}" if isinstance(kind, str) else None,
                label=_REPEATED if repeated else _OPTIONAL,
            )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("v1.ListPodResourcesResponse"))


RESPONSE = _response_class()
Container = tuple[str, dict[str, Sequence[str]]]
Pod = tuple[str, str, Sequence[Container]]


def response(pods: Sequence[Pod]) -> bytes:
    """The answer about pods: (namespace, name, ((container, {resource: ids}), ...))."""
    message: Any = RESPONSE()
    for namespace, name, containers in pods:
        pod = message.pod_resources.add(namespace=namespace, name=name, cpu_ids=[0, 1])
        for container_name, resources in containers:
            container = pod.containers.add(name=container_name, cpu_ids=[5, 300])
            for resource, ids in resources.items():
                devices = container.devices.add(resource_name=resource, device_ids=ids)
                devices.topology.nodes.add(ID=1)
    return bytes(message.SerializeToString())


class FakeKubelet:
    """Answers `fixed`, or what a test's `answer` makes."""

    def __init__(self) -> None:
        self.fixed = response(())
        self.answer: Callable[[grpc.ServicerContext], bytes] = lambda _: self.fixed
        self.calls = 0
        self.release = threading.Event()

    def hang(self, _: grpc.ServicerContext) -> bytes:
        """Answers when the test lets it."""
        self.release.wait(60)
        return b""

    def _list(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        assert request == b""
        self.calls += 1
        return self.answer(context)

    @contextlib.contextmanager
    def serve(self, path: str, method: str = "List") -> Iterator[None]:
        """Listen on the unix socket `path`."""
        server = grpc.server(
            futures.ThreadPoolExecutor(4), options=[("grpc.max_send_message_length", -1), ("grpc.so_reuseport", 0)]
        )
        handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(self._list)
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("v1.PodResourcesLister", {method: handler}),)
        )
        assert server.add_insecure_port(f"unix:{path}")
        server.start()
        try:
            yield
        finally:
            self.release.set()
            server.stop(0).wait()
