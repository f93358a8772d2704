"""What `dyno gputrace` asks for, and the config text that says so."""

import msgspec


class TraceOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a trace request; the defaults are those of the public Dynolog's `dyno gputrace`.

    `iterations` above 0 chooses iteration mode; `duration_ms` and `start_time_ms` (Unix time, 0 = now) are then not sent.
    `warmup_s` None and `activities` () leave libkineto's defaults.
    """

    log_file: str
    duration_ms: int = 500
    iterations: int = 0
    start_time_ms: int = 0
    roundup: int = 1
    record_shapes: bool = False
    profile_memory: bool = False
    with_stacks: bool = False
    with_flops: bool = False
    with_modules: bool = False
    warmup_s: int | None = None
    activities: tuple[str, ...] = ()


def render_request(options: TraceOptions) -> str:
    """The config text, keys in the order of the public Dynolog's; ours come last. KinetoConfig.parse judges it."""
    pairs: list[tuple[str, object]] = [("ACTIVITIES_LOG_FILE", options.log_file)]
    if options.iterations > 0:
        pairs += [
            ("PROFILE_START_ITERATION", 0),
            ("PROFILE_START_ITERATION_ROUNDUP", options.roundup),
            ("ACTIVITIES_ITERATIONS", options.iterations),
        ]
    else:
        pairs += [("PROFILE_START_TIME", options.start_time_ms), ("ACTIVITIES_DURATION_MSECS", options.duration_ms)]
    pairs.append(("PROFILE_REPORT_INPUT_SHAPES", options.record_shapes))
    if options.profile_memory:
        pairs.append(("PROFILE_PROFILE_MEMORY", True))
        if options.iterations <= 0:
            # The snapshot knows no iterations.
            pairs += [("PROFILE_MEMORY", True), ("PROFILE_MEMORY_DURATION_MSECS", options.duration_ms)]
    pairs += [
        ("PROFILE_WITH_STACK", options.with_stacks),
        ("PROFILE_WITH_FLOPS", options.with_flops),
        ("PROFILE_WITH_MODULES", options.with_modules),
    ]
    if options.warmup_s is not None:
        pairs.append(("ACTIVITIES_WARMUP_PERIOD_SECS", options.warmup_s))
    if options.activities:
        pairs.append(("ACTIVITY_TYPES", ",".join(options.activities)))
    return "\n".join(f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in pairs)
