"""The schedules that broke a draft of the link, as far as no other life is one of them.

Named by the letter that they have in the review: A1, A2 and A3 are in `lives_centre`.
"""

from __future__ import annotations

from dataclasses import replace

from relay.core import effects as fx
from relay.core.events import BlobArrived, Event
from relay.core.records.accepted import read_record
from schemas.objects.selectors import LabelSelector, Requirement
from schemas.records.placements import EDGE_PLACEMENTS
from schemas.records.records import Alternative
from tests.simulation.host import Host
from tests.simulation.laws import CONVERGENCE, EXACTLY_ONCE, LEAST_PRIVILEGE, NO_IGNORANCE, NO_LOSS
from tests.simulation.model import Located, Placed, location_key, placement_key
from tests.simulation.ports import Ports
from tests.simulation.run import Run
from tests.simulation.scenes import (
    EVERYWHERE,
    NOBODY,
    NOWHERE,
    P1,
    P2,
    P3,
    A,
    B,
    C,
    D,
    behaving,
    contents,
    edges_of,
    everywhere,
    holding,
    lose_ledger,
    put,
    put_together,
    region_of,
    require,
    select,
    until,
)

STEADY_SECONDS, STEADY_EVERY = 22.0, 0.01
MINUTE, DAY = 60.0, 86400.0


def steady_change(one: Run) -> None:
    """A4: at 100 changes a second what is deleted goes within 10 s, each time."""
    one.world.steps_max = 30_000_000
    held, at = everywhere(one, P1, A, B), 0
    end, gone_at = one.world.now + STEADY_SECONDS, one.world.now + 10
    placed = one.centre.model.placements[P1]
    nobody = [Alternative("synctarget", _having(f"n{number}")) for number in range(2)]
    deleted: float | None = None
    while one.world.now < end:
        at += 1
        put(one, P1, replace(placed, alternatives=(*EVERYWHERE, nobody[at % 2])))
        one.world.run(STEADY_EVERY)
        if deleted is None and one.world.now >= gone_at:
            deleted = one.world.now
            put(one, P2, None)
        if deleted is not None and not holding(one, C):
            deleted, gone_at = None, one.world.now + 5
            everywhere(one, P2, C)
        late = deleted is not None and one.world.now > deleted + 10
        require(not late, CONVERGENCE, "what was deleted stays for more than 10 s")
    require(A in held, CONVERGENCE, "nothing changed")


def moved_between(one: Run) -> None:
    """A5: what one apply moves between placements is never gone in between, in either order."""
    for loser, gainer in ((P1, P2), (P2, P1), (P1, P2)):
        placements = one.centre.model.placements
        lost, gained = placements[loser].arm.contents, placements[gainer].arm.contents
        key, content = lost[-1]
        less = one.centre.arm(dict(lost[:-1]))
        more = one.centre.arm({**dict(gained), key: content})
        put_together(
            one,
            {
                loser: replace(placements[loser], arm=less),
                gainer: replace(placements[gainer], arm=more),
            },
        )
        one.settle()


def slow_apply(one: Run) -> None:
    """A5: an apply of 22 s, the loser first and the gainer last, with others' losses meanwhile."""
    placements = one.centre.model.placements
    lost, gained = placements[P1].arm.contents, placements[P2].arm.contents
    key, content = lost[-1]
    one.centre.hold("apply")
    one.oracle.model_changed()
    held = dict(one.oracle._held)
    one.centre.put_placement(P1, replace(placements[P1], arm=one.centre.arm(dict(lost[:-1]))))
    for _ in range(22):
        one.centre.hold("apply")
        everywhere(one, P3, D)
        put(one, P3, None)
        one.world.run(1.0)
        require(len(holding(one, key)) == len(edges_of(one)), NO_IGNORANCE, f"{key} is gone")
    more = one.centre.arm({**dict(gained), key: content})
    one.centre.put_placement(P2, replace(placements[P2], arm=more))
    one.centre.release("apply")
    one.oracle.model_changed()
    for _ in range(40):
        one.world.run(0.25)
        require(len(holding(one, key)) == len(edges_of(one)), NO_IGNORANCE, f"{key} is gone")
    require(bool(held), NO_IGNORANCE, "nothing was held")


def moved_slowly(one: Run) -> None:
    """A5: the gainer comes half a second after the loser, and a snapshot is signed in between."""
    everywhere(one, P3, D)
    one.settle()
    placements = one.centre.model.placements
    lost, gained = placements[P1].arm.contents, placements[P2].arm.contents
    key, content = lost[-1]
    less, more = one.centre.arm(dict(lost[:-1])), one.centre.arm({**dict(gained), key: content})
    put(one, P3, None)
    one.world.run(1.8)
    # It is not wanted for half a second, so the law of what is wanted all the time says nothing.
    one.centre.put_placement(P1, replace(placements[P1], arm=less))
    one.world.run(0.8)
    one.centre.put_placement(P2, replace(placements[P2], arm=more))
    for _ in range(40):
        require(len(holding(one, key)) == len(edges_of(one)), NO_IGNORANCE, f"{key} is gone")
        one.world.run(0.25)


