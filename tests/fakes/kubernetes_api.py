"""A Kubernetes API server that knows one list of pods, as recorded: label selectors, pages, tokens, and what it refuses."""

import base64
import contextlib
import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import trustme

PODS = Path(__file__).resolve().parents[1] / "data" / "kubernetes" / "pods.json"
TOKEN = "eyJhbGciOiJSUzI1NiJ9.recorded"
# What clients ask first, to learn how `pods` is spelled.
_DISCOVERY: dict[str, dict[str, Any]] = {
    "/version": {"major": "1", "minor": "32", "gitVersion": "v1.32.4"},
    "/api": {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1": {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [
            {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": ["get", "list"]}
        ],
    },
}
_REASONS = {401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 410: "Expired", 500: "InternalError"}


class KubernetesApi:
    """Behaviour that a test may change while it runs; `requests` are the paths that were asked for, in order."""

    def __init__(self) -> None:
        self.pods: list[dict[str, Any]] = json.loads(PODS.read_text())["items"]
        self.namespace = "train"
        self.token = TOKEN
        self.page_limit = 500  # a server may give fewer than it was asked for
        self.forbidden = False
        self.expire_lists = 0  # so many times the rest of a list is gone
        self.requests: list[str] = []
        self.port = 0
        self.ca_pem = b""

    def answer(self, target: str, authorization: str) -> tuple[int, dict[str, Any]]:
        """The status and body for a GET."""
        self.requests.append(target)
        url = urlsplit(target)
        if authorization != f"Bearer {self.token}":
            return _problem(401, "Unauthorized")
        if url.path in _DISCOVERY:
            return 200, _DISCOVERY[url.path]
        _, _, namespace = url.path.partition("/api/v1/namespaces/")
        namespace, _, kind = namespace.partition("/")
        if kind != "pods":
            return _problem(404, "the server could not find the requested resource")
        if self.forbidden:
            who = "system:serviceaccount:train:default"
            return _problem(
                403,
                f'pods is forbidden: User "{who}" cannot list resource "pods" in API group "" in the namespace "{namespace}"',
            )
        return self._page(namespace, {key: values[0] for key, values in parse_qs(url.query).items()})

    def _page(self, namespace: str, query: dict[str, str]) -> tuple[int, dict[str, Any]]:
        label, _, value = query.get("labelSelector", "").partition("=")
        there = self.pods if namespace == self.namespace else []
        chosen = [pod for pod in there if not label or pod["metadata"]["labels"].get(label) == value]
        start = int(query.get("continue", "0"))
        if start and self.expire_lists:
            self.expire_lists -= 1
            return _problem(410, "The provided continue parameter is too old to display a consistent list result.")
        end = start + min(int(query.get("limit") or len(chosen) or 1), self.page_limit)
        metadata: dict[str, Any] = {"resourceVersion": "4821"}
        if end < len(chosen):
            metadata.update({"continue": str(end), "remainingItemCount": len(chosen) - end})
        return 200, {"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": chosen[start:end]}


def _problem(code: int, message: str) -> tuple[int, dict[str, Any]]:
    return code, {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": _REASONS[code],
        "code": code,
    }


@contextlib.contextmanager
def running_api() -> Iterator[KubernetesApi]:
    """A server with TLS on a port of loopback that the kernel chooses."""
    api = KubernetesApi()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, document = api.answer(self.path, self.headers.get("Authorization", ""))
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the library's
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    api.ca_pem = authority.cert_pem.bytes()
    api.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def write_service_account(directory: Path, api: KubernetesApi) -> Path:
    """The files that the kubelet puts into every pod."""
    directory.mkdir(exist_ok=True)
    (directory / "token").write_text(api.token)
    (directory / "namespace").write_text(api.namespace)
    (directory / "ca.crt").write_bytes(api.ca_pem)
    return directory


def write_kubeconfig(path: Path, api: KubernetesApi) -> Path:
    """What a user's kubectl is told."""
    authority = base64.b64encode(api.ca_pem).decode()
    cluster = {"server": f"https://127.0.0.1:{api.port}", "certificate-authority-data": authority}
    path.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": api.namespace}}],
                "clusters": [{"name": "c", "cluster": cluster}],
                "users": [{"name": "u", "user": {"token": api.token}}],
            }
        )
    )
    return path
