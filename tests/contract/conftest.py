"""Spaces of every kind; the real ones on servers of their own, on ports of their own choosing."""

from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from leafcast.ask.api import Api
from leafcast.ask.asked_space import AskedSpace
from leafcast.ask.session import Session
from leafcast.daemon.verbs.spaces import register_spaces
from leafcast.data_dir import DataDir
from tests.contract.spaces import (
    HandClock,
    SeededDice,
    embedded,
    namespace,
    on_api_server,
    running_server,
)
from tests.doubles.memory_space import MemorySpace
from tests.leaping_time import loop_factories

pytest_asyncio_loop_factories = loop_factories

NAMESPACES = ("shop", "other")
WHOLE = ("memory", pytest.param("embedded", marks=pytest.mark.nats))
KUBERNETES = pytest.param("kubernetes", marks=[pytest.mark.kube, pytest.mark.slow])


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


@pytest.fixture(params=WHOLE)
async def space(request, clock, dice):
    """A space that has one revision and one watch over all; it holds namespaces only."""
    async with _whole(request, clock, dice) as made:
        yield made


@pytest.fixture(params=(*WHOLE, "asked", KUBERNETES))
async def any_space(request, clock, dice):
    """A space of each implementation, with the namespaces in which tests write and little else."""
    if request.param == "kubernetes":
        kubeconfig = request.getfixturevalue("module_server").kubeconfig
        async with on_api_server(kubeconfig, clock, dice, NAMESPACES) as made:
            yield made
        return
    if request.param == "asked":
        yield await _asked(clock, dice)
        return
    async with _whole(request, clock, dice) as made:
        yield made


class CommandSpace(AskedSpace):
    """A space as commands read it; what nodes do with theirs is done without asking."""

    def __init__(self, call, clock, held):
        super().__init__(call, "workloads", None, clock)
        for name in (
            *("apply", "delete", "replace", "set_labels", "set_status", "disown"),
            *("follow", "kinds", "revision", "close"),
        ):
            setattr(self, name, getattr(held, name))


async def _asked(clock, dice):
    """A space as commands have it: their daemon reads it for them."""
    held, api = MemorySpace(clock, dice), Api()
    for name in NAMESPACES:
        await held.apply(namespace(name), "me")
    register_spaces(api, {"workloads": held})

    async def answer(subject, question, _seconds, _put):
        return await api.answer(subject, question)

    session = Session(DataDir(Path()), held, held, clock, answer)
    return CommandSpace(session.call, clock, held)


@asynccontextmanager
async def _whole(request, clock, dice):
    if request.param == "memory":
        made = MemorySpace(clock, dice)
        for name in NAMESPACES:
            await made.apply(namespace(name), "me")
        yield made
        return
    url = request.getfixturevalue("nats_url")
    async with embedded(url, clock, namespaces=NAMESPACES) as made:
        yield made
