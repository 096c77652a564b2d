"""Who is kept from a placement's newest content by the gates that its ledger has.

Gates with a name count whom they admit; who is at a place that keeps a content of its own is
counted by the inventory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from controllers.core.ledger.destination_counts import SelectedDestinations
from controllers.core.rollout import layers
from controllers.core.rollout.culprits import locations_of
from controllers.core.rollout.revisions import nobody_waits
from controllers.core.rollout.state import target_of
from relay.core.gates import Candidate
from schemas.api.rollout_status import RolloutStatus
from schemas.content.blobs import Reference
from schemas.records.records import DeltaHead, Gate, Profile, Record
from schemas.reports.reports import CELL_FORMER, CELL_OTHER, Cell, Count
from schemas.reports.states import NEVER_JOINED
from schemas.values.identity import MailKey, NodePath

_NO_MEMBERS = (NEVER_JOINED, "leaving")


def is_for_all(gates: Sequence[Gate], content: Reference | None) -> bool:
    """Whether all gates give the same content, so that nobody gets another."""
    return all(gate.arm == content for gate in gates)


def gave_everything(state: RolloutStatus, target: Reference | None) -> bool:
    """Whether a Rollout ended, and nobody waits, or stays, with anything but the target.

    What was aborted is no part of the target, and stays back by itself.
    """
    if state.phase not in ("Complete", "Aborted") or target is None:
        return False
    gates = layers.gates_of(state)
    if target_of(state) == target and is_for_all(gates, target):
        return True
    if state.phase != "Complete" or target_of(state) != target:
        return False
    # A gate with windows leaves what lies below it to those who wait for them.
    plain = state.layers and state.layers[0].manifest == target.address
    waited = plain and layers.reaches_all(state.layers) and nobody_waits(state)
    return bool(waited) and not places_kept(gates, target)


def places_kept(gates: Sequence[Gate], newest: Reference | None) -> tuple[NodePath, ...]:
    """The places at which a gate gives another content than the newest."""
    placed = {gate.path for gate in gates if not gate.path.is_root and gate.arm != newest}
    return tuple(sorted(placed))


def kept_in_waves(
    gates: Sequence[Gate], newest: Reference | None, count: Count, at_places: int | None
) -> int | None:
    """How many destinations wait for a wave that gives them the newest content.

    None if nobody can tell. `at_places` are those at places of their own, None if it is not known
    how many these are.
    """
    plain = [gate for gate in gates if gate.path.is_root]
    if is_for_all(plain, newest):
        return 0
    cells = count.summary.cells
    if not count.exact or cells.get(CELL_OTHER) or cells.get(CELL_FORMER):
        return None
    arms = {gate.name: gate.arm for gate in plain if gate.name}
    members = kept = 0
    for text, number in cells.items():
        cell = Cell.parse(text)
        if cell is None or cell.gate not in arms:
            return None
        if cell.state not in _NO_MEMBERS:
            members += number
            kept += number * (arms[cell.gate] != newest)
    everyone = next((gate for gate in plain if not gate.name), None)
    if everyone is None or everyone.arm == newest:
        return kept
    leaving = count.summary.states.get("leaving", 0)
    if at_places is None:
        return None
    return max(kept + count.summary.joined - leaving - members - at_places, 0)


def destinations_at(
    records: Mapping[MailKey, Record], placement: MailKey, gates: Sequence[Gate]
) -> Mapping[NodePath, int]:
    """How many destinations of a placement each place with gates of its own has, by the ledger."""
    places = sorted({gate.path for gate in gates if not gate.path.is_root})
    head = records.get(placement)
    if not places or not isinstance(head, DeltaHead):
        return {}
    reach = SelectedDestinations(records.values())
    found = dict.fromkeys(places, 0)
    for key in reach.destinations(head.alternatives):
        profile = records[key]
        assert isinstance(profile, Profile)
        # The gates of a place admit all who are there; the first one counts.
        placed = (gate.path for gate in gates if gate.path.holds(profile.path))
        place = next((path for path in placed if not path.is_root), None)
        if place is not None:
            found[place] += 1
    return found


def count_lacking(
    records: Mapping[MailKey, Record],
    destinations: Iterable[MailKey],
    gates: Sequence[Gate],
    newest: Reference | None,
) -> int:
    """How many of these destinations the gate that is meant for them gives another content.

    A gate outside its windows counts as open: who waits for one is counted elsewhere.
    """
    located = locations_of(records.values())
    profiles = (records.get(key) for key in destinations)
    listed = (Candidate(it, located) for it in profiles if isinstance(it, Profile))
    arms = (next((gate.arm for gate in gates if who.matches(gate)), None) for who in listed)
    return sum(arm != newest for arm in arms)
