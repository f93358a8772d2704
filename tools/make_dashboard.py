"""Write dashboards/grafana.json with Grafana's own typed builders; with --check, say whether it is current."""

import json
import pathlib
import sys

from grafana_foundation_sdk.builders.common import VizLegendOptions
from grafana_foundation_sdk.builders.dashboard import Dashboard, DatasourceVariable, QueryVariable, Row
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.builders.timeseries import Panel
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import LegendDisplayMode, LegendPlacement
from grafana_foundation_sdk.models.dashboard import DashboardCursorSync, DataSourceRef, VariableRefresh

from tools.dashboard_panels import ROWS, Graph

PATH = pathlib.Path(__file__).resolve().parent.parent / "dashboards" / "grafana.json"
SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")


def panel(graph: Graph) -> Panel:
    legend = VizLegendOptions().display_mode(LegendDisplayMode.LIST).placement(LegendPlacement.BOTTOM).show_legend(True)
    built = Panel().title(graph.title).unit(graph.unit).min(0).datasource(SOURCE).legend(legend).span(6).height(7)
    if graph.help:
        built = built.description(graph.help)
    for number, query in enumerate(graph.queries):
        target = Dataquery().expr(query.expression).legend_format(query.legend).ref_id(chr(ord("A") + number))
        built = built.with_target(target)
    return built


def render() -> str:
    """The file's text."""
    board = (
        Dashboard("dynolog")
        .uid("dynolog-standard")
        .description("Hosts measured by dynolog (--use_prometheus --prometheus_names=standard)")
        .tags(["dynolog"])
        .refresh("30s")
        .time("now-1h", "now")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .with_variable(DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
        .with_variable(
            QueryVariable("instance")
            .label("Host")
            .datasource(SOURCE)
            .query("label_values(dynolog_build_info, instance)")
            .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
            .multi(True)
            .include_all(True)
        )
    )
    for title, graphs in ROWS.items():
        board = board.with_row(Row(title))
        for graph in graphs:
            board = board.with_panel(panel(graph))
    return json.dumps(board.build(), cls=JSONEncoder, indent=1, sort_keys=True) + "\n"


def main() -> int:
    text = render()
    if "--check" in sys.argv:
        if not PATH.exists() or PATH.read_text() != text:
            print("dashboards/grafana.json is not current: run tools/make_dashboard.py", file=sys.stderr)
            return 1
        return 0
    PATH.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
