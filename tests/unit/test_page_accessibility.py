"""axe finds nothing in any view, in light and in dark: contrast, names, roles, order of headings.

axe-core is fetched by npm into a folder of this test; npm compares its hash.
"""

import json
import shutil
import subprocess
import tarfile

import pytest

from tests.doubles.page_scenes import troubled_facts
from tests.unit.test_page_browser import CHROMIUM, VIEWS, opened, settled

AXE = "axe-core@4.11.0"
NPM = shutil.which("npm")
FETCH_SECONDS = 60
pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(240),
    pytest.mark.skipif(CHROMIUM is None, reason="NOT RUN: chromium is not installed"),
    pytest.mark.skipif(NPM is None, reason="NOT RUN: npm is not installed"),
]
ALL = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
CONTRAST = ["color-contrast"]
"""What a theme may change."""


@pytest.fixture(scope="module")
def axe(tmp_path_factory):
    """axe's script; skips where it cannot be had."""
    folder = tmp_path_factory.mktemp("axe")
    pack = [NPM, "pack", AXE, "--silent", "--ignore-scripts", "--pack-destination", str(folder)]
    try:
        subprocess.run(pack, cwd=folder, check=True, capture_output=True, timeout=FETCH_SECONDS)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"NOT RUN: npm does not fetch {AXE}: {error}")
    with tarfile.open(next(folder.glob("*.tgz"))) as packed:
        return packed.extractfile("package/axe.min.js").read().decode()


async def test_axe_finds_nothing_in_any_view(chromium, axe):
    # The page's own policy lets no other script run.
    async with opened(chromium, troubled_facts(), bypass_csp=True) as (page, _, base):
        found = {}
        for path in VIEWS:
            await settled(page, base + path)
            await page.evaluate(axe)
            for scheme, rules in (("light", ALL), ("dark", CONTRAST)):
                await page.emulate_media(color_scheme=scheme)
                asked = json.dumps({"runOnly": rules})
                said = await page.evaluate(f"axe.run(document, {asked})")
                assert "color-contrast" in {it["id"] for it in said["passes"]}
                for it in said["violations"]:
                    nodes = [f"{node['target']} {node['html'][:160]}" for node in it["nodes"][:3]]
                    found[f"{path} {scheme} {it['id']}: {it['help']}"] = nodes
        assert not found, json.dumps(found, indent=1)
