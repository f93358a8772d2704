"""The pipeline's part of the daemon's flags."""

from dynolog.model.flag import Flag, Settings
from dynolog.pipeline.config import PipelineConfig, config_of
from fakes.scripted_collector import ScriptedCollector
from fakes.stepped_time import SteppedTime


def test_the_flags_of_each_collector_are_found_by_its_name() -> None:
    time = SteppedTime()
    specs = [ScriptedCollector(name, time).spec for name in ("cpu", "disk", "psi")]
    flags = [
        Flag(name="kernel_monitor_reporting_interval_s", default=60.0, help=""),
        Flag(name="collector_deadline_s", default=2.0, help=""),
        Flag(name="cpu_budget_pct", default=1.0, help=""),
        *(Flag(name=f"enable_{spec.name}_collector", default=spec.name != "psi", help="") for spec in specs),
        *(Flag(name=f"{spec.name}_interval_s", default=0.0, help="") for spec in specs),
    ]
    settings = Settings(flags, {"disk_interval_s": 10.0, "cpu_budget_pct": 0.5})
    assert config_of(settings, specs) == PipelineConfig(
        interval_s=60.0,
        enabled=frozenset(("cpu", "disk")),
        own_intervals_s={"cpu": 0.0, "disk": 10.0, "psi": 0.0},
        deadline_s=2.0,
        cpu_budget_pct=0.5,
    )
