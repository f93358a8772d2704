"""The HTML report of dyno analyze in a real browser: its charts are drawn, nothing is fetched, nothing complains, both themes work."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from dynolog.cli.main import main
from fakes.training_job import TrainingJob

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: apt-get install chromium")
CHARTS = ("split", "overlap", "steps", "waits")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a job of four ranks of which one is slow, with names that would break a careless page."""
    directory = tmp_path_factory.mktemp("job")
    job = TrainingJob(4)
    job.slow_ranks[2] = 1.4
    job.renamed[0] = {"gemm_2": "void gemm<float, 4>(\"&amp;</table><script>document.title='broken'</script>\")"}
    job.write(directory / "traces")
    path = directory / "report.html"
    assert main(["analyze", str(directory / "traces"), "--html", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # Containers have no user namespaces for the sandbox, and no GPU.
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


def opened(browser: Browser, report: Path, scheme: str) -> tuple[Page, list[str]]:
    page = browser.new_page(
        viewport={"width": 1000, "height": 900}, color_scheme="dark" if scheme == "dark" else "light"
    )
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on(
        "request", lambda request: said.append(request.url) if not request.url.startswith(("file:", "data:")) else None
    )
    page.goto(report.as_uri())
    return page, said


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_chart_is_drawn_and_the_page_needs_nothing_else(
    browser: Browser, report: Path, tmp_path: Path, scheme: str
) -> None:
    page, said = opened(browser, report, scheme)
    for chart in CHARTS:
        bars = page.locator(f"#{chart} rect")
        assert bars.count() >= 4, chart
        colours = set()
        for bar in bars.all():
            box = bar.bounding_box()
            assert box is not None
            assert box["width"] > 0, chart
            assert box["height"] > 0, chart
            assert 0 <= box["x"] < box["x"] + box["width"] <= 1000, chart
            colours.add(bar.evaluate("bar => getComputedStyle(bar).fill"))
        assert "rgb(0, 0, 0)" not in colours, f"{chart}: a bar without a colour"
    shot = tmp_path / "report.png"
    page.screenshot(path=str(shot), full_page=True)
    assert shot.stat().st_size > 20_000
    assert said == []
    page.close()


def test_bars_are_as_long_as_their_parts(browser: Browser, report: Path) -> None:
    page, _ = opened(browser, report, "light")
    steps = [bar.bounding_box() for bar in page.locator("#steps rect").all()]
    heights = [box["height"] for box in steps if box]
    # 40 bars: ten steps of four ranks; the first step of the fast ranks is shorter than all others of the slow one.
    assert len(heights) == 40
    assert heights[0] < heights[2]
    page.close()


def test_names_from_traces_are_text_and_themes_differ(browser: Browser, report: Path) -> None:
    colours = []
    for scheme in ("light", "dark"):
        page, _ = opened(browser, report, scheme)
        assert page.title() == "Ranks 0-3 of 4: dyno analyze"
        assert page.locator("script").count() == 0
        assert "Rank 2 is slow" in page.locator("#findings").inner_text()
        assert page.evaluate("document.documentElement.scrollWidth") <= 1000
        colours.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        page.close()
    assert colours[0] != colours[1]
