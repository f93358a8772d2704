"""The keys of libkineto's config text that PyTorch 2.0 or a later one knows, and what their values may be.

From the option parsers of libkineto's `Config.cpp`. An unknown key makes some versions refuse the whole text and others ignore
the line without a word to us, so only these are let through.
"""

from collections.abc import Callable

from dynolog.model.errors import RequestError

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
DAY_MS = 86_400_000
_TRUE = ("y", "yes", "t", "true", "1")
_FALSE = ("n", "no", "f", "false", "0")

# Names of libkineto's ActivityType.h over all versions; a name that a version does not know makes it refuse the text.
ACTIVITY_TYPES = frozenset(
    [
        *("cpu_op", "cpu_instant_event", "user_annotation", "python_function", "external_correlation", "overhead"),
        *("kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation", "collective_comm", "glow_runtime", "hpu_op"),
        *("cuda_runtime", "cuda_driver", "cuda_sync", "cuda_event", "cuda_profiler_range"),
        *("mtia_runtime", "mtia_ccp_events", "mtia_insight", "mtia_counters", "mtia_workloadd"),
        *("xpu_runtime", "xpu_driver", "xpu_sync", "xpu_scope_profiler", "privateuse1_runtime", "privateuse1_driver"),
    ]
)

Value = int | bool | str | tuple[str, ...]


def bad_config(sentence: str) -> RequestError:
    """The refusal of a config text."""
    return RequestError("bad_config", sentence)


def _integer(minimum: int, maximum: int) -> Callable[[str, str], int]:
    def read(key: str, text: str) -> int:
        # int() would also take signs, underscores and digits of other scripts, which strtoll does not.
        if not (text.isascii() and text.isdigit()) or not minimum <= int(text[:20]) <= maximum or len(text) > 19:
            raise bad_config(f"{key}={text[:40]} is not an integer from {minimum} to {maximum}")
        return int(text)

    return read


def _boolean(key: str, text: str) -> bool:
    if text.lower() not in _TRUE + _FALSE:
        raise bad_config(f"{key}={text[:40]} is neither true nor false")
    return text.lower() in _TRUE


def _text(key: str, text: str) -> str:
    if not text:
        raise bad_config(f"{key} has no value")
    return text


def _activities(key: str, text: str) -> tuple[str, ...]:
    names = tuple(name for part in text.split(",") if (name := part.strip().lower()))
    unknown = [name for name in names if name not in ACTIVITY_TYPES]
    if unknown or not names:
        what = f"does not know {unknown[0][:40]!r}" if unknown else "is empty"
        raise bad_config(f"{key} {what}: use some of {', '.join(sorted(ACTIVITY_TYPES))}")
    return names


_ANY_INTEGER = _integer(0, INT32_MAX)

KEYS: dict[str, Callable[[str, str], Value]] = {
    "ACTIVITIES_LOG_FILE": _text,
    "PROFILE_START_TIME": _integer(0, INT64_MAX),
    "ACTIVITIES_DURATION_MSECS": _integer(1, DAY_MS),
    "ACTIVITIES_DURATION_SECS": _integer(1, DAY_MS // 1000),
    "PROFILE_START_ITERATION": _ANY_INTEGER,
    "PROFILE_START_ITERATION_ROUNDUP": _ANY_INTEGER,
    "ACTIVITIES_ITERATIONS": _integer(1, INT32_MAX),
    "ACTIVITIES_WARMUP_PERIOD_SECS": _integer(0, 3600),
    "ACTIVITIES_WARMUP_ITERATIONS": _ANY_INTEGER,
    "ACTIVITIES_MAX_GPU_BUFFER_SIZE_MB": _integer(1, 1 << 20),
    "ACTIVITIES_DISPLAY_CUDA_SYNC_WAIT_EVENTS": _boolean,
    "ACTIVITIES_ENABLED": _boolean,
    "ACTIVITY_TYPES": _activities,
    "CLIENT_INTERFACE_ENABLE_OP_INPUTS_COLLECTION": _boolean,
    "PYTHON_STACK_TRACE": _boolean,
    "PROFILE_REPORT_INPUT_SHAPES": _boolean,
    "PROFILE_PROFILE_MEMORY": _boolean,
    "PROFILE_WITH_STACK": _boolean,
    "PROFILE_WITH_FLOPS": _boolean,
    "PROFILE_WITH_MODULES": _boolean,
    "PROFILE_MEMORY": _boolean,
    "PROFILE_MEMORY_DURATION_MSECS": _integer(1, DAY_MS),
    "ROCTRACER_MAX_EVENTS": _ANY_INTEGER,
    "CUPTI_PER_THREAD_BUFFER_ENABLED": _boolean,
    "CUPTI_PROFILER_METRICS": _text,
    "CUPTI_PROFILER_ENABLE_PER_KERNEL": _boolean,
    "CUPTI_PROFILER_MAX_RANGES": _ANY_INTEGER,
    "CUSTOM_CONFIG": _text,
    "VERBOSE_LOG_LEVEL": _ANY_INTEGER,
    "VERBOSE_LOG_MODULES": _text,
    "REQUEST_TRACE_ID": _text,
    "REQUEST_GROUP_TRACE_ID": _text,
}
