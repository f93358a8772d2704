"""dyno(1): what a reader of the page sees of each subcommand."""

import runpy
from pathlib import Path

# The tools are no package of ours that could be imported.
TOOL = runpy.run_path(str(Path(__file__).resolve().parents[3] / "tools" / "man_pages.py"))


def test_each_subcommand_is_spelled_as_it_is_typed_and_its_usage_keeps_its_lines() -> None:
    page = TOOL["command_page"]("1.2.3", 0)
    assert ".SH COMMAND \\fI\\,'dyno trace slice'\\/\\fR\n.nf\nusage: dyno trace slice [\\-h] " in page
    assert "trace\\-slice" not in page
    assert page.count("\n.nf\nusage: ") == page.count("\nusage: ")
    # The options that all have are described once.
    assert page.count("\\fB\\-\\-tls\\-ca\\fR") == 1
