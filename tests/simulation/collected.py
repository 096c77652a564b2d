"""What collectors must say once all is settled: computed flat, over all destinations at once."""

from __future__ import annotations

from relay.core.collectors.ports import CopyView, RowOwner
from relay.core.collectors.tables import CollectedTable, TableAlgebra
from schemas.objects.objects import ObjectKey
from schemas.reports.collectors import SCOPE_PLACEMENT, WHOLE, Program
from schemas.values.ordered_values import pack_values
from tests.simulation.centre import Centre
from tests.simulation.collectors import EVALUATOR, PROGRAMS, status_of
from tests.simulation.model import placement_key
from tests.simulation.prescribed import arm_for, is_meant, winners


def collected_faults(centre: Centre) -> list[str]:
    """Where the centre says another thing than all destinations together."""
    root, faults = centre.world.root, []
    assert root.node is not None
    for name, placed in centre.model.placements.items():
        if not centre.is_collected(placed):
            continue
        found = {(r.key, r.program.name): r.rows for r in root.node.collected(placement_key(name))}
        for (key, program), table in _flat(centre, name).items():
            algebra = TableAlgebra(program)
            said = found.pop((key, program.name), None)
            if said is None or algebra.write(said) != algebra.write(table):
                faults.append(f"{name}: {program.name} of {key} is {said}, truly {table}")
        faults += [f"{name}: {key} is collected of nothing" for key in found]
    return faults


def _flat(centre: Centre, name: str) -> dict[tuple[ObjectKey, Program], CollectedTable]:
    placed, model = centre.model.placements[name], centre.model
    leaves: dict[tuple[ObjectKey, Program], list[CollectedTable]] = {}
    for key, content in placed.arm.contents:
        plain = centre.plain(content)
        for program in PROGRAMS:
            whole = program.scope == SCOPE_PLACEMENT
            listed = leaves.setdefault((WHOLE if whole else key, program), [])
            place = pack_values([key.group, key.resource, key.namespace, key.name])
            bound, algebra = EVALUATOR.bind(program, plain), TableAlgebra(program)
            for target in model.targets.values():
                if not is_meant(model, placed, target):
                    continue
                chosen = winners(model, target).get(key)
                own = dict(arm_for(placed, target).contents).get(key)
                status = None
                host = centre.world.hosts.get(target.path)
                won = chosen is not None and own is not None and chosen.space == own.space
                if host is not None and won:
                    held = host.space.objects.get(key)
                    status = None if held is None else status_of(held[0])
                outcome = bound.outcome(CopyView(target.name, status))
                member = RowOwner(target.name, target.destination)
                listed.append(algebra.leaf(outcome, member.who, place if whole else b""))
    return {
        (key, program): TableAlgebra(program).merge(tables) if tables else CollectedTable()
        for (key, program), tables in leaves.items()
    }
