"""Spaces of every kind; the real ones on a nats-server, on a port of its own choosing."""

import pytest

from relay.adapters.memory_space import MemorySpace
from tests.contract.spaces import HandClock, SeededDice, embedded, running_server


@pytest.fixture(scope="session")
def nats_url(tmp_path_factory):
    with running_server(tmp_path_factory.mktemp("nats")) as url:
        yield url


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def dice():
    return SeededDice()


@pytest.fixture(params=["memory", pytest.param("embedded", marks=pytest.mark.nats)])
async def space(request, clock, dice):
    if request.param == "memory":
        yield MemorySpace(clock, dice)
        return
    async with embedded(request.getfixturevalue("nats_url"), clock) as made:
        yield made
