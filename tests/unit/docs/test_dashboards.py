"""The dashboard and the alerts for Prometheus: valid, current, and about metrics that exist."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from dynolog.exporters.prometheus.names import standard_family
from dynolog.exporters.prometheus.series import OWN_FAMILIES
from fakes.prometheus import catalogue

REPOSITORY = Path(__file__).resolve().parents[3]
DASHBOARDS = REPOSITORY / "dashboards"
BOARD = DASHBOARDS / "grafana.json"
ALERTS = DASHBOARDS / "alerts.yml"
# What a query means for Grafana, as a number for promtool.
GRAFANA_WORDS = {"$__rate_interval": "5m", "$instance": ".*"}


def promtool(*arguments: str) -> str:
    """What it says; it must be content."""
    path = shutil.which("promtool")
    if path is None:
        pytest.skip("needs promtool (Debian: prometheus)")
    done = subprocess.run([path, *arguments], capture_output=True, text=True, cwd=DASHBOARDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def board() -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(BOARD.read_text())
    return parsed


def expressions() -> list[str]:
    return [target["expr"] for panel in board()["panels"] for target in panel.get("targets", ())]


def known() -> dict[str, str]:
    """Names in the standard style and their types, the documented GPU and fabric metrics included."""
    families = [*map(standard_family, catalogue()), *OWN_FAMILIES]
    return {family.sample: str(family.type) for family in families}


def named(text: str) -> set[str]:
    """Metrics that a query or rule is about."""
    return set(re.findall(r"\bdynolog_\w+", text))


def test_the_dashboard_is_current() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.make_dashboard", "--check"],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def without_defaults(node: Any) -> Any:
    """What a file says, without the nothings that Grafana's types may add or leave out."""
    if isinstance(node, dict):
        return {key: slim for key, value in node.items() if (slim := without_defaults(value)) not in ({}, [], None)}
    return [without_defaults(value) for value in node] if isinstance(node, list) else node


def test_grafanas_own_types_read_every_field_of_it() -> None:
    """A field that Grafana does not know would be lost on the way through its types."""
    register_default_plugins()
    read = json.loads(json.dumps(Dashboard.from_json(board()), cls=JSONEncoder))
    assert without_defaults(read) == without_defaults(board())


def test_panels_do_not_overlap_and_have_titles_units_and_queries() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in board()["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not taken & cells, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells
        assert panel["title"]
        if panel["type"] != "row":
            assert panel["targets"]
            assert panel["fieldConfig"]["defaults"]["unit"]
            references = [target["refId"] for target in panel["targets"]]
            assert len(set(references)) == len(references)


def test_every_query_of_the_dashboard_parses(tmp_path: Path) -> None:
    """As the expression of a recording rule, because promtool reads those without a server."""
    text = json.dumps([{"record": f"panel:{number}", "expr": each} for number, each in enumerate(expressions())])
    for word, stand_in in GRAFANA_WORDS.items():
        text = text.replace(word, stand_in)
    rules = json.loads(text)
    assert len(rules) > 50
    file = tmp_path / "panels.json"  # JSON is YAML
    file.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    promtool("check", "rules", str(file))


@pytest.mark.parametrize("expression", expressions())
def test_every_panel_is_about_metrics_that_exist_and_rates_only_counters(expression: str) -> None:
    types = known()
    for name in named(expression):
        assert name in types, f"nothing gives {name}"
        in_a_rate = re.search(rf"(rate|increase)\({name}\b", expression) is not None
        assert in_a_rate == (types[name] == "counter"), f"{name} is a {types[name]}"


def test_the_alerts_are_about_metrics_that_exist() -> None:
    types = known()
    for name in named(ALERTS.read_text()):
        assert name in types, f"nothing gives {name}"


def test_every_alert_has_a_test_and_all_of_them_pass() -> None:
    alerts = re.findall(r"- alert: (\w+)", ALERTS.read_text())
    tested = re.findall(r"alertname: (\w+)", (DASHBOARDS / "alerts_test.yml").read_text())
    assert sorted(set(tested)) == sorted(alerts)
    promtool("check", "rules", "alerts.yml")
    promtool("test", "rules", "alerts_test.yml")
