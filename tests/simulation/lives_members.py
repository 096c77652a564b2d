"""Lives of a node's members, written out: what chance leads to too rarely, step by step.

In each the centre and its region have three members, and nothing goes wrong but what is said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from relay.adapters.spaces.bucket import stream_of
from relay.core.events import Event, MailArrived, Welcomed
from relay.members.lease import CLOCK_SECONDS_MAX, VALID_SECONDS
from schemas.reports.link import Repair
from schemas.values.identity import NodePath
from tests.simulation.host import Host
from tests.simulation.laws import CONVERGENCE, EXACTLY_ONCE, WELL_STAYS
from tests.simulation.member_ports import MemberPorts
from tests.simulation.members import Member
from tests.simulation.model import WORKLOADS
from tests.simulation.process import change_keys
from tests.simulation.run import Outcome, broken_by
from tests.simulation.scenes import (
    P1,
    P2,
    A,
    B,
    C,
    edges_of,
    everywhere,
    put,
    region_of,
    require,
    until,
)
from tests.simulation.signatures import cheap_signatures
from tests.simulation.sizes import number_of
from tests.simulation.space import now
from tests.simulation.trios import CALM_SECONDS, COMPARED_SECONDS, TRIO, Trio, TrioRun, run_trio
from tests.simulation.world import CENTRE

STOPPED_SECONDS = 60.0
TAKEN_SECONDS = 40.0
"""Whoever is stopped, somebody else is active after so long at most."""
STEPS_TO_ACCOUNT = (0, 1, 2, 3, 2, 2, 2, 2)
"""The account comes after the third, and who goes on there may be ended before it acts."""
KEY_STEPS = range(0, 24, 3)
"""Between which steps of a change of keys its process is stopped."""
TREE = replace(TRIO, edges=(2, 2), attached=0.0)


def centre_of(one: TrioRun) -> Trio:
    return one.world.trios[CENTRE]


def taken_over(one: TrioRun, path: NodePath, former: Member) -> Member:
    """Wait until another member runs the node."""
    trio = one.world.trios[path]

    def is_taken() -> bool:
        return trio.active not in (None, former)

    until(one, is_taken, CONVERGENCE, f"nobody takes over {path}", TAKEN_SECONDS)
    return one.active_at(path)


def hand_over(one: TrioRun, path: NodePath) -> None:
    """Whoever runs a node gives the lease back, and somebody runs it."""
    one.active_at(path).broke()
    one.world.run(1.0)
    one.world.until_active(one.world.trios[path])


def late_before_fence(one: TrioRun) -> None:
    """A batch of who is stopped arrives just before its successor's fence, and counts."""
    former, trio = one.active_at(CENTRE), centre_of(one)
    trio.late_share = 1.0
    former.late = "OWN", STOPPED_SECONDS, STOPPED_SECONDS
    everywhere(one, P1, A, B, C)
    taken_over(one, CENTRE, former)
    one.settle()
    one.world.run(STOPPED_SECONDS)


def late_after_fence(one: TrioRun) -> None:
    """It arrives after the successor's fence, at the centre and at the region: nothing lands."""
    for path in (CENTRE, region_of(one).path):
        former, trio = one.active_at(path), one.world.trios[path]
        trio.late_share = 0.0
        former.late = "OWN", TAKEN_SECONDS, STOPPED_SECONDS
        everywhere(one, P1, A, B, C)
        taken_over(one, path, former)
        one.settle()
        one.world.run(STOPPED_SECONDS)


def late_in_space(one: TrioRun) -> None:
    """The same of what the centre writes into a space, such as a status."""
    former, trio = one.active_at(CENTRE), centre_of(one)
    trio.late_share = 0.0
    former.late = stream_of(WORKLOADS), TAKEN_SECONDS, STOPPED_SECONDS
    everywhere(one, P1, A, B, C)
    until(one, lambda: former.is_stopped, CONVERGENCE, "no status is written", 60.0)
    taken_over(one, CENTRE, former)
    one.world.run(STOPPED_SECONDS)


