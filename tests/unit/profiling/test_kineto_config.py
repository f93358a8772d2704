"""Which config texts are delivered, which are refused, and where their traces will be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.model.errors import RequestError
from dynolog.profiling.kineto_config import KinetoConfig, Mode
from dynolog.profiling.kineto_keys import KEYS
from dynolog.profiling.trace_options import TraceOptions, render_request

PATH = "ACTIVITIES_LOG_FILE=/tmp/t.json\n"


def refusal(text: str) -> str:
    with pytest.raises(RequestError) as caught:
        KinetoConfig.parse(text)
    assert caught.value.code == "bad_config"
    return caught.value.sentence


def test_duration_mode_has_the_keys_of_the_original_in_its_order() -> None:
    text = render_request(TraceOptions(log_file="/tmp/t.json", duration_ms=700, start_time_ms=9, with_flops=True))
    assert text.split("\n") == [
        "ACTIVITIES_LOG_FILE=/tmp/t.json",
        "PROFILE_START_TIME=9",
        "ACTIVITIES_DURATION_MSECS=700",
        "PROFILE_REPORT_INPUT_SHAPES=false",
        "PROFILE_WITH_STACK=false",
        "PROFILE_WITH_FLOPS=true",
        "PROFILE_WITH_MODULES=false",
    ]
    config = KinetoConfig.parse(text)
    assert (config.mode, config.duration_ms, config.start_time_ms, config.warmup_s) == (Mode.DURATION, 700, 9, None)
    assert config.effective_warmup_s == 5
    assert [warning.partition(":")[0] for warning in config.warnings] == ["PROFILE_WITH_FLOPS"]


def test_iteration_mode_has_no_duration_keys() -> None:
    """A12: exactly one of the two modes."""
    text = render_request(
        TraceOptions(log_file="/tmp/t.json", iterations=3, roundup=10, duration_ms=700, start_time_ms=9)
    )
    assert [line.partition("=")[0] for line in text.split("\n")][:4] == [
        "ACTIVITIES_LOG_FILE",
        "PROFILE_START_ITERATION",
        "PROFILE_START_ITERATION_ROUNDUP",
        "ACTIVITIES_ITERATIONS",
    ]
    assert "DURATION" not in text
    assert "START_TIME" not in text
    config = KinetoConfig.parse(text)
    assert (config.mode, config.iterations, config.roundup) == (Mode.ITERATIONS, 3, 10)


def test_memory_options_and_ours_have_their_places() -> None:
    options = TraceOptions(log_file="/t/x.json", profile_memory=True, warmup_s=0, activities=("cpu_op", "kernel"))
    lines = render_request(options).split("\n")
    assert lines[4:7] == ["PROFILE_PROFILE_MEMORY=true", "PROFILE_MEMORY=true", "PROFILE_MEMORY_DURATION_MSECS=500"]
    assert lines[-2:] == ["ACTIVITIES_WARMUP_PERIOD_SECS=0", "ACTIVITY_TYPES=cpu_op,kernel"]
    config = KinetoConfig.parse(render_request(options))
    assert config.warmup_s == 0
    assert config.memory_snapshot
    assert "built for the CPU" in config.warnings[0]
    assert config.fallback_paths(7) == ("/tmp/libkineto_activities_7.json", "/tmp/memory_snapshot_7.pickle")


def test_memory_events_go_with_iterations_but_the_snapshot_does_not() -> None:
    KinetoConfig.parse(render_request(TraceOptions(log_file="/t/x.json", profile_memory=True, iterations=2)))
    assert "duration only" in refusal(PATH + "PROFILE_START_ITERATION=0\nACTIVITIES_ITERATIONS=2\nPROFILE_MEMORY=true")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("ACTIVITIES_DURATION_MSECS=500", "ACTIVITIES_LOG_FILE is missing"),
        ("ACTIVITIES_LOG_FILE=t.json", "not an absolute path"),
        ("ACTIVITIES_LOG_FILE=~/t.json", "not an absolute path"),
        ("ACTIVITIES_LOG_FILE=/tmp/../etc/t.json", "'..'"),
        ("ACTIVITIES_LOG_FILE=/tmp/", "names a directory"),
        ("ACTIVITIES_LOG_FILE=/tmp/a.json.d/t.json", "directory's name"),
        ("ACTIVITIES_LOG_FILE=/tmp/a#b.json", "cuts a line"),
        ("ACTIVITIES_LOG_FILE=/tmp/lr=3.json", "second one"),
        ("ACTIVITIES_LOG_FILE=/tmp/a\x00b.json", "control character"),
        ("ACTIVITIES_LOG_FILE=/tmp/a\rb.json", "control character"),
        ("ACTIVITIES_LOG_FILE=/tmp/a\u2028b.json", "line break"),
        ("ACTIVITIES_LOG_FILE=/tmp/" + "x" * 250 + ".json", "too long"),
        ("ACTIVITIES_LOG_FILE", "KEY=VALUE"),
        (PATH + "ACTIVITIES_DURATION_MSECS=0", "from 1"),
        (PATH + "ACTIVITIES_DURATION_MSECS=-5", "from 1"),
        (PATH + "ACTIVITIES_DURATION_MSECS=1e3", "not an integer"),
        (PATH + "ACTIVITIES_DURATION_MSECS=1_000", "not an integer"),
        (PATH + "ACTIVITIES_DURATION_MSECS=٣", "not an integer"),
        (PATH + "ACTIVITIES_DURATION_MSECS=" + "9" * 5000, "not an integer"),
        (PATH + "PROFILE_START_TIME=9223372036854775808", "not an integer"),
        (PATH + "ACTIVITIES_DURATION_MSECS=5\nACTIVITIES_ITERATIONS=5\nPROFILE_START_ITERATION=0", "not both"),
        (PATH + "ACTIVITIES_DURATION_MSECS=5\nACTIVITIES_DURATION_MSECS=6", "twice"),
        (PATH + "ACTIVITIES_DURATION_MSECS=5\nACTIVITIES_DURATION_SECS=6", "two durations"),
        (PATH + "ACTIVITIES_ITERATIONS=5", "ignored by libkineto"),
        (PATH + "PROFILE_START_ITERATION=5", "how many iterations"),
        (PATH + "PROFILE_WITH_STACK=maybe", "neither true nor false"),
        (PATH + "ACTIVITY_TYPES=cpu_op,gpus", "'gpus'"),
        (PATH + "PROFILE_WITH_STACKS=true", "did you mean PROFILE_WITH_STACK?"),
        (PATH + "profile_with_stack=true", "no key"),
        (PATH + "ACTIVITIES_ENABLED=false", "no trace"),
        (PATH + "#" * 20000, "longer than"),
    ],
)
def test_what_cannot_work_is_refused_with_the_reason(text: str, says: str) -> None:
    assert says in refusal(text)


def test_a_line_break_in_a_path_injects_no_key() -> None:
    """The second line is read as what it is, a line of its own, and judged."""
    assert "no key" in refusal("ACTIVITIES_LOG_FILE=/tmp/a\nEVIL=1.json")


@pytest.mark.parametrize(
    ("log_file", "final"),
    [
        ("/tmp/t.json", "/tmp/t_42.json"),
        ("/tmp/t.json.gz", "/tmp/t_42.json.gz"),
        ("/tmp/t.pt.trace.json", "/tmp/t_42.pt.trace.json"),
        ("/tmp/t.json.bak.json", "/tmp/t_42.json.bak.json"),
        ("/tmp/t.json.x.pt.trace.json", "/tmp/t.json.x_42.pt.trace.json"),
        ("/tmp/trace", "/tmp/trace"),
    ],
)
def test_the_pid_goes_where_libkineto_puts_it(log_file: str, final: str) -> None:
    config = KinetoConfig.parse(f"ACTIVITIES_LOG_FILE={log_file}\nACTIVITIES_DURATION_MSECS=5")
    assert config.final_path(42) == final
    assert config.temporary_path(42) == final + ".tmp"
    assert bool(config.warnings) == (not log_file.endswith(".json"))
    assert config.one_file_for_all == ("42" not in final)


def test_the_delivered_text_keeps_the_lines_and_adds_the_trace_id_once() -> None:
    text = "\n# from a script\n" + PATH + "\nACTIVITIES_DURATION_MSECS=5\n"
    assert KinetoConfig.parse(text).render("r1.7") == PATH + "ACTIVITIES_DURATION_MSECS=5\nREQUEST_TRACE_ID=r1.7\n"
    own = KinetoConfig.parse(PATH + "REQUEST_TRACE_ID=mine\n")
    assert own.render("r1.7") == PATH + "REQUEST_TRACE_ID=mine\n"


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ("", "records 500 ms"),
        ("PROFILE_START_TIME=5\nPROFILE_START_ITERATION=0\nACTIVITIES_ITERATIONS=1", "ignored by libkineto"),
        ("ACTIVITIES_DURATION_MSECS=5\nPROFILE_MEMORY=true", "no effect"),
        ("ACTIVITIES_DURATION_MSECS=5\nPROFILE_MEMORY_DURATION_MSECS=5", "no effect"),
        ("ACTIVITIES_DURATION_MSECS=5\nPROFILE_PROFILE_MEMORY=true", "records no memory event"),
        ("ACTIVITIES_DURATION_MSECS=5\nPROFILE_WITH_FLOPS=true", "writes none of them"),
        ("ACTIVITIES_DURATION_MSECS=5\nPROFILE_WITH_MODULES=true", "TorchScript"),
        ("ACTIVITIES_DURATION_MSECS=5\nPROFILE_WITH_STACK=true\nACTIVITY_TYPES=cpu_op,kernel", "python_function"),
    ],
)
def test_keys_without_effect_are_said(lines: str, says: str) -> None:
    """A15: an option that is accepted and does nothing is worse than a refusal."""
    assert any(says in warning for warning in KinetoConfig.parse(PATH + lines).warnings)


@pytest.mark.parametrize(
    "lines",
    [
        "ACTIVITIES_DURATION_MSECS=5\nPROFILE_WITH_STACK=true",
        "ACTIVITIES_DURATION_MSECS=5\nPROFILE_WITH_STACK=true\nACTIVITY_TYPES=cpu_op,PYTHON_FUNCTION",
        "ACTIVITIES_DURATION_MSECS=5\nPROFILE_WITH_FLOPS=false\nPROFILE_WITH_MODULES=false\nPROFILE_REPORT_INPUT_SHAPES=true",
    ],
)
def test_nothing_is_said_of_keys_that_work(lines: str) -> None:
    assert KinetoConfig.parse(PATH + lines).warnings == ()


_LINES = st.lists(st.tuples(st.sampled_from([*KEYS, "OTHER", ""]), st.text(max_size=30)).map("=".join), max_size=8)


@given(st.one_of(st.text(), _LINES.map("\n".join)))
def test_any_text_is_parsed_or_refused_and_what_is_parsed_stays_the_same(text: str) -> None:
    try:
        config = KinetoConfig.parse(text)
    except RequestError as error:
        assert error.code == "bad_config"
        return
    again = KinetoConfig.parse(config.render("id"))
    assert again.log_file == config.log_file
    assert again.render("other").count("REQUEST_TRACE_ID=") == 1


@given(
    st.builds(
        TraceOptions,
        log_file=st.from_regex(r"/[a-z]{1,9}/[a-zäé ]{0,9}x\.json", fullmatch=True),
        duration_ms=st.integers(1, 86_400_000),
        iterations=st.integers(0, 2**31 - 1),
        start_time_ms=st.integers(0, 2**63 - 1),
        roundup=st.integers(0, 2**31 - 1),
        profile_memory=st.booleans(),
        warmup_s=st.none() | st.integers(0, 3600),
    )
)
def test_what_the_command_line_makes_is_never_refused(options: TraceOptions) -> None:
    config = KinetoConfig.parse(render_request(options))
    assert config.log_file == options.log_file
    assert (config.mode is Mode.ITERATIONS) == (options.iterations > 0)
    assert config.warmup_s == options.warmup_s
