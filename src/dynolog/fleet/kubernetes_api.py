"""Listing pods from inside a cluster: HTTPS to the API server with the service account that every pod is given."""

import os
from typing import TYPE_CHECKING

import msgspec

from dynolog.fleet.kubernetes_pods import Pod, parse_pods
from dynolog.fleet.targets import HostsError

if TYPE_CHECKING:
    import urllib3

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
PAGE_PODS = 500  # as many as kubectl asks for
_MAX_PAGES = 1000
_TIMEOUT_S = 15.0
_UNAUTHORIZED, _FORBIDDEN, _GONE = 401, 403, 410


class _Problem(msgspec.Struct):
    """The API's Status object."""

    message: str = ""


class _ListExpired(Exception):  # noqa: N818 - the API's 410: the rest of a list is to be had for some minutes only
    pass


class InClusterApi:
    """The API server as `KUBERNETES_SERVICE_HOST` and `KUBERNETES_SERVICE_PORT` name it. Raises HostsError for every failure."""

    def __init__(self, host: str, port: str, account_directory: str = SERVICE_ACCOUNT) -> None:
        try:
            import urllib3  # noqa: PLC0415 - an extra, and only for this
        except ImportError as error:
            raise HostsError(
                "asking the Kubernetes API needs urllib3: pip install 'dynolog[k8s]', or put kubectl on PATH"
            ) from error
        self._directory = account_directory
        self._read("ca.crt")  # without it no certificate can be checked, and the library's words would be about that
        self._url = f"https://{f'[{host}]' if ':' in host else host}:{port}"
        self._pool = urllib3.PoolManager(
            ca_certs=os.path.join(account_directory, "ca.crt"), timeout=_TIMEOUT_S, retries=urllib3.Retry(2, redirect=0)
        )

    @classmethod
    def from_environment(cls) -> "InClusterApi | None":
        """None outside a cluster."""
        host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        return cls(host, port) if host else None

    def pods(self, selector: str, namespace: str) -> list[Pod]:
        """The pods that a label selector names, in `namespace` ("": the one of this pod), page by page."""
        namespace = namespace or self._read("namespace")
        try:
            return self._list(selector, namespace)
        except _ListExpired:
            pass
        try:  # once more from the start
            return self._list(selector, namespace)
        except _ListExpired:
            raise HostsError(
                "the list of pods changes faster than the Kubernetes API hands it out: try again"
            ) from None

    def _list(self, selector: str, namespace: str) -> list[Pod]:
        pods: list[Pod] = []
        fields = {"labelSelector": selector, "limit": str(PAGE_PODS)}
        for _ in range(_MAX_PAGES):
            page = parse_pods(self._get(f"/api/v1/namespaces/{namespace}/pods", fields))
            pods += page.items
            if not page.metadata.continue_token:
                return pods
            fields["continue"] = page.metadata.continue_token
        raise HostsError(f"more than {_MAX_PAGES * PAGE_PODS:,} pods: choose fewer with --k8s-selector")

    def _get(self, path: str, fields: dict[str, str]) -> bytes:
        # Read again for each page: the kubelet replaces the token while it is valid.
        token = self._read("token")
        reply = self._ask(path, fields, token)
        if reply.status == _UNAUTHORIZED and (newer := self._read("token")) != token:
            reply = self._ask(path, fields, newer)  # it was replaced in this very moment
        if reply.status == _GONE:
            raise _ListExpired
        if reply.status != 200:
            raise HostsError(_refusal(reply.status, _message(reply)))
        return reply.data

    def _ask(self, path: str, fields: dict[str, str], token: str) -> "urllib3.BaseHTTPResponse":
        import urllib3.exceptions  # noqa: PLC0415 - as above

        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        try:
            return self._pool.request("GET", self._url + path, fields=fields, headers=headers)
        except urllib3.exceptions.HTTPError as error:
            raise HostsError(f"the Kubernetes API at {self._url} does not answer: {_cause(error)}") from error

    def _read(self, name: str) -> str:
        path = os.path.join(self._directory, name)
        try:
            with open(path, encoding="utf-8") as file:
                return file.read().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise HostsError(
                f"this pod has no service account to ask the Kubernetes API with ({path}: {error}): "
                "put kubectl on PATH, or see automountServiceAccountToken"
            ) from error


def _refusal(status: int, message: str) -> str:
    if status == _UNAUTHORIZED:
        return credentials_refused(message)
    if status == _FORBIDDEN:
        return rights_missing(message)
    return f"the Kubernetes API answers {status}: {message}"


def credentials_refused(message: str) -> str:
    """The sentence for a 401."""
    return f"the Kubernetes API does not accept the credentials, which have perhaps expired ({message}): log in again"


def rights_missing(message: str) -> str:
    """The sentence for a 403."""
    return (
        f"the Kubernetes API does not let this account list pods ({message}): grant it `list` on pods in that namespace"
    )


def _message(reply: "urllib3.BaseHTTPResponse") -> str:
    try:
        message = msgspec.json.decode(reply.data, type=_Problem).message
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        message = ""
    return (message or reply.reason or f"status {reply.status}")[:400]


def _cause(error: BaseException) -> str:
    reason: object = getattr(error, "reason", None)
    return str(reason or error)[:400]
