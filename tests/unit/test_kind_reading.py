"""Kinds that a space does not show: yet, now, or in this version; and where there are none."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from controllers.core.workloads.space import Workloads
from controllers.workloads import unread_kinds
from controllers.workloads.unread_kinds import KindReading
from relay.adapters.clock import SystemClock
from relay.adapters.kubernetes.stored_versions import stored_versions
from relay.space_errors import NOT_FOUND, SpaceError
from relay.space_port import Interest, Kind, Listing, Unserved
from schemas.objects.objects import ObjectKey
from tests.awaiting import eventually
from tests.unit.centre_world import config, config_key, placement, placement_key

CONVS = ("conv.example.com", "convs")
CONV = Kind("conv.example.com", "v1", "convs", "Conv", namespaced=True)
FAILED = Unserved(Interest(*CONVS), "InternalError", "conversion webhook failed")


class Space:
    """Shows in one Namespace that there is nothing of a kind, and fails in all others."""

    def __init__(self):
        self.asked = []

    async def list(self, group, resource, *, namespace=""):
        self.asked.append(namespace)
        if namespace != "other":
            raise SpaceError("InternalError", "conversion webhook failed")
        return Listing((), "1")


class World:
    def __init__(self):
        self.workloads, self.space, self.told = Workloads(), Space(), 0
        for name in ("shop", "other", "third"):
            key = ObjectKey("", "namespaces", "", name)
            self.workloads.put(key, {"metadata": {"name": name}})
            self.workloads.put(config_key("a", name), config("a", name))
        self.workloads.put(placement_key("shop"), placement())
        self.workloads.put(placement_key("other"), placement("other", {"namespaces": ["other"]}))
        self.reading = KindReading(self.space, SystemClock(), lambda: self.workloads, self._tell)

    def _tell(self):
        self.told += 1

    @asynccontextmanager
    async def running(self):
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self.reading.run())
            yield
            task.cancel()

    def lacks(self, name):
        lack = self.workloads.lack(name)
        return lack is not None and lack.reason


@pytest.fixture
def world(monkeypatch):
    monkeypatch.setattr(unread_kinds, "NOT_LISTED_SECONDS", 0.01)
    return World()


async def test_only_the_namespaces_that_clauses_name_are_looked_into(world):
    world.reading.followed([CONV])
    world.reading.not_served(FAILED)
    async with world.running():
        assert world.lacks("other") == "KindUnreadable"
        await eventually(lambda: world.told)
        assert not world.lacks("other")
        assert world.lacks("shop") == "KindUnreadable"
        assert sorted(world.space.asked) == ["other", "shop"]


async def test_a_kind_that_is_not_listed_in_time_is_said_until_it_is(world):
    async with world.running():
        world.reading.followed([CONV])
        assert not world.lacks("shop")
        await eventually(lambda: world.lacks("shop") == "KindNotListed")
        world.reading.listed([CONVS])
        assert not world.lacks("shop")
        # It was listed once: whoever follows it again does not wait.
        world.reading.followed([CONV])
        await asyncio.sleep(0.05)
        assert not world.lacks("shop")


def test_a_kind_that_is_gone_is_not_unreadable(world):
    world.reading.followed([CONV])
    world.reading.not_served(FAILED)
    assert world.lacks("shop") == "KindUnreadable"
    world.reading.not_served(Unserved(Interest(*CONVS), NOT_FOUND, "no such type"))
    assert not world.lacks("shop")


def test_what_was_listed_and_is_served_no_more_because_its_server_is_away_concerns_nobody(world):
    world.reading.followed([CONV])
    world.reading.listed([CONVS])
    world.reading.not_served(Unserved(Interest(*CONVS), "ServiceUnavailable", "away"))
    assert not world.lacks("shop")
    world.reading.listed([CONVS])
    assert CONVS not in world.workloads.unread


@pytest.mark.parametrize(
    ("strategy", "storage", "served", "former", "expected"),
    [
        ("Webhook", "v1", ("v1", "v2"), [], ("v1",)),
        ("Webhook", "v2", ("v1", "v2"), ["v1", "v2"], ("v2", "v1")),
        ("Webhook", "v1", ("v2",), ["v1"], ()),
        ("None", "v1", ("v1", "v2"), ["v1"], ()),
    ],
)
def test_what_a_webhook_converts_is_stored_in_these_versions(
    strategy, storage, served, former, expected
):
    versions = [
        {"name": name, "served": name in served, "storage": name == storage}
        for name in ("v1", "v2")
    ]
    spec = {"conversion": {"strategy": strategy}, "versions": versions}
    assert stored_versions({"spec": spec, "status": {"storedVersions": former}}) == expected


@pytest.mark.parametrize("form", [{}, {"spec": 3}, {"spec": {"conversion": []}, "status": "x"}])
def test_a_definition_that_is_none_tells_no_version(form):
    assert stored_versions(form) == ()


async def test_a_space_that_is_listed_late_is_waited_for_once(world):
    async with world.running():
        world.reading.followed([CONV])
        await eventually(lambda: world.lacks("shop") == "KindNotListed")
        world.reading.listed([CONVS, ("", "configmaps")])
        assert not world.lacks("shop")
        # As when some other kind comes or goes.
        world.reading.followed([CONV])
        await asyncio.sleep(0.05)
        assert not world.lacks("shop")
