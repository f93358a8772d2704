"""Activity of the kernel on hand-made /proc/stat files."""

from dynolog.collectors.activity import ActivityCollector
from fakes.collector_context import HostTree
from fakes.measure import measure

BEFORE = """cpu  1 2 3 4
intr 1000 5 5
ctxt 2000
processes 300
procs_running 9
procs_blocked 8
softirq 100 1 2 3 4 5 6 7 8 9 10
"""
AFTER = """cpu  1 2 3 4
intr 1070 5 5
ctxt 2500
processes 303
procs_running 2
procs_blocked 0
softirq 155 2 4 6 8 10 12 14 16 18 20
"""


def test_every_metric_changes_to_what_was_counted(host_tree: HostTree) -> None:
    assert measure(host_tree, ActivityCollector, {"proc/stat": BEFORE}, {"proc/stat": AFTER}) == {
        "interrupts": 70,
        "context_switches": 500,
        "forks": 3,
        "procs_running": 2,
        "procs_blocked": 0,
        "softirqs": 55,
        "softirqs_hi": 1,
        "softirqs_timer": 2,
        "softirqs_net_tx": 3,
        "softirqs_net_rx": 4,
        "softirqs_block": 5,
        "softirqs_irq_poll": 6,
        "softirqs_tasklet": 7,
        "softirqs_sched": 8,
        "softirqs_hrtimer": 9,
        "softirqs_rcu": 10,
    }


def test_a_counter_that_went_down_or_is_missing_has_no_value(host_tree: HostTree) -> None:
    after = AFTER.replace("ctxt 2500", "ctxt 1999").replace("processes 303\n", "").replace(" 16 18 20", " 7 18 20")
    values = measure(host_tree, ActivityCollector, {"proc/stat": BEFORE}, {"proc/stat": after})
    assert not {"context_switches", "forks", "softirqs_sched"} & set(values)
    assert values["interrupts"] == 70
    assert values["softirqs_rcu"] == 10
