"""What ODS and Scuba share: forms that are POSTed to the Graph API with an access token."""

import logging
import time
from collections.abc import Callable

from dynolog.exporters.delivery.http_transport import HttpTransport, TlsFiles
from dynolog.exporters.delivery.payload import Payload, Refused, Transport, Verdict
from dynolog.exporters.graph.access_token import AccessToken, access_token_of
from dynolog.exporters.graph.form import form
from dynolog.model.flag import Settings

_log = logging.getLogger(__name__)


class GraphTransport:
    """Puts the access token in front of each form as it is sent, so that it is neither queued nor on disk.

    `oldest_s` is for a destination whose values have no time of their own: what is older by its payload's `kind` (nanoseconds of the
    wall clock) would be taken for new, and is refused.
    """

    timeout_s = 10.0

    def __init__(
        self,
        make_http: Callable[[tuple[str, ...]], Transport],
        token: AccessToken,
        oldest_s: float | None = None,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """`make_http` is given what may never be shown; it is called again when the token changes."""
        self._make_http = make_http
        self._token = token
        self._oldest_s = oldest_s
        self._wall_ns = wall_ns
        self._used = ""
        self._http: Transport | None = None

    def send(self, payload: Payload) -> Verdict:
        """One attempt."""
        if self._oldest_s is not None:
            age_s = (self._wall_ns() - int(payload.kind)) / 1e9
            if age_s > self._oldest_s:
                return Refused(
                    f"values of {age_s:.0f} s ago have no time of their own, and would be taken for new ones"
                )
        token = self._token.value()
        if self._http is None or token != self._used:
            self.close()
            self._http, self._used = self._make_http((token, form({"": token})[1:].decode()) if token else ()), token
        return self._http.send(
            Payload(
                body=form({"access_token": token}) + b"&" + payload.body,
                records=payload.records,
                content_type=payload.content_type,
            )
        )

    def close(self) -> None:
        """Drop the connection."""
        http, self._http = self._http, None
        if http is not None:
            http.close()


def graph_transport(settings: Settings, url_flag: str, oldest_s: float | None = None) -> tuple[str, GraphTransport]:
    """Where the flags say, for people, and what carries forms there. Raises FlagError."""
    url, ca_file = settings.text(url_flag), settings.text("certificate_path")

    def make_http(secrets: tuple[str, ...]) -> HttpTransport:
        return HttpTransport(
            url,
            timeout_s=GraphTransport.timeout_s,
            tls=TlsFiles(ca_file=ca_file) if ca_file else None,
            secrets=secrets,
            said_by=f"--{url_flag}",
        )

    token = access_token_of(settings)
    destination = make_http(()).destination
    if not token.value():
        _log.warning("--%s: there is no access token: --access_token_file names the file that holds it", url_flag)
    elif destination.startswith("http:"):
        _log.warning(
            "--%s=%s: the access token travels readable for everybody on the way: use https", url_flag, destination
        )
    return destination, GraphTransport(make_http, token, oldest_s)
