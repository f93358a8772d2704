"""Following a request to its end, through outages, and what Ctrl-C says."""

import sys
from collections.abc import Callable

import pytest

from dynolog.cli.exit_codes import CommandError, Interrupted
from dynolog.cli.gputrace import one_request
from dynolog.cli.gputrace.follow import Follower
from dynolog.cli.gputrace.progress_views import LinesView, NoView, choose_view
from dynolog.model.capture import CaptureState, Transition
from dynolog.model.errors import DynologError, RequestError
from dynolog.model.trace_request import RequestProgress
from dynolog.rpc.client import CannotReach, NoAnswer, Target
from dynolog.rpc.messages import GetTrace, TraceProgressReply, WaitTrace
from fakes.services import capture

S = 1_000_000_000
GONE = CannotReach("no daemon answers")
PENDING = (Transition(CaptureState.PENDING, 5 * S, "asked"),)
DELIVERED = (*PENDING, Transition(CaptureState.DELIVERED, 7 * S, "its poll was answered"))


def progress(version: int, *, done: bool = False, history: tuple[Transition, ...] = PENDING) -> RequestProgress:
    state = CaptureState.WRITTEN if done else history[-1].state
    return RequestProgress(
        request_id="r1", version=version, done=done, captures=(capture(7, state=state, history=history),)
    )


class Script:
    """Answers waitTrace one after the other; an exception is raised."""

    def __init__(self, *answers: RequestProgress | BaseException) -> None:
        self.answers = list(answers)
        self.asked: list[WaitTrace] = []

    def call(self, target: Target, request: WaitTrace, reply_type: type) -> TraceProgressReply:
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return TraceProgressReply(requests=(answer,))


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Script]:
    def make(*answers: RequestProgress | BaseException) -> Script:
        made = Script(*answers)
        monkeypatch.setattr(one_request, "call", made.call)
        return made

    return make


def follower(**options: float) -> Follower:
    return Follower(Target(port=99), "r1", pause_s=0, **options)


def test_it_asks_for_what_is_new_until_it_is_done(script: Callable[..., Script]) -> None:
    asked = script(progress(0), progress(3), progress(4, done=True))
    assert follower().follow(NoView()).version == 4
    assert [request.seen_version for request in asked.asked] == [-1, 0, 3]


def test_a_restart_is_borne_and_then_said(script: Callable[..., Script]) -> None:
    script(progress(0), GONE, NoAnswer("closed"), progress(1, done=True))
    assert follower().follow(NoView()).done
    script(progress(0), GONE, RequestError("not_found", "no request r1"))
    with pytest.raises(CommandError, match="restarted"):
        follower().follow(NoView())


def test_outages_are_counted_in_a_row(script: Callable[..., Script]) -> None:
    answers = [answer for version in range(20) for answer in (GONE, progress(version))]
    script(*answers, progress(20, done=True))
    assert follower().follow(NoView()).version == 20


def test_a_daemon_that_has_too_much_to_do_is_asked_again(script: Callable[..., Script]) -> None:
    asked = script(
        RequestError("busy", "64 waits"), progress(1), RequestError("overloaded", "too many"), progress(2, done=True)
    )
    assert follower().follow(NoView()).version == 2
    assert len(asked.asked) == 4


def test_an_answer_about_no_request_or_several_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for answer in ((), (progress(0), progress(1))):
        monkeypatch.setattr(one_request, "call", lambda *_, answer=answer: TraceProgressReply(requests=answer))
        with pytest.raises(DynologError, match=f"about {len(answer)} requests"):
            one_request.ask_about(Target(), GetTrace(request_id="r1"))


def test_an_unknown_request_is_the_daemons_sentence(script: Callable[..., Script]) -> None:
    script(RequestError("not_found", "no request r1"))
    with pytest.raises(RequestError):
        follower().follow(NoView())


def test_a_daemon_that_stays_away_is_given_up_with_what_to_type_later(script: Callable[..., Script]) -> None:
    script(progress(0), *[GONE] * 20)
    with pytest.raises(CommandError, match=r"dyno --port 99 trace r1") as given_up:
        follower().follow(NoView())
    assert given_up.value.exit_code == 3


def test_time_up_returns_it_as_it_stands(script: Callable[..., Script]) -> None:
    script(progress(0), progress(0))
    assert not follower(wait_timeout_s=0.000001).follow(NoView()).done


def test_ctrl_c_says_what_goes_on_and_how_to_follow_it(script: Callable[..., Script]) -> None:
    script(progress(0), KeyboardInterrupt())
    with pytest.raises(Interrupted) as interrupted:
        follower().follow(NoView())
    assert interrupted.value.exit_code == 130
    assert "request r1 goes on in the daemon (1 pending)" in str(interrupted.value)
    assert "`dyno --port 99 trace r1`" in str(interrupted.value)


def test_without_rich_a_terminal_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setitem(sys.modules, "dynolog.cli.gputrace.live_view", None)
    assert isinstance(choose_view(as_json=False, clock_offset_ns=0), LinesView)
    assert isinstance(choose_view(as_json=True, clock_offset_ns=0), NoView)


def test_lines_appear_once_for_each_change(capsys: pytest.CaptureFixture[str]) -> None:
    view = LinesView()
    view.show(progress(0))
    view.show(progress(0))
    view.show(progress(1, history=DELIVERED))
    view.close()
    assert capsys.readouterr().out.splitlines() == [
        "   0.0 s  pid 7: pending: asked",
        "   2.0 s  pid 7: delivered: its poll was answered",
    ]