def back_at_once(one: Run) -> None:
    """A placement is made again while its objects are being removed: no count says they are there.

    Where links and clusters are slow, at each stage of that.
    """
    calm, placed = one.world.faults, one.centre.model.placements[P2]
    one.world.faults = replace(calm, delay_mean=0.3)
    for stage in range(40):
        put(one, P2, None)
        one.world.run(2.0 + stage / 16)
        put(one, P2, placed)
        one.world.run(30.0)
    one.world.faults = calm


def returns_with_old_reports(one: Run) -> None:
    """A7: a region that was away comes back with reports of before; no exact count is wrong."""
    region = region_of(one)
    one.world.cut(region.path)
    one.world.run(3 * MINUTE)
    for edge in edges_of(one):
        target = next(t for t in one.centre.model.targets.values() if t.path == edge.path)
        one.oracle.model_changed()
        one.centre.put_target(replace(target, labels=(("env", "prod"),)))
        one.oracle.model_changed()
    everywhere(one, P1, A, B)
    one.world.run(3 * MINUTE)
    one.world.heal(region.path)
    one.settle()


def inventory_storm(one: Run) -> None:
    """A8: a label edited each second on some destination keeps no other placement from exact."""
    root, key = one.world.root, placement_key(P2)
    first, *_ = edges_of(one)
    target = next(t for t in one.centre.model.targets.values() if t.path == first.path)
    exact = 0
    for at in range(60):
        one.oracle.model_changed()
        one.centre.put_target(replace(target, labels=(("number", str(at)),)))
        one.oracle.model_changed()
        one.world.run(1.0)
        exact += bool(root.node is not None and root.node.count(key).exact)
    require(exact > 30, EXACTLY_ONCE, f"p2 is exact only {exact} times of 60")


def target_deleted(one: Run) -> None:
    """A9: a deleted SyncTarget is counted in no exact count, and its cluster is let go of."""
    edge = edges_of(one)[0]
    target = next(t for t in one.centre.model.targets.values() if t.path == edge.path)
    one.oracle.model_changed()
    one.centre.put_target(target, deleted=True)
    one.oracle.model_changed()
    one.settle()
    require(not edge.space.objects, CONVERGENCE, f"{edge.path} holds what nobody wants there")
    one.centre.put_target(replace(target, name=f"{target.name}-again"))


def inventory_later(one: Run) -> None:
    """A10: spaces and ledger are lost, placements come back first: heads delete nothing."""
    model, root = one.centre.model, one.world.root
    targets, locations = dict(model.targets), dict(model.locations)
    placements = dict(model.placements)
    one.centre.lose_spaces()
    lose_ledger(one)
    one.world.run(MINUTE)
    for name, placed in placements.items():
        one.centre.put_placement(name, placed)
    one.world.run(5 * MINUTE)
    for edge in edges_of(one):
        require({A, B, C} <= edge.space.objects.keys(), NO_IGNORANCE, f"{edge.path} let go")
    for name, located in locations.items():
        one.centre.put_location(name, located)
    for target in targets.values():
        one.centre.put_target(target)
    require(root.node is not None, CONVERGENCE, "the centre does not run")
    for term in one.centre.terms[:-1]:
        one.centre.withdraw(term)


def _having(key: str) -> LabelSelector:
    return LabelSelector((Requirement(key, "Exists"),))


class LacksBlob(Ports):
    """Nobody gets one blob from its parent."""

    def __init__(self, address: str) -> None:
        self._address = address

    def heard(self, host: Host, event: Event) -> list[Event]:
        lacks = isinstance(event, BlobArrived) and event.reference.address == self._address
        if lacks and not event.local:  # type: ignore[union-attr]
            return [BlobArrived(event.reference, None, local=False)]  # type: ignore[union-attr]
        return [event]


def bad_blob(one: Run) -> None:
    """B3: one blob that nobody gets holds up no removal for more than some minutes."""
    bad = contents(one, D)
    with behaving(one, LacksBlob(one.centre.lies_at(bad[D]))):
        put(one, P3, Placed(EVERYWHERE, one.centre.arm(bad)))
        put(one, P2, None)
        until(one, lambda: not holding(one, C), NO_LOSS, "one bad blob stops prunes", 5 * MINUTE)
    put(one, P3, None)


