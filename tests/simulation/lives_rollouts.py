"""Lives of rollouts: windows, aborts, who is away in mid-wave, and what else claims an object."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from relay.core.effects import Effect, SendReport
from relay.core.events import HistoryKept
from schemas.objects.objects import ObjectKey
from schemas.objects.selectors import LabelSelector, Requirement
from schemas.records.windows import Window
from schemas.reports.reports import CELL_FORMER, Cell, Count, Report, decode_report
from schemas.values.wire import encode
from schemas.values.wire import replace as replace_fields
from tests.simulation.customizing import form_of
from tests.simulation.host import Host
from tests.simulation.laws import CONVERGENCE, EXACTLY_ONCE, GATES, NO_LOSS, NO_WAY_BACK
from tests.simulation.model import Arm, Placed, Rung, Target, placement_key
from tests.simulation.ports import Ports
from tests.simulation.run import Run
from tests.simulation.scenes import (
    EVERYWHERE,
    A,
    B,
    behaving,
    contents,
    edges_of,
    everywhere,
    put,
    region_of,
    require,
)
from tests.simulation.world import WALL_MS

MINUTE, HOUR = 60.0, 3600.0
NAME, OLD, NEW = "p1", "1.9", "2.0"


def _roll(one: Run, arm: Arm, *rungs: Rung, wave: str = OLD) -> None:
    placed = Placed(EVERYWHERE, arm, salt="salt", rungs=rungs, wave=wave)
    put(one, NAME, placed)


def _begin(one: Run) -> tuple[Arm, Arm]:
    """A placement under a rollout that is everywhere, and the content that is to come."""
    old = one.centre.model.placements[NAME].arm
    _roll(one, old)
    one.settle()
    return old, one.centre.arm(contents(one, A, B))


def _count(one: Run) -> Count:
    root = one.world.root
    assert root.node is not None
    return one.world.ports.count(root, placement_key(NAME), root.node.count(placement_key(NAME)))


def _cells(one: Run, wave: str) -> dict[str, int]:
    """The members of a wave by state."""
    found: dict[str, int] = {}
    for text, count in _count(one).summary.cells.items():
        cell = Cell.parse(text)
        if cell is not None and cell.gate == wave:
            found[cell.state] = found.get(cell.state, 0) + count
    return found


def _has(host: Host, arm: Arm) -> bool:
    held: dict[ObjectKey, tuple[str, object]] = host.space.objects
    return all(held.get(k, ("",))[0] == form_of(c.reference, None) for k, c in arm.contents)


def _targets(one: Run) -> dict[str, Target]:
    return {str(target.path): target for target in one.centre.model.targets.values()}


def _require_all(hosts: Iterable[Host], arm: Arm, law: str, what: str) -> None:
    lacking = [str(host.path) for host in hosts if not _has(host, arm)]
    require(not lacking, law, f"{what}: not at {lacking}")


def _everyone(one: Run) -> list[Host]:
    return [host for host in one.world.hosts.values() if host.attached]


def steady_step(one: Run) -> None:
    """While a step is on its way to one edge, nobody else looks pending, and no count is exact."""
    old, new = _begin(one)
    first, everyone = edges_of(one)[0], len(_everyone(one))
    _roll(one, old, Rung(new, NEW, path=first.path))
    for _ in range(200):
        one.world.run(0.02)
        count = _count(one)
        states = count.summary.states
        quiet = states.get("synced", 0) >= everyone - 1
        require(quiet, CONVERGENCE, f"a step for one of {everyone} has {dict(states)}")
        if count.exact and states.get("synced") == everyone:
            break
    require(_cells(one, NEW) == {"synced": 1}, EXACTLY_ONCE, f"{_count(one)} after the step")
    require(_has(first, new), CONVERGENCE, f"{first.path} has not taken the step")


def _window_in(one: Run, hours: int, zone: str) -> tuple[Window, float]:
    """A window of an hour that opens so many full hours from now, and how long that is."""
    wall = WALL_MS // 1000 + int(one.world.now)
    opens = wall // 3600 + hours
    return Window(f"0 {opens % 24} * * *", 3600, zone), float(opens * 3600 - wall)


def closed_window(one: Run) -> None:
    """Who waits for a window keeps what it has; who took it keeps that, closed or begun anew."""
    old, new = _begin(one)
    everyone = _everyone(one)
    window, wait = _window_in(one, 2, "UTC")
    rung = Rung(new, NEW, windows=(window,))
    _roll(one, old, rung)
    one.world.run(MINUTE)
    _require_all(everyone, old, GATES, "the window is closed")
    said = _cells(one, NEW)
    require(said == {"waiting": len(everyone)}, EXACTLY_ONCE, f"waiting for a window: {said}")
    require(_count(one).exact, EXACTLY_ONCE, "a count of who waits is exact")
    one.world.run(wait + MINUTE)
    _require_all(everyone, new, CONVERGENCE, "the window is open")
    said = _cells(one, NEW)
    require(said == {"synced": len(everyone)}, EXACTLY_ONCE, f"the window is open: {said}")
    one.world.run(HOUR)
    for host in edges_of(one):
        host.stop()
        host.start()
    one.world.run(MINUTE)
    _require_all(everyone, new, NO_WAY_BACK, "the window closed, and they began again")
    _roll(one, old, rung, Rung(new, "2.1", windows=(window,)))
    one.world.run(MINUTE)
    _require_all(everyone, new, NO_WAY_BACK, "the window is closed, and a step came")
    _roll(one, new, wave="2.9")


def clock_off(one: Run) -> None:
    """A window opens by the edge's own clock, be it an hour off; nobody's count suffers from it."""
    old, new = _begin(one)
    early, *others = edges_of(one)
    early.skew_ms = int(HOUR) * 1000
    window, wait = _window_in(one, 2, "UTC")
    _roll(one, old, Rung(new, NEW, windows=(window,)))
    one.world.run(wait - HOUR + MINUTE)
    _require_all([early], new, CONVERGENCE, "by its own clock the window is open")
    _require_all(others, old, GATES, "by its own clock the window is closed")
    _require_wave(one, {"synced": 1, "waiting": len(_everyone(one)) - 1}, "one clock is early")
    one.world.run(HOUR)
    _require_all(_everyone(one), new, CONVERGENCE, "all windows were open")
    early.skew_ms = 0
    _roll(one, new, wave="2.9")


def wiped_in_wave(one: Run) -> None:
    """A region that lost its disk in mid-wave counts as before: nobody takes more, or goes back."""
    old, new = _begin(one)
    first, region = edges_of(one)[0], region_of(one)
    _roll(one, old, Rung(new, NEW, path=first.path))
    one.settle()
    region.stop(keep_disk=False, server_too=True)
    region.start()
    one.world.run(2 * MINUTE)
    _require_wave(one, {"synced": 1}, "its region lost its disk")
    _require_all([first], new, NO_WAY_BACK, "its region lost its disk")
    _require_all(edges_of(one)[1:], old, GATES, "their region lost its disk")
    _roll(one, new, wave="2.9")


def own_zone(one: Run) -> None:
    """A window opens by the destination's own zone; who has none waits, and says so."""
    old, new = _begin(one)
    edges = edges_of(one)
    # Two hours ahead of UTC in summer, which it is, and one.
    names = ("Europe.Berlin", "Europe.Lisbon")
    zones = dict(zip((str(edge.path) for edge in edges), names, strict=False))
    one.oracle.model_changed()
    for path, target in _targets(one).items():
        labels = [(key, value) for key, value in target.labels if key != "zone"]
        if path in zones:
            labels.append(("zone", zones[path]))
        one.centre.put_target(replace(target, labels=tuple(labels)))
    one.oracle.model_changed()
    window, wait = _window_in(one, 4, "")
    _roll(one, old, Rung(new, NEW, windows=(window,)))
    one.world.run(wait - 2 * HOUR + 5 * MINUTE)
    _require_all(edges[:1], new, CONVERGENCE, "its window is open")
    _require_all(edges[1:], old, GATES, "the window of its zone is closed")
    rest = len(_everyone(one)) - 2
    said = [sample.reason for sample in _count(one).summary.exceptions]
    told = any(reason.startswith("NoZone") for reason in said)
    require(told == (rest > 0), EXACTLY_ONCE, f"{rest} without a zone: {said}")
    one.world.run(HOUR)
    _require_all(edges[:2], new, CONVERGENCE, "both windows were open")
    _require_all(edges[2:], old, GATES, "it has no zone")
    _roll(one, new, wave="2.9")


