"""Tests marked `leaps` wait for no second: see `tests/leaping_time.py`."""

import asyncio
from collections.abc import Callable, Mapping

import pytest

from tests.leaping_time import LeapingLoop


def pytest_asyncio_loop_factories(
    item: pytest.Item,
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    if item.get_closest_marker("leaps"):
        return {"leaping": LeapingLoop}
    return {"real": asyncio.new_event_loop}
