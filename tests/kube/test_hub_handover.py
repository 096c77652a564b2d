"""A second centre of a tree waits for its hub: it gets it when the first ends, never in between."""

import asyncio
import json
import os
import signal
import threading
import time
from contextlib import contextmanager

import pytest

from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.kubernetes.kubeconfig import Kubeconfig
from relay.adapters.kubernetes.space import KubernetesSpace
from relay.claims.centre_lease import LEASE_SECONDS, WORKLOADS_LEASE, CentreLease
from relay.claims.claim import CentreIdentity
from tests.awaiting import LOADED_SECONDS_MAX, until
from tests.e2e.program import did
from tests.e2e.trio_program import TrioProgram

pytestmark = [pytest.mark.kube, pytest.mark.nats, pytest.mark.long, pytest.mark.timeout(600)]
CENTRE = "centre"
LOOK_SECONDS = 0.1
HANDOVERS = 6
LEASE = ("-n", "leafcast-system", "get", "lease", WORKLOADS_LEASE, "-o", "json")


def lease_of(server):
    return json.loads(server.kubectl(*LEASE))


class Waiting:
    """Another centre of the tree that looks for the hub much more often than any would."""

    def __init__(self, server, tree):
        clock = SystemClock()
        me = CentreIdentity(tree, "elsewhere", "its run", "its host")
        self.lease = CentreLease(WORKLOADS_LEASE, me, "hub", clock)
        self.server, self.clock, self.over = server, clock, threading.Event()
        self.looks = 0

    async def run(self):
        space = KubernetesSpace(Kubeconfig(str(self.server.kubeconfig)), self.clock, SystemDice())
        try:
            while not self.over.is_set():
                await self.lease.take(space)
                self.looks += 1
                await self.clock.sleep(LOOK_SECONDS)
            await self.lease.give_back(space)
        finally:
            await space.close()

    @contextmanager
    def looking(self):
        thread = threading.Thread(target=lambda: asyncio.run(self.run()))
        thread.start()
        try:
            until(lambda: self.looks > 1, "it does not look")
            yield self
        finally:
            self.over.set()
            thread.join()


@pytest.fixture
def hub(clean_server, tmp_path):
    """A centre of members that works on an API server, and that server."""
    tree, file = TrioProgram(tmp_path / "tree"), str(clean_server.kubeconfig)
    made_ready = did(tree, "install", "--kubeconfig", file).stdout
    clean_server.kubectl("apply", "-f", "-", stdin=made_ready)
    clean_server.await_definitions()
    spaces = ("--workloads-kubeconfig", file, "--inventory-kubeconfig", file)
    try:
        did(tree, "up", "--members", "3", "--regions", "0", *spaces)
        yield tree, clean_server
    finally:
        tree.run("down")


def waiting_at(server):
    notes = lease_of(server)["metadata"]["annotations"]
    return Waiting(server, notes["leafcast.io/claimed-by-tree"])


def run_of(server):
    return lease_of(server)["metadata"]["annotations"]["leafcast.io/claimed-by-run"]


def end_active(tree, number):
    starts = tree.starts(CENTRE)
    os.kill(tree.pid(CENTRE, tree.until_active(CENTRE)), number)
    tree.until_active(CENTRE, after=starts)


def test_no_other_centre_gets_the_hub_between_two_members_and_one_does_when_all_end(hub):
    tree, server = hub
    with waiting_at(server).looking() as other:
        for turn in range(HANDOVERS):
            # One at a time: two that are away at once are no handover.
            until(lambda: tree.may_restart("/"), lambda: tree.run("doctor").stdout)
            before = run_of(server)
            end_active(tree, signal.SIGKILL if turn % 3 == 2 else signal.SIGTERM)
            until(lambda before=before: run_of(server) != before, "nobody takes the hub")
            assert not other.lease.is_held
            assert run_of(server) != "its run"
        did(tree, "down")
        ended = time.monotonic()
        until(lambda: other.lease.is_held, "the hub is not given back")
        assert time.monotonic() - ended < LEASE_SECONDS / 2


def test_a_centre_that_is_killed_gives_nothing_back_and_its_hub_is_waited_for(hub):
    tree, server = hub
    with waiting_at(server).looking() as other:
        renewed = lease_of(server)["metadata"]["resourceVersion"]
        until(
            lambda: lease_of(server)["metadata"]["resourceVersion"] != renewed, "it does not renew"
        )
        killed = time.monotonic()
        os.kill(tree.place.daemon()["pid"], signal.SIGKILL)
        until(lambda: other.lease.is_held, "the hub is not taken")
        waited = time.monotonic() - killed
        assert LEASE_SECONDS - 6 < waited < LEASE_SECONDS + 6 + LOADED_SECONDS_MAX