def aborted_while_away(one: Run) -> None:
    """Who was away in the step and comes back after the abort never has the new content."""
    old, new = _begin(one)
    away, *others = edges_of(one)
    one.world.cut(away.path)
    _roll(one, old, Rung(new, NEW))
    one.world.run(MINUTE)
    _require_all(others, new, CONVERGENCE, "the step is for all")
    one.centre.relapse()
    _roll(one, old)
    one.world.heal(away.path)
    for _ in range(600):
        one.world.run(0.1)
        require(not _has(away, new), GATES, f"{away.path} begins what was aborted")
    _require_all([away, *others], old, CONVERGENCE, "all is aborted")


def undone_after_sweeps(one: Run) -> None:
    """A former content that the history names is there to go back to, though nobody has it."""
    old, new = _begin(one)
    one.world.root.tell(HistoryKept(placement_key(NAME), (old.root,)))
    _roll(one, new, wave="2.9")
    one.settle()
    one.world.run(3 * HOUR)
    held = one.world.root.streams.blobs
    lost = [key for key, content in old.contents if content.sealed.address not in held]
    require(not lost and old.root.address in held, NO_LOSS, f"swept of the former content: {lost}")
    one.centre.relapse()
    _roll(one, old, wave="3.9")


def shared_object(one: Run) -> None:
    """What another placement has newer goes no further than the gates, and undo takes effect."""
    old, new = _begin(one)
    everywhere(one, "p3", A)
    one.settle()
    _require_all(_everyone(one), old, GATES, "another placement has it newer")
    first = edges_of(one)[0]
    _roll(one, old, Rung(new, NEW, path=first.path))
    everywhere(one, "p3", A)
    one.settle()
    _roll(one, new, wave="2.9")
    one.settle()
    one.centre.relapse()
    _roll(one, old, wave="3.9")
    one.settle()
    _require_all(_everyone(one), old, CONVERGENCE, "undone, and another has it newer")
    put(one, "p3", None)


