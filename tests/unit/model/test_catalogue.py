"""Metrics that are declared while the daemon runs."""

import threading

from dynolog.model.metric import Catalogue, Kind, Metric, Scope


def metric(name: str, scope: Scope = Scope.GPU) -> Metric:
    return Metric(name=name, kind=Kind.GAUGE, unit="1", description=f"about {name}", scope=scope)


def test_what_is_declared_is_found_from_then_on() -> None:
    catalogue = Catalogue([metric("a")])
    assert catalogue.resolve("b") is None
    assert catalogue.declare([metric("b"), metric("errors", Scope.XID)]) == (metric("b"), metric("errors", Scope.XID))
    series = catalogue.resolve("b")
    assert series is not None
    assert series.metric == metric("b")
    by_code = catalogue.resolve("errors.31")
    assert by_code is not None
    assert by_code.instance == "31"
    assert len(catalogue) == 3


def test_a_name_that_is_taken_is_left_out() -> None:
    catalogue = Catalogue([metric("a"), metric("errors", Scope.XID)])
    again = Metric(name="a", kind=Kind.DELTA, unit="s", description="another", scope=Scope.GPU)
    assert catalogue.declare([again, metric("errors", Scope.NIC), metric("c")]) == (metric("c"),)
    series = catalogue.resolve("a")
    assert series is not None
    assert series.metric.kind is Kind.GAUGE


def test_followers_hear_only_what_is_new() -> None:
    catalogue = Catalogue([metric("a")])
    heard: list[str] = []
    catalogue.follow(lambda metrics: heard.extend(one.name for one in metrics))
    catalogue.declare([metric("a"), metric("b")])
    catalogue.declare([metric("b")])
    assert heard == ["b"]


def test_what_a_source_declares_is_bounded() -> None:
    catalogue = Catalogue([])
    assert len(catalogue.declare(metric(f"m{number}") for number in range(5000))) == 2048
    assert catalogue.declare([metric("one_more")]) == ()


def test_declaring_while_others_look_disturbs_neither() -> None:
    catalogue = Catalogue([metric(f"m{number}") for number in range(100)])
    errors: list[Exception] = []

    def look() -> None:
        try:
            for _ in range(200):
                assert sum(1 for _ in catalogue) >= 100
                catalogue.resolve("m7")
        except Exception as error:  # the test's own boundary
            errors.append(error)

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(500):
        catalogue.declare([metric(f"n{number}")])
    for thread in threads:
        thread.join()
    assert not errors
    assert len(catalogue) == 600
