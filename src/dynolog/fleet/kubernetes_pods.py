"""Pods as the Kubernetes API lists them (core/v1 PodList), and the hosts of those that run."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from dynolog.fleet.targets import FleetTarget, HostsError, HostSet


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    deletion_timestamp: str | None = None


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Status(msgspec.Struct, rename={"host_ip": "hostIP"}):
    phase: str = "Unknown"
    host_ip: str = ""


class Pod(msgspec.Struct):
    """One pod; unknown keys are skipped."""

    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)

    @property
    def state(self) -> str:
        """Its phase, or `Terminating`, which `kubectl get pods` shows as well though it is no phase."""
        return "Terminating" if self.metadata.deletion_timestamp else self.status.phase


class _ListMetadata(msgspec.Struct, rename={"continue_token": "continue"}):
    continue_token: str | None = None


class PodPage(msgspec.Struct):
    """A list of pods, or one page of it: `metadata.continue_token` asks for the next one."""

    items: list[Pod] = []
    metadata: _ListMetadata = msgspec.field(default_factory=_ListMetadata)


def parse_pods(text: bytes) -> PodPage:
    """A PodList in JSON. Raises HostsError."""
    try:
        return msgspec.json.decode(text, type=PodPage)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise HostsError(f"the answer of the Kubernetes API is no list of pods: {error}") from error


def hosts_of(pods: Sequence[Pod], what: str, port: int) -> HostSet:
    """The node of each pod that runs, once, by its address and under its name. `what` names the pods. Raises HostsError when none runs."""
    if not pods:
        raise HostsError(f"no pod has {what}: `kubectl get pods --show-labels` lists those there are")
    running = [pod for pod in pods if pod.state == "Running" and (pod.status.host_ip or pod.spec.node_name)]
    others = Counter(pod.state for pod in pods if pod not in running)
    said = ", ".join(f"{count} {state}" for state, count in sorted(others.items()))
    if not running:
        raise HostsError(f"none of the {len(pods)} pods with {what} runs ({said}): `kubectl get pods` tells why")
    notes = [
        "Kubernetes names nodes: processes of other pods on them are meant as well, unless --name, --pids or --ranks says less"
    ]
    if others:
        notes.insert(0, f"{others.total()} of the {len(pods)} pods with {what} not running ({said}): not traced")
    nodes: dict[str, FleetTarget] = {}
    for pod in running:
        address = pod.status.host_ip or pod.spec.node_name
        nodes.setdefault(address, FleetTarget(host=address, port=port, label=pod.spec.node_name))
    return HostSet(targets=tuple(nodes.values()), notes=tuple(notes))
