"""Lives of rollouts: windows, aborts, who is away in mid-wave, and what else claims an object."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from relay.core.effects import Effect, SendReport
from relay.space_port import Object
from schemas.objects.objects import ObjectKey
from schemas.reports.reports import CELL_FORMER, Cell, Count, Report, decode_report
from schemas.values.wire import encode
from schemas.values.wire import replace as replace_fields
from tests.simulation.customizing import form_of
from tests.simulation.host import Host
from tests.simulation.laws import CONVERGENCE, EXACTLY_ONCE, GATES, NO_LOSS, NO_WAY_BACK
from tests.simulation.model import Arm, Target, placement_key
from tests.simulation.ports import Ports
from tests.simulation.run import Run
from tests.simulation.scenes import (
    P1,
    P3,
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
from tests.simulation.steering import Steered
from tests.simulation.world import WALL_MS

MINUTE, HOUR = 60.0, 3600.0
WINDOW_EVERY_HOURS = 4
FIRST, ALL = "2.0", {"name": "all", "percent": 100}
"""What counts call the first wave of the second revision; a wave of everyone."""
CANARY = {"name": "canary", "selector": {"matchLabels": {"ring": "canary"}}}
REST = {"name": "rest", "percent": 100, "approval": "before"}


def _begin(one: Run, *waves: Object, **said: object) -> tuple[Steered, Arm, Arm]:
    """A Rollout of what is everywhere; what that is, and the content that is to come."""
    steered = Steered(one.world, one.centre, P1, {"waves": list(waves), **said})
    one.settle()
    return steered, steered.placed.arm, one.centre.arm(contents(one, A, B))


def _count(one: Run) -> Count:
    root = one.world.root
    assert root.node is not None
    return one.world.ports.count(root, placement_key(P1), root.node.count(placement_key(P1)))


def _cells(one: Run) -> dict[str, int]:
    """The members of the first wave by state."""
    found: dict[str, int] = {}
    for text, count in _count(one).summary.cells.items():
        cell = Cell.parse(text)
        if cell is not None and cell.gate == FIRST:
            found[cell.state] = found.get(cell.state, 0) + count
    return found


def _has(host: Host, arm: Arm) -> bool:
    held: dict[ObjectKey, tuple[str, object]] = host.space.objects
    return all(held.get(k, ("",))[0] == form_of(c.reference, None) for k, c in arm.contents)


def _label(one: Run, host: Host, key: str, value: str | None) -> Target:
    """Have the SyncTarget of a host say this of itself."""
    target = next(it for it in one.centre.model.targets.values() if it.path == host.path)
    labels = {**dict(target.labels), key: value}
    said = tuple((name, it) for name, it in labels.items() if it is not None)
    one.oracle.model_changed()
    one.centre.put_target(replace(target, labels=said))
    one.oracle.model_changed()
    return target


def _require_all(hosts: Iterable[Host], arm: Arm, law: str, what: str) -> None:
    lacking = [str(host.path) for host in hosts if not _has(host, arm)]
    require(not lacking, law, f"{what}: not at {lacking}")


def _require_wave(one: Run, cells: dict[str, int], when: str) -> None:
    count = _count(one)
    require(count.exact, EXACTLY_ONCE, f"{when}: it is not exact, {count.waiting_for}")
    said = _cells(one)
    require(said == cells, EXACTLY_ONCE, f"{when}: {said}, not {cells}")


def _everyone(one: Run) -> list[Host]:
    return [host for host in one.world.hosts.values() if host.attached]


def _others(one: Run, *hosts: Host) -> list[Host]:
    return [host for host in _everyone(one) if host not in hosts]


def steady_step(one: Run) -> None:
    """While a step is on its way to one edge, nobody else looks pending, and no count is exact."""
    first, everyone = edges_of(one)[0], len(_everyone(one))
    _label(one, first, "ring", "canary")
    steered, _, new = _begin(one, CANARY, REST)
    steered.want(new)
    for _ in range(200):
        one.world.run(0.02)
        count = _count(one)
        states = count.summary.states
        quiet = states.get("synced", 0) >= everyone - 1
        require(quiet, CONVERGENCE, f"a step for one of {everyone} has {dict(states)}")
        if count.exact and _cells(one) == {"synced": 1}:
            break
    _require_wave(one, {"synced": 1}, "after the step")
    require(_has(first, new), CONVERGENCE, f"{first.path} has not taken the step")


def pinned(one: Run) -> None:
    """One edge goes back to what it had, and nobody else does; it comes along when it may."""
    steered, old, new = _begin(one, ALL)
    steered.want(new)
    one.settle()
    first = edges_of(one)[0]
    steered.ask("pin", path=str(first.path), revision=1)
    one.world.run(MINUTE)
    _require_all([first], old, CONVERGENCE, "it is pinned")
    _require_all(_others(one, first), new, NO_WAY_BACK, "another is pinned")
    steered.ask("unpin", path=str(first.path))
    one.world.run(MINUTE)
    _require_all([first], new, CONVERGENCE, "it is pinned no more")


def _window_in(one: Run, hours: int, **zone: str) -> tuple[Object, float]:
    """A window of an hour, which opens again and again; when it does first, in so many hours."""
    wall = WALL_MS // 1000 + int(one.world.now)
    opens = wall // 3600 + hours
    times = range(opens % WINDOW_EVERY_HOURS, 24, WINDOW_EVERY_HOURS)
    cron = f"0 {','.join(map(str, times))} * * *"
    opens_at = float(opens * 3600 - WALL_MS // 1000)
    return {"cron": cron, "duration": "1h", **zone}, opens_at


def _run_until(one: Run, time: float) -> None:
    one.world.run(time - one.world.now)


def closed_window(one: Run) -> None:
    """Who waits for a window keeps what it has; who took it keeps that, closed or begun anew."""
    first = edges_of(one)[0]
    _label(one, first, "ring", "canary")
    window, opens_at = _window_in(one, 2, zone="UTC")
    steered, old, new = _begin(one, CANARY, REST, windows=[window])
    everyone, others = _everyone(one), _others(one, first)
    steered.want(new)
    one.world.run(MINUTE)
    _require_all(everyone, old, GATES, "the window is closed")
    _require_wave(one, {"waiting": 1}, "the window is closed")
    _run_until(one, opens_at + MINUTE)
    _require_all([first], new, CONVERGENCE, "the window is open")
    _require_wave(one, {"synced": 1}, "the window is open")
    one.world.run(HOUR)
    for host in edges_of(one):
        host.stop()
        host.start()
    one.world.run(MINUTE)
    _require_all([first], new, NO_WAY_BACK, "the window closed, and it began again")
    steered.ask("approve")
    one.world.run(MINUTE)
    _require_all([first], new, NO_WAY_BACK, "the window is closed, and a step came")
    _require_all(others, old, GATES, "the window is closed")
    _run_until(one, opens_at + WINDOW_EVERY_HOURS * HOUR + MINUTE)
    _require_all(everyone, new, CONVERGENCE, "the window is open again")


def clock_off(one: Run) -> None:
    """A window opens by the edge's own clock, be it an hour off; nobody's count suffers from it."""
    early = edges_of(one)[0]
    early.skew_ms = int(HOUR) * 1000
    window, opens_at = _window_in(one, 2, zone="UTC")
    steered, old, new = _begin(one, ALL, windows=[window])
    others = _others(one, early)
    steered.want(new)
    _run_until(one, opens_at - HOUR + MINUTE)
    _require_all([early], new, CONVERGENCE, "by its own clock the window is open")
    _require_all(others, old, GATES, "by its own clock the window is closed")
    _require_wave(one, {"synced": 1, "waiting": len(others)}, "one clock is early")
    one.world.run(HOUR)
    _require_all(_everyone(one), new, CONVERGENCE, "all windows were open")
    early.skew_ms = 0


def wiped_in_wave(one: Run) -> None:
    """A region that lost its disk in mid-wave counts as before: nobody takes more, or goes back."""
    first, region = edges_of(one)[0], region_of(one)
    _label(one, first, "ring", "canary")
    steered, old, new = _begin(one, CANARY, REST)
    steered.want(new)
    one.settle()
    region.stop(keep_disk=False, server_too=True)
    region.start()
    one.world.run(2 * MINUTE)
    _require_wave(one, {"synced": 1}, "its region lost its disk")
    _require_all([first], new, NO_WAY_BACK, "its region lost its disk")
    _require_all(_others(one, first), old, GATES, "their region lost its disk")


def own_zone(one: Run) -> None:
    """A window opens by the destination's own zone; who has none waits, and says so."""
    edges = edges_of(one)
    # Two hours ahead of UTC in summer, which it is, and one.
    for edge, zone in zip(edges, ("Europe.Berlin", "Europe.Lisbon"), strict=False):
        _label(one, edge, "zone", zone)
    window, opens_at = _window_in(one, 4)
    steered, old, new = _begin(one, ALL, windows=[window])
    rest = _others(one, *edges[:2])
    steered.want(new)
    _run_until(one, opens_at - 2 * HOUR + 5 * MINUTE)
    _require_all(edges[:1], new, CONVERGENCE, "its window is open")
    _require_all([*edges[1:2], *rest], old, GATES, "the window of its zone is closed")
    said = [sample.reason for sample in _count(one).summary.exceptions]
    told = any(reason.startswith("NoZone") for reason in said)
    require(told == bool(rest), EXACTLY_ONCE, f"{len(rest)} without a zone: {said}")
    one.world.run(HOUR)
    _require_all(edges[:2], new, CONVERGENCE, "both windows were open")
    _require_all(rest, old, GATES, "it has no zone")
    for host in rest:
        _label(one, host, "zone", "Etc.UTC")
    _run_until(one, opens_at + MINUTE)
    _require_all(rest, new, CONVERGENCE, "the window of its new zone is open")