def mail_without_content(one: Run) -> None:
    """A crash keeps a region's mail to an edge without what it leads to: the next run gets that."""
    region, edge = region_of(one), edges_of(one)[0]
    one.world.cut(edge.path)
    known = set(region.streams.blobs)
    everywhere(one, P3, D)
    one.world.run(30)
    region.stop(server_too=True)
    for address in set(region.streams.blobs) - known:
        del region.streams.blobs[address]
    region.start()
    one.world.heal(edge.path)
    said = "what was lost is never fetched"
    until(one, lambda: str(edge.path) in holding(one, D), NO_LOSS, said, MINUTE)


def orphan_for_long(one: Run) -> None:
    """B4: an orphan of long ago has no mailbox written again and again."""
    term = one.centre.terms[-1]
    lose_ledger(one, P2)
    one.world.run(30 * MINUTE)
    written = _Counting()
    with behaving(one, written):
        one.world.run(2 * 3600.0)
    require(written.mails <= 80, CONVERGENCE, f"{written.mails} messages for one orphan")
    one.centre.withdraw(term)
    one.oracle.model_changed()
    one.settle()


class _Counting(Ports):
    def __init__(self) -> None:
        self.mails = 0

    def said(self, host: Host, effect: fx.Effect) -> list[fx.Effect]:
        self.mails += isinstance(effect, fx.WriteMail)
        return [effect]


def location_again(one: Run) -> None:
    """A10: a Location is deleted and made anew otherwise while a region is away."""
    region = region_of(one)
    one.oracle.model_changed()
    one.centre.put_location("l1", Located((("here", "yes"),), LabelSelector()))
    one.oracle.model_changed()
    one.settle()
    one.world.cut(region.path)
    one.oracle.model_changed()
    one.centre.put_location("l1", None)
    one.world.run(30)
    one.centre.put_location("l1", Located((("here", "no"),), None))
    one.oracle.model_changed()
    one.world.run(30)
    one.world.heal(region.path)
    one.settle()


def location_narrowed(one: Run) -> None:
    """An edge is away, its region wiped, and a Location selects it no more: a head says so."""
    edge, region = edges_of(one)[0], region_of(one)
    here = LabelSelector((Requirement("here", "In", ("yes",)),))
    one.oracle.model_changed()
    one.centre.put_location("l1", Located((("here", "yes"),), LabelSelector()))
    name = EDGE_PLACEMENTS.named("p3")
    put(one, name, Placed((Alternative("location", here),), one.centre.arm(contents(one, D))))
    one.settle()
    require(D in edge.space.objects, CONVERGENCE, "p3 is not there")
    edge.stop(server_too=True)
    region.stop(keep_disk=False, server_too=True)
    one.oracle.model_changed()
    one.centre.put_location("l1", Located((("here", "yes"),), NOBODY))
    one.oracle.model_changed()
    region.start()
    one.world.run(2 * MINUTE)
    edge.start()
    one.settle()
    kept = edge.streams.own.get(location_key("l1"))
    whole = kept is not None and read_record(kept.data)[1].full
    require(not whole, LEAST_PRIVILEGE, f"{edge.path} holds what l1 says to others")


def later_version(one: Run) -> None:
    """Who was away gets a version that took nothing: what those before it took goes at once."""
    region = region_of(one)
    one.world.cut(region.path)
    everywhere(one, P1, A)
    select(one, P2, NOWHERE)
    one.world.run(1.0)
    everywhere(one, P1, A, D)
    placed = one.centre.model.placements[P2]
    put(one, P2, replace(placed, arm=one.centre.arm(contents(one, C))))
    one.world.run(MINUTE)
    one.world.heal(region.path)
    for key in (B, C):
        until(one, lambda key=key: not holding(one, key), CONVERGENCE, f"{key} stays", MINUTE)


def loss_before_a_start(one: Run) -> None:
    """The centre ends before it settled what a placement lost: its next run does."""
    root = one.world.root
    everywhere(one, P1, A)
    one.world.run(0.5)
    root.stop(keep_disk=True, server_too=True)
    root.start()
    until(one, lambda: not holding(one, B), CONVERGENCE, "what was lost is still there", MINUTE)


def new_and_met_again(one: Run) -> None:
    """A placement is new, and so are its edges' sessions: the first snapshot after it lists it."""
    everywhere(one, P3, D)
    one.world.run(10.0)
    for edge in edges_of(one):
        edge.stop()
        edge.start()
    one.world.run(MINUTE)
    require(len(holding(one, D)) == len(edges_of(one)), NO_IGNORANCE, "what is new is let go of")


LIVES = (
    new_and_met_again,
    later_version,
    loss_before_a_start,
    steady_change,
    moved_between,
    slow_apply,
    moved_slowly,
    back_at_once,
    returns_with_old_reports,
    inventory_storm,
    target_deleted,
    inventory_later,
    bad_blob,
    mail_without_content,
    orphan_for_long,
    location_again,
    location_narrowed,
)
