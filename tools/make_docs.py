"""Write docs/flags.md and docs/metrics.md from the code; with --check, say whether they are current."""

import pathlib
import sys

from dynolog.collectors.registry import COLLECTORS
from dynolog.daemon.flags import declared_flags
from dynolog.daemon.help_text import render_markdown
from dynolog.exporters.prometheus.names import standard_family
from dynolog.model.metric import Metric, Scope

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
EXAMPLES = {
    Scope.HOST: "",
    Scope.GPU: "",
    Scope.NODE: "{N}",
    Scope.CPU: "{N}",
    Scope.RDMA: "{dev}",
    Scope.SOCKET: "{N}",
    Scope.CORE_TYPE: "{type}",
    Scope.CGROUP: "{cgroup}",
    Scope.EVENT: "{event}",
}


def render_metrics() -> str:
    """docs/metrics.md."""
    lines = [
        "# Metrics",
        "",
        "Made from the code by `make docs`; do not edit. `dyno metrics --list` prints the same of a running daemon.",
        "",
        "The key is as the log prints it. `{N}` is the number of a CPU or NUMA node, `{dev}` a device, interface, mount point or sensor.",
        "A **gauge** is a level; a **delta** what was added since the last record; a **ratio** a share and a **rate** a speed over the",
        "interval between two records. A value that cannot be known (first reading, reset, device gone) is missing, never 0.",
        "Percentages are 0-100. Units are UCUM.",
        "",
        "The last column is the name in Prometheus with `--prometheus_names=standard`, in base units, with a label for the device, CPU",
        "or node (docs/recipes/prometheus.md). With the default, `--prometheus_names=dynolog`, it is the key, with the device as a label.",
    ]
    for spec in COLLECTORS:
        flags = f"`--[no]{spec.enable_flag}`, `--{spec.interval_flag}`"
        often = f"; at most every {spec.shortest_interval_s:g} s" if spec.shortest_interval_s else ""
        off = "" if spec.on_by_default else "; off by default"
        lines += ["", f"## {spec.name}: {spec.summary}", "", f"From `{spec.needs}`. {flags}{often}{off}.", ""]
        lines += ["| key | kind | unit | meaning | Prometheus |", "|---|---|---|---|---|"]
        lines += [_row(metric) for metric in spec.metrics]
    return "\n".join(lines) + "\n"


def _row(metric: Metric) -> str:
    key = metric.key(EXAMPLES.get(metric.scope, "{dev}"))
    family = standard_family(metric)
    labels = f'{{{family.label}="..."}}' if family.label else ""
    return f"| `{key}` | {metric.kind} | `{metric.unit}` | {metric.description} | `{family.sample}{labels}` |"


def main() -> int:
    pages = {"flags.md": render_markdown(declared_flags()), "metrics.md": render_metrics()}
    stale = [name for name, text in pages.items() if not (DOCS / name).exists() or (DOCS / name).read_text() != text]
    if "--check" in sys.argv:
        if stale:
            print(f"not current: {', '.join('docs/' + name for name in stale)}; run `make docs`", file=sys.stderr)
        return 1 if stale else 0
    for name, text in pages.items():
        (DOCS / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