def away_in_wave(one: Run) -> None:
    """Who is away, or never came, counts in the wave that its signed labels say."""
    old, new = _begin(one)
    away, region = edges_of(one)[0], region_of(one)
    canary = LabelSelector((Requirement("ring", "In", ("canary",)),))
    target = _targets(one)[str(away.path)]
    one.oracle.model_changed()
    one.centre.put_target(replace(target, labels=(*target.labels, ("ring", "canary"))))
    _roll(one, old, Rung(new, NEW, selector=canary))
    one.settle()
    one.world.cut(away.path)
    one.world.run(5 * MINUTE)
    _require_wave(one, {"unreachable": 1}, "an edge is away")
    one.world.cut(region.path)
    one.world.run(5 * MINUTE)
    _require_wave(one, {"unreachable": 1}, "its region is away, too")
    one.oracle.model_changed()
    one.centre.put_target(target)
    one.oracle.model_changed()
    one.world.run(MINUTE)
    _require_wave(one, {}, "it lost its label while both are away")
    one.world.heal(region.path)
    one.world.run(MINUTE)
    _require_wave(one, {}, "the region is back")
    one.oracle.model_changed()
    path = region.path.child("never")
    never = replace(target, name="never", path=path, labels=(("ring", "canary"),))
    one.centre.put_node(path)
    one.centre.put_target(never)
    one.oracle.model_changed()
    one.world.run(MINUTE)
    _require_wave(one, {"never joined": 1}, "one of the wave never came")
    one.oracle.model_changed()
    one.centre.put_target(never, deleted=True)
    one.centre.put_node(path, deleted=True)
    one.centre.relapse()


class TellsNoWave(Ports):
    """An edge says of each step only that it said nothing of it yet."""

    def __init__(self, liar: Host) -> None:
        self._liar = liar

    def said(self, host: Host, effect: Effect) -> list[Effect]:
        if host is self._liar and isinstance(effect, SendReport) and effect.key[0] != "_":
            report = decode_report(effect.data)
            if isinstance(report, Report):
                summary = replace_fields(report.summary, cells={CELL_FORMER: 1})
                effect = SendReport(effect.key, encode(replace_fields(report, summary=summary)))
        return [effect]


def wave_untold(one: Run) -> None:
    """One edge that never tells of its wave is pending there, and no count waits for it."""
    old, new = _begin(one)
    liar = edges_of(one)[0]
    with behaving(one, TellsNoWave(liar)):
        _roll(one, old, Rung(new, NEW, path=liar.path))
        one.world.run(MINUTE)
        _require_wave(one, {"pending": 1}, "an edge tells of no wave")
    liar.stop()
    liar.start()


def _require_wave(one: Run, cells: dict[str, int], when: str) -> None:
    count = _count(one)
    require(count.exact, EXACTLY_ONCE, f"{when}: it is not exact, {count.waiting_for}")
    said = _cells(one, NEW)
    require(said == cells, EXACTLY_ONCE, f"{when}: {said}, not {cells}")


LIVES = (
    steady_step,
    closed_window,
    clock_off,
    wiped_in_wave,
    own_zone,
    aborted_while_away,
    undone_after_sweeps,
    shared_object,
    away_in_wave,
    wave_untold,
)
