"""The page of the TPU device plugin."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.sources.tpu_page import PageSample, TpuChip, TpuOwner, chips, parse_page

NODE = 'make="cloud-tpu",model="tpu-v6e-slice",tpu_topology="2x2"'
POD = f'container="worker",{NODE},namespace="research",pod="llama-0"'
ID = "8d3f1c2a-77aa-4b0e-9c11-0242ac120002"


def line(name: str, chip: int, labels: str, value: str) -> str:
    return f'{name}{{accelerator_id="{ID}-{chip}",{labels}}} {value}\n'


PAGE = (
    "# HELP duty_cycle Percent of time when the TPU was actively processing\n# TYPE duty_cycle gauge\n"
    + line("duty_cycle", 0, POD, "87.5")
    + line("duty_cycle_node", 0, NODE, "80")
    + line("duty_cycle_node", 1, NODE, "0")
    + line("memory_total", 0, POD, "3.4359738368e+10")
    + line("memory_total_node", 0, NODE, "1")
    + line("memory_total_node", 1, NODE, "3.4359738368e+10")
    + line("memory_used", 0, POD, "8589934592")
    + line("memory_used_node", 1, NODE, "0")
    + line("tensorcore_utilization_node", 0, NODE, "33")
    + "go_goroutines 34\n"
)
OWNER = TpuOwner("research", "llama-0", "worker")
FIRST = TpuChip(
    index=0,
    serial=ID,
    model="tpu-v6e-slice",
    maker="cloud-tpu",
    owner=OWNER,
    duty_cycle_pct=87.5,
    memory_total_bytes=34359738368,
    memory_used_bytes=8589934592,
)
SECOND = TpuChip(
    index=1,
    serial=ID,
    model="tpu-v6e-slice",
    maker="cloud-tpu",
    duty_cycle_pct=0,
    memory_total_bytes=34359738368,
    memory_used_bytes=0,
)


def test_values_of_a_container_win_over_those_of_the_node() -> None:
    assert chips(parse_page(PAGE)) == [FIRST, SECOND]
    # Also where the node's come last.
    assert chips(reversed(parse_page(PAGE))) == [FIRST, SECOND]


def test_a_chip_that_two_containers_claim_has_the_nodes_values_and_no_owner() -> None:
    """Lines of a pod that was deleted stay for a while: nobody can say whose value is of now."""
    other = POD.replace("llama-0", "llama-1")
    page = (
        line("duty_cycle", 0, POD, "10")
        + line("duty_cycle", 0, other, "90")
        + line("duty_cycle_node", 0, NODE, "70")
        + line("memory_used", 0, POD, "5")
    )
    (chip,) = chips(parse_page(page))
    assert (chip.owner, chip.duty_cycle_pct, chip.memory_used_bytes) == (None, 70, None)


@pytest.mark.parametrize(
    "bad",
    [
        'duty_cycle{accelerator_id="' + ID + '-0" 5',
        "duty_cycle{} ",
        line("duty_cycle", 0, POD, "NaN"),
        line("duty_cycle", 0, POD, "+Inf"),
        line("duty_cycle", 0, POD, "-1"),
        line("duty_cycle", 0, POD, "eighty"),
        "duty_cycle{accelerator_id=} 5",
        'memory_used{"x} 1',
    ],
)
def test_a_malformed_line_costs_only_itself(bad: str) -> None:
    assert chips(parse_page(bad + "\n" + line("memory_used_node", 1, NODE, "7"))) == [
        TpuChip(index=1, serial=ID, model="tpu-v6e-slice", maker="cloud-tpu", memory_used_bytes=7)
    ]


@pytest.mark.parametrize("name", ["", "7", "uuid", "uuid-", "-3", "uuid-x", "uuid-1234567", "uuid-٣"])
def test_a_line_whose_chip_is_not_told_is_left_out(name: str) -> None:
    page = f'duty_cycle_node{{accelerator_id="{name}"}} 5\nduty_cycle_node 5\n'
    assert chips(parse_page(page)) == []


def test_a_share_of_more_than_the_whole_is_missing() -> None:
    (chip,) = chips(parse_page(line("duty_cycle_node", 0, NODE, "104")))
    assert chip.duty_cycle_pct is None


def test_line_ends_of_other_systems_escapes_and_times_are_read() -> None:
    page = 'duty_cycle_node{accelerator_id="a\\"b-2",model="x"} 5 1700000000000\r\nmemory_used_node{accelerator_id="a\\"b-2"} 1\r\n'
    assert chips(parse_page(page)) == [TpuChip(index=2, serial='a"b', model="x", duty_cycle_pct=5, memory_used_bytes=1)]


def test_other_families_with_the_same_beginning_are_none_of_ours() -> None:
    page = line("duty_cycle_gpu_node", 0, NODE, "5") + line("memory_used_total_node", 0, NODE, "5")
    assert parse_page(page) == []


@given(st.text(max_size=200))
def test_any_text_is_a_page(text: str) -> None:
    parse_page(text)
    chips(parse_page("duty_cycle" + text))


@given(
    st.lists(
        st.builds(
            PageSample,
            st.sampled_from(["duty_cycle", "memory_total", "memory_used"]),
            st.booleans(),
            st.dictionaries(
                st.sampled_from(["accelerator_id", "namespace", "pod", "container", "model"]),
                st.sampled_from(["u-0", "u-1", "a", ""]),
            ),
            st.floats(0, 1e12),
        )
    )
)
def test_a_chip_comes_once_whatever_its_lines_are(samples: list[PageSample]) -> None:
    found = chips(samples)
    assert len({(chip.index, chip.serial) for chip in found}) == len(found)
    assert all(chip.duty_cycle_pct is None or chip.duty_cycle_pct <= 100 for chip in found)