def aborted_while_away(one: Run) -> None:
    """Who was away in the step and comes back after the abort never has the new content."""
    steered, old, new = _begin(one, ALL)
    away = edges_of(one)[0]
    one.world.cut(away.path)
    steered.want(new)
    one.world.run(MINUTE)
    _require_all(_others(one, away), new, CONVERGENCE, "the step is for all")
    steered.ask("abort")
    one.world.run(1.0)
    one.world.heal(away.path)
    for _ in range(600):
        one.world.run(0.1)
        require(not _has(away, new), GATES, f"{away.path} begins what was aborted")
    _require_all(_everyone(one), old, CONVERGENCE, "all is aborted")


def undone_after_sweeps(one: Run) -> None:
    """A former content that the history names is there to go back to, though nobody has it."""
    steered, old, new = _begin(one, ALL)
    needed = one.centre.leads_to(P1, old)
    steered.want(new)
    one.settle()
    one.world.run(3 * HOUR)
    lost = needed - one.world.root.streams.blobs.keys()
    require(not lost, NO_LOSS, f"swept of the former content: {lost}")
    steered.ask("undo", now=True)
    one.world.run(MINUTE)
    _require_all(_everyone(one), old, CONVERGENCE, "it is undone")


def shared_object(one: Run) -> None:
    """What another placement has newer goes no further than the gates, and undo takes effect."""
    first = edges_of(one)[0]
    _label(one, first, "ring", "canary")
    steered, old, _ = _begin(one, {**CANARY, "approval": "before"}, REST)
    everywhere(one, P3, A)
    one.settle()
    _require_all(_everyone(one), old, GATES, "another placement has it newer")
    steered.ask("approve")
    one.settle()
    _require_all(_others(one, first), old, GATES, "another placement has it newer")
    require(not _has(first, old), CONVERGENCE, f"{first.path} has not taken the step")
    everywhere(one, P3, A)
    one.settle()
    for _ in range(2):
        steered.ask("approve")
        one.settle()
    for host in _everyone(one):
        require(not _has(host, old), CONVERGENCE, f"{host.path} has not taken the step")
    steered.ask("undo", revision=1, now=True)
    one.settle()
    _require_all(_everyone(one), old, CONVERGENCE, "undone, and another has it newer")
    put(one, P3, None)


def away_in_wave(one: Run) -> None:
    """Who is away, or never came, counts in the wave that its signed labels say."""
    away, region = edges_of(one)[0], region_of(one)
    target = _label(one, away, "ring", "canary")
    steered, _, new = _begin(one, CANARY, REST)
    steered.want(new)
    one.settle()
    one.world.cut(away.path)
    one.world.run(5 * MINUTE)
    _require_wave(one, {"unreachable": 1}, "an edge is away")
    one.world.cut(region.path)
    one.world.run(5 * MINUTE)
    _require_wave(one, {"unreachable": 1}, "its region is away, too")
    one.centre.relapse()
    _label(one, away, "ring", None)
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
    liar = edges_of(one)[0]
    _label(one, liar, "ring", "canary")
    steered, _, new = _begin(one, CANARY, REST)
    with behaving(one, TellsNoWave(liar)):
        steered.want(new)
        one.world.run(MINUTE)
        _require_wave(one, {"pending": 1}, "an edge tells of no wave")
    liar.stop()
    liar.start()


LIVES = (
    steady_step,
    pinned,
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
