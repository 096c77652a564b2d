"""The documentation site: built strictly, whole, and read and searched without a network."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from schemas.crds.definitions import custom_resource_definitions
from tests.reference_pages import kinds_page, reasons_page
from tests.site_pages import SETTINGS, adapted, gather

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = shutil.which("chromium")
NAMED = re.compile(r"^ *- (?:[^:\n]+: )?([\w/.-]+\.md|[a-z-]+/)$", re.MULTILINE)
FOREIGN = re.compile(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=[\"']?https?://")
WAIT_MS = 60_000


def test_the_navigation_names_pages_that_are_there():
    named = NAMED.findall(SETTINGS.read_text())
    assert len(named) > 50
    made = {"index.md", "repository/CHANGELOG.md", "reference/kinds.md", "reference/reasons.md"}
    gone = [name for name in named if not (ROOT / "docs" / name).exists()]
    assert set(gone) <= {*made, "reference/python.md"}
    assert len(named) == len(set(named))


def test_a_link_out_of_docs_leads_to_where_the_site_has_that_file():
    text = "[a](../nats/node.conf), [b](order.md#moves), [c](https://cel.dev)\n```\n[d](../LICENSE)\n```\n"
    assert adapted(text, "docs/plan.md") == text.replace("../nats", "repository/nats")
    moved = adapted(
        "[a](../../README.md#try-it) [b](../../deploy/systemd)", "docs/operations/why.md"
    )
    assert moved == "[a](../index.md#try-it) [b](../repository/deploy/systemd/index.md)"


def test_each_kind_and_each_reason_of_a_hold_has_its_row():
    page, holds = kinds_page(), (ROOT / "docs" / "holds.md").read_text()
    for form in custom_resource_definitions():
        assert f"\n## {form['spec']['names']['kind']}\n" in page
    assert "| `spec.downsync[].labelSelectors[].matchExpressions[].key` | string" in page
    reasons = re.findall(r"^\| `(\w+)` \|", holds, re.MULTILINE)
    assert len(reasons) > 10
    assert not [word for word in reasons if f"| `{word}` |" not in reasons_page()]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, as `make site` builds it."""
    settings = gather(tmp_path_factory.mktemp("site"))
    program = Path(sys.executable).with_name("zensical")
    assert program.exists(), "there is no zensical beside this Python: run `make setup`"
    words = (program, "build", "--strict", "--clean", "--config-file", settings)
    done = subprocess.run(
        words, cwd=ROOT, env={"PYTHONPATH": "."}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return settings.parent / "html"


@pytest.mark.long
@pytest.mark.slow
def test_the_site_is_built_strictly_and_loads_nothing_from_elsewhere(site):
    pages = [*site.rglob("*.html")]
    assert len(pages) > 90
    assert not [page.name for page in pages if FOREIGN.search(page.read_text())]
    assert "connect" in (site / "reference" / "python.html").read_text()


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.skipif(
    CHROMIUM is None, reason="NOT RUN: chromium is not installed (apt-get install chromium)"
)
async def test_the_search_finds_a_word_where_the_site_is_a_folder_of_files(site):
    playwright = pytest.importorskip("playwright.async_api")
    async with playwright.async_playwright() as driver:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        browser = await driver.chromium.launch(executable_path=CHROMIUM, args=arguments)
        context = await browser.new_context(offline=True)
        page = await context.new_page()
        page.set_default_timeout(WAIT_MS)
        await page.goto((site / "operations" / "why.html").as_uri())
        await page.wait_for_function("typeof __index !== 'undefined'")
        await page.keyboard.press("/")
        await page.keyboard.type("SHA256SUMS")
        # A heading of another page.
        await page.get_by_text("Verifying it").wait_for()
        await browser.close()
