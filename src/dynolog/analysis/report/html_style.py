"""The look of the HTML report, in both themes; the classes of charts are named after what they show."""

_LIGHT = {
    "ink": "#1c2024",
    "quiet": "#60646c",
    "page": "#ffffff",
    "card": "#f6f7f9",
    "line": "#d9dce1",
    "compute": "#2a7de1",
    "communication": "#e5793b",
    "memory": "#8e5bd0",
    "launch": "#d6a61e",
    "cpu": "#c8442f",
    "loader": "#2f9e6e",
    "ranks": "#b04a8a",
    "other": "#9aa1ab",
}
_DARK = {
    "ink": "#e8eaed",
    "quiet": "#a3a9b3",
    "page": "#16181c",
    "card": "#1f2329",
    "line": "#3a3f47",
    "compute": "#5b9ff0",
    "communication": "#f0935c",
    "memory": "#ab80e6",
    "launch": "#e6c04a",
    "cpu": "#e66a55",
    "loader": "#4fc08f",
    "ranks": "#d070ad",
    "other": "#7d848f",
}
_CHART = ("compute", "communication", "memory", "launch", "cpu", "loader", "ranks", "other")


def _variables(theme: dict[str, str]) -> str:
    return "".join(f"--{name}:{colour};" for name, colour in theme.items())


def _colours() -> str:
    named = "".join(f".{name}{{fill:var(--{name});background:var(--{name})}}" for name in _CHART)
    series = "".join(f".series{i}{{fill:var(--{name});background:var(--{name})}}" for i, name in enumerate(_CHART))
    return named + series


STYLE = (
    f":root{{color-scheme:light dark;{_variables(_LIGHT)}}}"
    f"@media(prefers-color-scheme:dark){{:root{{{_variables(_DARK)}}}}}"
    "body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,'DejaVu Sans',sans-serif}"
    "main{max-width:960px;margin:0 auto;padding:24px 20px 60px}"
    "h1{margin:0;font-size:24px}h2{font-size:17px;margin:0 0 8px}"
    "section{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:14px 18px;margin-top:16px}"
    ".quiet,.win{color:var(--quiet);margin:2px 0}ol{padding-left:22px;margin:0}ol>li{margin-bottom:12px}"
    ".advice{list-style:'→ '}.legend{margin:0 0 4px;display:flex;flex-wrap:wrap;gap:4px 16px;color:var(--quiet);font-size:13px}"
    ".legend i{display:inline-block;width:11px;height:11px;border-radius:2px;margin-right:6px}"
    "svg{width:100%;height:auto;display:block}svg text{fill:var(--ink);font-size:12px}.grid{stroke:var(--line)}"
    ".scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:13px}"
    "th,td{text-align:right;padding:3px 8px;border-bottom:1px solid var(--line);white-space:nowrap}"
    "th:first-child,td:first-child{text-align:left;white-space:normal;word-break:break-word;min-width:240px}"
    f"th{{color:var(--quiet);font-weight:500}}{_colours()}"
)