def stopped_amid(one: TrioRun) -> None:
    """The active member is stopped between any two steps, and goes on after the takeover."""
    for step in range(4):
        for path in (CENTRE, region_of(one).path):
            former = one.active_at(path)
            former.armed = step, STOPPED_SECONDS
            everywhere(one, P1, *((A, B) if step % 2 else (B, C)))
            until(one, lambda it=former: it.armed is None, CONVERGENCE, "no such step", 60.0)
            taken_over(one, path, former)
            everywhere(one, P2, C)
            one.world.run(STOPPED_SECONDS)
            one.settle()


def stopped_taking(one: TrioRun) -> None:
    """Who takes over is stopped between two steps of that, and goes on after a third one did."""
    for path, trio in one.world.trios.items():
        for step in range(0, 12, 3):
            one.active_at(path).kill()
            for member in trio.members.values():
                member.armed = step, STOPPED_SECONDS
            stopped = next_stopped(one, trio)
            for member in trio.members.values():
                member.armed = None
            taken_over(one, path, stopped)
            everywhere(one, P1, A, B)
            one.world.run(STOPPED_SECONDS)
            one.settle()


def next_stopped(one: TrioRun, trio: Trio) -> Member:
    """Wait until a member is stopped."""

    def stopped() -> list[Member]:
        return [it for it in trio.members.values() if it.is_stopped]

    until(one, lambda: bool(stopped()), CONVERGENCE, f"{trio.path}: nobody stops", TAKEN_SECONDS)
    return stopped()[0]


def cut_off_and_back(one: TrioRun) -> None:
    """Who is cut off from the others stops in time, before somebody takes over."""
    for path in (CENTRE, region_of(one).path):
        former = one.active_at(path)
        one.world.trios[path].cut_off(former, STOPPED_SECONDS)
        taken_over(one, path, former)
        everywhere(one, P1, A)
        one.world.run(STOPPED_SECONDS)
        one.settle()


def elections(one: TrioRun) -> None:
    """While the lease's stream elects a leader nobody is deposed who is well."""
    one.world.run(CALM_SECONDS)
    active = {path: one.active_at(path) for path in one.world.trios}
    for _ in range(5):
        for trio in one.world.trios.values():
            trio.elect(one.world.random.uniform(4.0, 9.0))
        one.world.run(VALID_SECONDS)
    for path, member in active.items():
        require(one.active_at(path) is member, WELL_STAYS, f"{path} has another active member")


def lease_lost(one: TrioRun) -> None:
    """The memory in which the lease lies is lost, or put back to what it was once."""
    for path, trio in one.world.trios.items():
        copy = trio.cluster.stream("LEASE").copy()
        trio.lose_lease()
        one.world.run(TAKEN_SECONDS)
        former = one.active_at(path)
        former.stop_for(STOPPED_SECONDS)
        taken_over(one, path, former)
        trio.put_back_lease(copy)
        everywhere(one, P1, A)
        one.world.run(STOPPED_SECONDS)
        one.settle()


def clock_wrong(one: TrioRun) -> None:
    """However often it is handed over, nobody takes it whose clock is an hour off."""
    trio = centre_of(one)
    wrong = next(it for it in trio.members.values() if it is not one.active_at(CENTRE))
    trio.set_clock(wrong, 360 * CLOCK_SECONDS_MAX)
    one.world.run(COMPARED_SECONDS + 1.0)
    for _ in range(8):
        hand_over(one, CENTRE)
    everywhere(one, P1, A)


