"""Every page is there for whoever has only the README, and no link leads nowhere."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
LINK = re.compile(r"\]\((?!https?://)([^)#]+)(?:#[^)]*)?\)")


def linked(page: Path) -> set[Path]:
    return {(page.parent / target).resolve() for target in LINK.findall(page.read_text())}


def pages() -> set[Path]:
    return {ROOT / "README.md", *(ROOT / "docs").rglob("*.md")}


def test_every_link_leads_to_a_file() -> None:
    missing = {(str(page.relative_to(ROOT)), str(to)) for page in pages() for to in linked(page) if not to.exists()}
    assert missing == set()


def test_every_page_is_two_clicks_from_the_readme() -> None:
    first = linked(ROOT / "README.md")
    second = {to for page in first if page.suffix == ".md" for to in linked(page)}
    assert pages() - first - second - {ROOT / "README.md"} == set()
