"""What of the pipeline can be changed by flags, and by a reload while it runs."""

from collections.abc import Iterable, Mapping

import msgspec

from dynolog.collectors.spec import CollectorSpec
from dynolog.model.flag import Settings


class PipelineConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Intervals in seconds. `own_intervals_s` by collector name (0 or missing: `interval_s`); `enabled` names the collectors to run.

    `deadline_s` is the time after which a read is stalled; `cpu_budget_pct` the percentage of one core the daemon may use
    over a minute (0: no limit).
    """

    interval_s: float
    enabled: frozenset[str]
    own_intervals_s: Mapping[str, float] = {}
    deadline_s: float = 2.0
    cpu_budget_pct: float = 1.0


def config_of(settings: Settings, specs: Iterable[CollectorSpec]) -> PipelineConfig:
    """The configuration that the daemon's flags give."""
    specs = tuple(specs)
    return PipelineConfig(
        interval_s=settings.number("kernel_monitor_reporting_interval_s"),
        own_intervals_s={spec.name: settings.number(spec.interval_flag) for spec in specs},
        enabled=frozenset(spec.name for spec in specs if settings.on(spec.enable_flag)),
        deadline_s=settings.number("collector_deadline_s"),
        cpu_budget_pct=settings.number("cpu_budget_pct"),
    )