def keys_stopped(one: TrioRun) -> None:
    """A member takes over amid a rotation of each key, and amid a revocation: no key is lost."""
    for step in KEY_STEPS:
        what = ("signing", "revoke", "root")[step // 3 % 3]
        former = one.active_at(CENTRE)
        former.armed = step, STOPPED_SECONDS
        one.oracle.model_changed()
        change_keys(one.centre, what)
        former.armed = None
        if former.is_stopped:
            taken_over(one, CENTRE, former)
        else:
            hand_over(one, CENTRE)
        everywhere(one, P1, A, B)
        one.world.run(STOPPED_SECONDS)
        one.settle()


def child_gone_amid(one: TrioRun) -> None:
    """Who is stopped before a child's account is changed does not change it after a takeover."""
    region = region_of(one).path
    for number, step in enumerate(STEPS_TO_ACCOUNT):
        former, edge = one.active_at(region), NodePath((*region.names, f"n{number}"))
        former.armed = step, STOPPED_SECONDS
        one.oracle.model_changed()
        one.centre.put_node(edge)
        one.world.run(1.0)
        if former.is_stopped:
            taken_over(one, region, former)
        former.armed = None
        one.world.run(STOPPED_SECONDS)
        one.oracle.model_changed()
        one.centre.put_node(edge, deleted=True)
        one.settle()


def taken_over_calmly(one: TrioRun) -> None:
    """Where nothing changed no mail is written anew, and nothing is applied again."""
    one.world.run(CALM_SECONDS)
    heard, told = Counter[NodePath](), dict[NodePath, None]()

    def listen(host: Host, event: Event) -> None:
        if isinstance(event, Welcomed) and event.message.repair == Repair.REREAD:
            told[host.path] = None
        if isinstance(event, MailArrived) and event.key[0] != "_":
            heard[host.path] += 1

    ports = one.world.ports
    assert isinstance(ports, MemberPorts)
    for path in (CENTRE, region_of(one).path):
        revisions, former = _revisions(one), one.active_at(path)
        mail = one.world.trios[path].streams.mail.last
        ports.listener = listen
        former.kill()
        one.world.run(TAKEN_SECONDS)
        one.active_at(path)
        ports.listener = None
        require(_revisions(one) == revisions, EXACTLY_ONCE, "something is applied again")
        written = one.world.trios[path].streams.mail.after(mail)
        again = [key for (_, key), _ in written if key[0] != "_"]
        require(not again, EXACTLY_ONCE, f"{again} is written again")
        # Who is not there yet to compare digests has a child read again.
        unasked = heard.keys() - told.keys()
        require(not unasked, EXACTLY_ONCE, f"{unasked} judge mail again")


def _revisions(one: TrioRun) -> dict[str, int]:
    return {str(host.path): _revision_of(host) for host in edges_of(one)}


def _revision_of(host: Host) -> int:
    return int(now(host.space.cluster.revision()))


LIVES: dict[str, Callable[[TrioRun], None]] = {
    life.__name__: life
    for life in (
        late_before_fence,
        late_after_fence,
        late_in_space,
        stopped_amid,
        stopped_taking,
        cut_off_and_back,
        elections,
        lease_lost,
        clock_wrong,
        keys_stopped,
        child_gone_amid,
        taken_over_calmly,
    )
}


def is_of_members(name: str) -> bool:
    """Whether this names a life of members, or a seed of such a tree."""
    return name.partition(":")[0] in (*LIVES, TRIO.name)


def play_trio(name: str, *, story: bool = False, ports: MemberPorts | None = None) -> Outcome:
    """Play a life on the tree of a seed, `life:seed`, or run the seed `trio:17`."""
    life, _, seed = name.partition(":")
    if life == TRIO.name:
        return run_trio(number_of(seed), story=story, ports=ports)
    with cheap_signatures(), (ports or MemberPorts()).planted():
        one = TrioRun(f"life {seed or 0}", TREE, calm=True, story=story, ports=ports)
        law, what = broken_by(lambda: _play(one, LIVES[life]))
        one.close()
    world = one.world
    return Outcome(
        int(seed or 0), life, world.trace(), world.now, law, what, story=world.story or []
    )


def _play(one: TrioRun, life: Callable[[TrioRun], None]) -> None:
    one.build()
    for name in list(one.centre.model.placements):
        put(one, name, None)
    everywhere(one, P1, A, B)
    everywhere(one, P2, C)
    one.settle()
    life(one)
    one.world.heal_all()
    one.settle()
