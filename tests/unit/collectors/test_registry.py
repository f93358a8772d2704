"""What holds for every collector: what it gives is what it declares."""

import math
import re
from typing import Any

import pytest

from dynolog.collectors.registry import COLLECTORS
from dynolog.collectors.spec import CollectorSpec, Values
from dynolog.model.errors import SourceUnavailable
from dynolog.model.metric import Catalogue, Kind
from dynolog.sources.host_files import HostFiles
from fakes.big_host import build
from fakes.collector_context import FakeNotices, HostTree
from fakes.measure import put_files
from fakes.rdma_trees import mlx5

# UCUM as far as we use it: a base unit, an annotation, or a ratio of the two.
_UNIT = re.compile(r"(By|s|ms|us|ns|%|1|MHz|J|W|Cel|\{[a-z_]+\})(/(s|min))?|[MG]?bit/s|")
_BIG_HOST_HAS = {
    "cpu",
    "activity",
    "memory",
    "vmstat",
    "load",
    "uptime",
    "pressure",
    "interrupts",
    "cpu_frequency",
    "thermal_throttle",
    "numa",
    "edac",
    "pcie_aer",
    "sensors",
    "rapl",
    "rdma",
}


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return Catalogue(metric for spec in COLLECTORS for metric in spec.metrics)


@pytest.fixture(scope="module")
def big_host(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Values]:
    """Values of each collector that finds its source on the big host, with all detail on."""
    tree = HostTree(tmp_path_factory.mktemp("big"))
    context = tree.context(per_cpu=True)
    collectors = {spec.name: spec.factory(context) for spec in COLLECTORS}
    build(tree.root, 0)
    put_files(tree, mlx5("mlx5_0"))
    first: dict[str, Any] = {}
    for name, collector in collectors.items():
        try:
            first[name] = collector.read()
        except SourceUnavailable:
            continue
    build(tree.root, 1)
    put_files(tree, mlx5("mlx5_0", step=1))
    return {name: collectors[name].compute(before, collectors[name].read(), 1.0) for name, before in first.items()}


def test_names_of_collectors_are_unique() -> None:
    names = [spec.name for spec in COLLECTORS]
    assert len(set(names)) == len(names)


def test_no_metric_is_declared_twice_and_each_is_described(catalogue: Catalogue) -> None:
    """Building the catalogue refuses duplicates."""
    assert len(catalogue) == sum(len(spec.metrics) for spec in COLLECTORS)
    for metric in catalogue:
        assert re.fullmatch(r"[a-z][a-z0-9_]*[a-z0-9]", metric.name), metric.name
        assert not metric.name.endswith("_total") or metric.kind is Kind.GAUGE, metric.name
        assert _UNIT.fullmatch(metric.unit), (metric.name, metric.unit)
        assert (metric.unit == "") == (metric.kind is Kind.LABEL), metric.name
        assert metric.description, metric.name
        assert not metric.description.endswith("."), metric.name
        assert "\n" not in metric.description, metric.name


def test_the_big_host_has_what_is_needed(big_host: dict[str, Values]) -> None:
    assert set(big_host) >= _BIG_HOST_HAS


# These are of the machine under the test, whatever the tree says.
_NOT_OF_THE_TREE = ("perf", "ethtool", "gpu", "tpu")


@pytest.mark.parametrize(
    "spec", [one for one in COLLECTORS if one.name not in _NOT_OF_THE_TREE], ids=lambda spec: spec.name
)
def test_the_big_host_gives_only_what_is_declared(
    spec: CollectorSpec, catalogue: Catalogue, big_host: dict[str, Values]
) -> None:
    if spec.name not in big_host:
        pytest.skip("the big host does not have its source")
    assert big_host[spec.name], "no value at all"
    check_declared(spec, catalogue, big_host[spec.name])


@pytest.mark.parametrize("spec", COLLECTORS, ids=lambda spec: spec.name)
def test_this_machine_gives_only_what_is_declared(
    spec: CollectorSpec, catalogue: Catalogue, host_tree: HostTree
) -> None:
    context = host_tree.context(per_cpu=True)
    collector = spec.factory(type(context)(host=HostFiles("/"), settings=context.settings, notices=FakeNotices()))
    try:
        before, after = collector.read(), collector.read()
    except SourceUnavailable as error:
        # Hardware that this machine lacks: then that is what must be said.
        assert error.source
        assert error.reason
        return
    check_declared(spec, catalogue, collector.compute(before, after, 1.0))


@pytest.mark.parametrize("spec", COLLECTORS, ids=lambda spec: spec.name)
def test_an_empty_root_is_said_to_be_unavailable_and_nothing_else(spec: CollectorSpec, host_tree: HostTree) -> None:
    """A root without /proc and /sys: each source says that it cannot be had, or has nothing to say."""
    host_tree.root.mkdir(parents=True)
    collector = spec.factory(host_tree.context())
    for _ in range(2):
        try:
            snapshot = collector.read()
        except SourceUnavailable as error:
            assert error.source
            assert error.reason
            continue
        check_finite(collector.compute(snapshot, snapshot, 1.0))


def check_declared(spec: CollectorSpec, catalogue: Catalogue, values: Values) -> None:
    """Every key is that of a metric of this collector, and its value is of the metric's kind."""
    check_finite(values)
    declared = set(map(id, spec.metrics))
    for key, value in values.items():
        series = catalogue.resolve(key)
        assert series is not None, f"{spec.name} gives {key}, which nothing declares"
        assert id(series.metric) in declared, f"{spec.name} gives {key}, which another collector declares"
        assert series.metric.key(series.instance) == key
        assert isinstance(value, str) == (series.metric.kind is Kind.LABEL), key
        if isinstance(value, str):
            continue
        if series.metric.kind in (Kind.DELTA, Kind.RATE, Kind.RATIO):
            assert value >= 0, key
        if series.metric.kind is Kind.RATIO and series.metric.unit == "%":
            assert value <= 100.000001, key


def check_finite(values: Values) -> None:
    for key, value in values.items():
        assert isinstance(value, str) or math.isfinite(value), key
