"""Memory traffic and cache use by Resource Control."""

import pytest

from dynolog.collectors.resctrl import ResctrlCollector
from dynolog.model.errors import SourceUnavailable
from fakes.collector_context import HostTree
from fakes.measure import measure

ROOT = "sys/fs/resctrl"


def domain(folder: str, number: int, moved: int | str, local: int | str, occupied: int | str = 0) -> dict[str, str]:
    path = f"{ROOT}/{folder}mon_data/mon_L3_{number:02}"
    return {
        f"{path}/mbm_total_bytes": f"{moved}\n",
        f"{path}/mbm_local_bytes": f"{local}\n",
        f"{path}/llc_occupancy": f"{occupied}\n",
    }


def test_traffic_of_all_caches_and_groups_is_added(host_tree: HostTree) -> None:
    before = domain("", 0, 1000, 500) | domain("", 1, 50, 50) | domain("batch/", 0, 7, 7)
    after = domain("", 0, 5000, 2500, 64) | domain("", 1, 150, 100, 32) | domain("batch/", 0, 107, 57, 4)
    values = measure(host_tree, ResctrlCollector, before, after, elapsed_s=2.0)
    assert values == {
        "resctrl_membw_bytes_per_s": (4000 + 100 + 100) / 2,
        "resctrl_membw_local_bytes_per_s": (2000 + 50 + 50) / 2,
        "resctrl_llc_occupied_bytes": 100,
    }


@pytest.mark.parametrize("lost", ["Unavailable", "Error", "Unassigned", ""])
def test_a_cache_that_lost_count_makes_its_sum_unknown(host_tree: HostTree, lost: str) -> None:
    """The hardware has fewer counters than groups; a part of the traffic would look like all of it."""
    before = domain("", 0, 1000, 500) | domain("", 1, 50, 50)
    values = measure(host_tree, ResctrlCollector, before, domain("", 0, 5000, 2500, 64) | domain("", 1, lost, 100, 32))
    assert values == {"resctrl_membw_local_bytes_per_s": 2050, "resctrl_llc_occupied_bytes": 96}


def test_a_count_that_went_back_has_no_value(host_tree: HostTree) -> None:
    values = measure(host_tree, ResctrlCollector, domain("", 0, 1000, 500), domain("", 0, 10, 600, 1))
    assert "resctrl_membw_bytes_per_s" not in values
    assert values["resctrl_membw_local_bytes_per_s"] == 100


def test_a_new_group_counts_from_its_second_reading_on(host_tree: HostTree) -> None:
    after = domain("", 0, 1100, 600) | domain("new/", 0, 10**12, 10**12)
    values = measure(host_tree, ResctrlCollector, domain("", 0, 1000, 500), after)
    assert values["resctrl_membw_bytes_per_s"] == 100


def test_a_processor_without_monitoring_and_one_without_mount(host_tree: HostTree) -> None:
    with pytest.raises(SourceUnavailable, match="not mounted"):
        measure(host_tree, ResctrlCollector, {}, {})
    with pytest.raises(SourceUnavailable, match="monitors neither"):
        measure(
            host_tree, ResctrlCollector, {f"{ROOT}/schemata": "L3:0=fff\n", f"{ROOT}/info/last_cmd_status": "ok\n"}, {}
        )
