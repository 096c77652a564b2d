"""Pictures of the documents, made of the page as it is at that place of a document.

With LEAFCAST_PICTURES=1 (`make pictures`) they are written into docs/pictures.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urljoin

import pytest

from tests.awaiting import until

CHROMIUM = shutil.which("chromium")
TAKEN = os.environ.get("LEAFCAST_PICTURES", "") not in ("", "0")
SIZE = {"width": 1280, "height": 860}
WAIT_MS, END_SECONDS = 60_000, 20


def picture_of_page(view: str, file: Path, environment: Mapping[str, str]) -> None:
    """Take a picture of a view of `leafcast ui`, and hold it to the size of the one in `file`.

    `environment` leads to a tree that runs. Only where pictures are taken `file` is written.
    """
    playwright = pytest.importorskip("playwright.sync_api")
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "address"
        words = (sys.executable, "-m", "leafcast", "ui", "--port", "0", "--address-file", str(said))
        served = subprocess.Popen(words, env={**environment}, stdout=subprocess.DEVNULL)
        try:
            until(lambda: said.exists() and said.read_text().endswith("\n"), lambda: "no page")
            with playwright.sync_playwright() as driver:
                browser = driver.chromium.launch(
                    executable_path=CHROMIUM,
                    args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
                )
                page = browser.new_page(viewport=SIZE)
                page.set_default_timeout(WAIT_MS)
                address = said.read_text().strip()
                page.goto(address)
                page.goto(urljoin(address, view))
                page.wait_for_selector("main[aria-busy='false'] h1")
                # As high as what it shows: a picture ends where the view does.
                height = int(page.evaluate("document.documentElement.scrollHeight"))
                page.set_viewport_size({"width": SIZE["width"], "height": height})
                taken = page.screenshot()
                browser.close()
        finally:
            served.terminate()
            served.wait(END_SECONDS)
    if TAKEN:
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(taken)
    assert width_of(taken) == width_of(file.read_bytes()), f"{file}: run `make pictures`"


def width_of(png: bytes) -> int:
    """The width of a PNG in pixels."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n", "no PNG"
    return int.from_bytes(png[16:20], "big")
