"""The real child process with a backend that hangs, crashes and talks nonsense: it costs its own process only."""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dynolog.model.gpu import GpuReading
from dynolog.sources.gpu_backend import GpuOptions
from dynolog.sources.gpu_child import ChildFailed, GpuChild
from dynolog.sources.gpu_wire import Done, Open, Pause, Raised, Request, Resume, Sample, Sampled, Unavailable
from dynolog.sources.gpu_worker import Worker
from fakes.gpu_backend import PLACE, SCRIPT, Script

TESTS = Path(__file__).resolve().parents[2]
LONG_S = 30.0
SHORT_S = 0.3


class Scripted:
    """A child with the scripted backend."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.child: GpuChild | None = None

    def script(self, **what: object) -> None:
        Script(**what).write(self.path)  # type: ignore[arg-type] # the fields are checked when it is decoded

    def start(self, **what: object) -> GpuChild:
        self.script(**what)
        self.child = GpuChild(PLACE)
        return self.child

    def opened(self, **what: object) -> GpuChild:
        child = self.start(**what)
        assert child.ask(Open(GpuOptions(backend=PLACE)), LONG_S) == Done(ok=True)
        return child

    @property
    def calls(self) -> list[str]:
        return self.path.with_suffix(".calls").read_text().split()


@pytest.fixture
def scripted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripted]:
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    monkeypatch.setenv(SCRIPT, str(tmp_path / "script.json"))
    made = Scripted(tmp_path / "script.json")
    yield made
    if made.child is not None:
        made.child.close()
        assert not made.child.is_stuck


def test_samples_come_back_as_they_were_made(scripted: Scripted) -> None:
    reading = GpuReading(
        device="0", uuid="GPU-1", values={"gpu_power_draw": 99.5, "gpu_name": "x"}, counters={"a": 1 << 60}
    )
    child = scripted.opened(readings=[reading])
    before_ns = time.monotonic_ns()
    sampled = child.ask(Sample(), LONG_S)
    assert isinstance(sampled, Sampled)
    assert sampled.sample.readings == (reading,)
    assert before_ns <= sampled.taken_ns <= time.monotonic_ns()


def test_pausing_reaches_the_backend(scripted: Scripted) -> None:
    child = scripted.opened()
    assert child.ask(Pause(), LONG_S) == Done(ok=True)
    assert child.ask(Resume(), LONG_S) == Done(ok=True)
    assert scripted.calls == ["open", "pause", "resume"]


def test_closing_lets_the_backend_close(scripted: Scripted) -> None:
    child = scripted.opened()
    child.close()
    assert scripted.calls[-1] == "close"
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)


def test_what_the_backend_raises_is_an_answer(scripted: Scripted) -> None:
    child = scripted.opened(on_sample="raise")
    assert child.ask(Sample(), LONG_S) == Raised("RuntimeError: a fault of its own")
    scripted.script(on_sample="gone")
    assert child.ask(Sample(), LONG_S) == Unavailable("scripted", "the library is not there", "install it")


def test_what_a_backend_raises_has_an_end() -> None:
    """It stands in the log, in `dyno gpus` and in the status."""
    worker = Worker()
    answer = worker.answer(Open(GpuOptions(backend="no_such_module" * 100 + ":Backend")))
    assert isinstance(answer, Raised)
    assert answer.error.startswith("ModuleNotFoundError: No module named 'no_such_module")
    assert len(answer.error) <= 500


def test_a_backend_that_is_not_installed_is_an_answer(scripted: Scripted) -> None:
    child = scripted.start()
    answer = child.ask(Open(GpuOptions(backend="no_such_module:Backend")), LONG_S)
    assert isinstance(answer, Raised)
    assert "no_such_module" in answer.error


@pytest.mark.parametrize(
    ("how", "deadline_s", "said"),
    [
        ("hang", SHORT_S, "has not returned from sample within 0.3 s (--gpu_deadline_s) and was killed"),
        ("crash", LONG_S, "ended in sample: SIGSEGV (Segmentation fault); it printed: something is rotten"),
        ("exit", LONG_S, "ended in sample: exit status 7"),
        ("garbage", LONG_S, "gave an answer to sample that is none"),
        ("huge", LONG_S, "announced an answer of 2,147,483,647 bytes and was killed"),
    ],
)
def test_a_child_that_fails_is_gone_and_its_end_is_told(
    scripted: Scripted, how: str, deadline_s: float, said: str
) -> None:
    child = scripted.opened()
    scripted.script(on_sample=how)
    with pytest.raises(ChildFailed) as caught:
        child.ask(Sample(), deadline_s)
    assert said in str(caught.value)
    assert not child.is_stuck
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)
    for request in (Sample(), Pause()):
        with pytest.raises(ChildFailed):
            child.ask(request, LONG_S)


def test_printing_a_lot_does_not_stop_a_call(scripted: Scripted) -> None:
    child = scripted.opened()
    scripted.script(on_sample="print")
    assert isinstance(child.ask(Sample(), LONG_S), Sampled)


def test_a_kill_from_another_thread_ends_the_wait(scripted: Scripted) -> None:
    child = scripted.opened()
    os.kill(child.pid, signal.SIGSTOP)
    child.kill()
    with pytest.raises(ChildFailed):
        child.ask(Sample(), LONG_S)


def test_the_child_is_apart_from_the_daemon(scripted: Scripted) -> None:
    """A session of its own, so that Ctrl-C is not for it; nicer than jobs; no descriptors of the daemon."""
    secret = os.open("/dev/null", os.O_RDONLY)
    try:
        child = scripted.opened()
        assert os.getsid(child.pid) == child.pid
        assert os.getpriority(os.PRIO_PROCESS, child.pid) == min(os.getpriority(os.PRIO_PROCESS, 0) + 5, 19)
        open_files = {int(fd) for fd in os.listdir(f"/proc/{child.pid}/fd")}
        assert open_files == {0, 1, 2, 3}
        command = Path(f"/proc/{child.pid}/cmdline").read_bytes().split(b"\0")
        assert b"-P" in command
    finally:
        os.close(secret)


def test_the_child_does_not_outlive_a_daemon_that_is_killed(scripted: Scripted) -> None:
    """Even while it hangs in a call and so cannot see that its socket was closed."""
    scripted.script(on_open="hang")
    program = (
        "import sys; from dynolog.sources.gpu_child import GpuChild; from dynolog.sources.gpu_wire import Open;"
        "from dynolog.sources.gpu_backend import GpuOptions; child = GpuChild(sys.argv[1]); print(child.pid, flush=True);"
        "child.ask(Open(GpuOptions(backend=sys.argv[1])), 60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", program, PLACE], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    descriptor = os.pidfd_open(pid)
    try:
        deadline = time.monotonic() + LONG_S
        while not scripted.path.with_suffix(".calls").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        parent.kill()
        ended, _, _ = select.select([descriptor], [], [], LONG_S)
        assert ended
    finally:
        parent.wait()
        parent.stdout.close()
        os.close(descriptor)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_every_request_has_a_name_for_the_log() -> None:
    """The tag of a request is what a person reads in `has not returned from ...`."""
    names = {str(kind.__struct_config__.tag) for kind in Request.__args__}
    assert names == {"open", "sample", "pause", "resume", "close"}
