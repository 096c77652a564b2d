"""Tests marked `leaps` wait for no second: see `tests/leaping_time.py`."""

from tests.leaping_time import loop_factories

pytest_asyncio_loop_factories = loop_factories
