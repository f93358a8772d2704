"""`--k8s-selector` and `--k8s-job`: the nodes on which pods run, asked of kubectl or, in a pod without it, of the API server."""

import re
from collections.abc import Callable

from dynolog.fleet.kubernetes_api import InClusterApi, credentials_refused, rights_missing
from dynolog.fleet.kubernetes_pods import Pod, hosts_of, parse_pods
from dynolog.fleet.targets import HostQuery, HostsError, HostSet
from dynolog.fleet.tool import on_path, run_tool

# The labels that put a pod into a job: Kubernetes' own Job, Kubeflow's PyTorchJob and its kin, JobSet.
JOB_LABELS = ("job-name", "training.kubeflow.org/job-name", "jobset.sigs.k8s.io/jobset-name")
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", re.ASCII)
_CREDENTIALS = ("Unauthorized", "must be logged in", "provide credentials")
_EXPIRED = "(Expired)"

PodLister = Callable[[str, str], list[Pod]]


class SelectedPods:
    """`--k8s-selector`."""

    def find(self, query: HostQuery) -> HostSet:
        """The nodes of the pods that a label selector names. Raises HostsError."""
        namespace = _namespace(query)
        return hosts_of(_lister()(query.value, namespace), f"{query.value}{_in(namespace)}", query.port)


class JobPods:
    """`--k8s-job`."""

    def find(self, query: HostQuery) -> HostSet:
        """The nodes of the pods of a Job, PyTorchJob or JobSet of this name. Raises HostsError."""
        if not _NAME.fullmatch(query.value):
            raise HostsError(f"{query.value!r} is no name of a Kubernetes job: small letters, digits, '-' and '.'")
        namespace = _namespace(query)
        pods_with = _lister()
        for label in JOB_LABELS:
            if pods := pods_with(f"{label}={query.value}", namespace):
                return hosts_of(pods, f"{label}={query.value}{_in(namespace)}", query.port)
        raise HostsError(
            f"no pod belongs to a job {query.value!r}{_in(namespace)} (labels {', '.join(JOB_LABELS)}): "
            "name them with --k8s-selector"
        )


def _namespace(query: HostQuery) -> str:
    namespace = query.details.get("--k8s-namespace", "")
    if namespace and not _NAME.fullmatch(namespace):
        raise HostsError(f"{namespace!r} is no Kubernetes namespace: small letters, digits and '-'")
    return namespace


def _in(namespace: str) -> str:
    return f" in namespace {namespace}" if namespace else ""


def _lister() -> PodLister:
    """kubectl knows every way to log in that a kubeconfig can name; without it, a pod asks the API server itself."""
    if kubectl := on_path("kubectl"):
        return lambda selector, namespace: _kubectl_pods(kubectl, selector, namespace)
    if api := InClusterApi.from_environment():
        return api.pods
    raise HostsError(
        "kubectl is not on PATH, and this is no pod of a cluster: install kubectl, or name the hosts with --hosts"
    )


def _kubectl_pods(kubectl: str, selector: str, namespace: str) -> list[Pod]:
    """kubectl asks in pages, and prints them as one list; when the list expires meanwhile, which ends it, all at once."""
    command = [kubectl, "get", "pods", f"--selector={selector}", "--output=json", "--request-timeout=15s"]
    command += [f"--namespace={namespace}"] if namespace else []
    output = run_tool(command)
    if output.exit_code and _EXPIRED in output.stderr:
        output = run_tool([*command, "--chunk-size=0"])
    if output.exit_code == 0:
        return parse_pods(output.stdout).items
    if any(word in output.stderr for word in _CREDENTIALS):
        raise HostsError(credentials_refused(output.complaint))
    if "Forbidden" in output.stderr or "is forbidden" in output.stderr:
        raise HostsError(rights_missing(output.complaint))
    raise HostsError(f"kubectl cannot list pods: {output.complaint}")
