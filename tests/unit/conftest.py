"""Tests marked `leaps` wait for no second: see `tests/leaping_time.py`."""

import shutil

import pytest
import pytest_asyncio

from tests.leaping_time import loop_factories

pytest_asyncio_loop_factories = loop_factories


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chromium():
    """One for all tests of a module, on the module's loop: it takes 3 s of processor to start."""
    playwright = pytest.importorskip("playwright.async_api")
    async with playwright.async_playwright() as driver:
        started = await driver.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
        )
        yield started
        await started.close()
