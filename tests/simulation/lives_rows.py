"""Lives of rows: of those who are away, who never came, and who moved while nobody heard."""

from __future__ import annotations

from dataclasses import replace

from schemas.objects.selectors import LabelSelector, Requirement
from schemas.records.records import Alternative
from schemas.reports.collectors import WHOLE
from tests.simulation.collected import collected_faults
from tests.simulation.laws import CONVERGENCE, EXACTLY_ONCE
from tests.simulation.model import placement_key
from tests.simulation.prescribed import is_meant
from tests.simulation.run import Run
from tests.simulation.scenes import P1, edges_of, region_of, require, select

MINUTE = 60.0


def _require_rows(one: Run, when: str) -> None:
    faults = collected_faults(one.centre)
    require(not faults, CONVERGENCE, f"{when}: {faults[:1]}")


def _require_each_once(one: Run, when: str) -> None:
    """Each destination that is meant has one row for each object, whatever is in it."""
    root, model = one.world.root, one.centre.model
    assert root.node is not None
    for name, placed in model.placements.items():
        meant = sum(is_meant(model, placed, target) for target in model.targets.values())
        for result in root.node.collected(placement_key(name)):
            objects = len(placed.arm.contents) if result.key == WHOLE else 1
            counted = result.rows.counted
            what = f"{when}: {name} counts {counted} rows of {result.key}, not {meant} x {objects}"
            require(counted == meant * objects, EXACTLY_ONCE, what)


def absent_rows(one: Run) -> None:
    """Who is away keeps its last row; who never came has a blank one; who goes has none."""
    edge, region = edges_of(one)[0], region_of(one)
    target = next(t for t in one.centre.model.targets.values() if t.path == edge.path)
    one.world.cut(edge.path)
    one.world.run(5 * MINUTE)
    _require_rows(one, "an edge is away")
    one.oracle.model_changed()
    new = replace(target, name="never", path=region.path.child("never"))
    one.centre.put_node(new.path)
    one.centre.put_target(new)
    one.oracle.model_changed()
    one.world.run(MINUTE)
    _require_rows(one, "a node never came")
    one.world.cut(region.path)
    one.world.run(5 * MINUTE)
    _require_rows(one, "the region is away, too")
    region.stop()
    one.world.heal_all()
    region.start()
    one.world.cut(edge.path)
    one.world.run(MINUTE)
    _require_rows(one, "the region began again")
    one.oracle.model_changed()
    one.centre.put_target(new, deleted=True)
    one.centre.put_node(new.path, deleted=True)
    one.oracle.model_changed()
    one.world.run(MINUTE)
    _require_rows(one, "it will never come")


def moved_unheard(one: Run) -> None:
    """An edge moves away from below a region that nobody hears: no row counts twice."""
    edge, region = edges_of(one)[0], region_of(one)
    target = next(t for t in one.centre.model.targets.values() if t.path == edge.path)
    one.world.cut(region.path)
    one.world.run(5 * MINUTE)
    one.oracle.model_changed()
    elsewhere = replace(target, path=one.world.root.path.child("elsewhere"))
    one.centre.put_node(elsewhere.path)
    one.centre.put_target(elsewhere)
    one.oracle.model_changed()
    one.world.run(MINUTE)
    _require_each_once(one, "an edge moved unheard")
    one.oracle.model_changed()
    one.centre.put_target(target)
    one.centre.put_node(elsewhere.path, deleted=True)
    one.oracle.model_changed()
    one.world.run(MINUTE)
    _require_each_once(one, "it came back")
    _require_rows(one, "it came back")


def moved_and_gone(one: Run) -> None:
    """An edge moves away from below a region that hears it all; another is meant no more."""
    edge, other = edges_of(one)[:2]
    targets = one.centre.model.targets.values()
    moved, left = (next(t for t in targets if t.path == host.path) for host in (edge, other))
    elsewhere = replace(moved, path=one.world.root.path.child("elsewhere"))
    one.oracle.model_changed()
    one.centre.put_node(elsewhere.path)
    one.centre.put_target(elsewhere)
    one.centre.put_node(edge.path, deleted=True)
    one.oracle.model_changed()
    one.world.run(MINUTE)
    _require_each_once(one, "an edge moved")
    _require_rows(one, "an edge moved")
    one.oracle.model_changed()
    one.centre.put_node(edge.path)
    one.centre.put_target(moved)
    one.centre.put_node(elsewhere.path, deleted=True)
    one.oracle.model_changed()
    one.settle()
    here = Requirement("left", "DoesNotExist")
    select(one, P1, (Alternative("synctarget", LabelSelector((here,))),))
    one.settle()
    one.oracle.model_changed()
    labels = (*left.labels, ("left", "yes"))
    one.centre.put_target(replace(left, labels=labels))
    one.oracle.model_changed()
    one.world.run(MINUTE)
    _require_each_once(one, "an edge is meant no more")
    _require_rows(one, "an edge is meant no more")


LIVES = (absent_rows, moved_unheard, moved_and_gone)
