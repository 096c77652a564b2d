"""What a syncer has to do: what is wanted, less what its record says it did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from relay.core.destination.claims import DesiredObject
from relay.syncer.lesser import is_another
from schemas.content import blobs
from schemas.content.blobs import Reference
from schemas.content.manifest import CREATE_ONLY
from schemas.objects.objects import ALWAYS_THERE, NAMESPACES, ObjectKey, apply_order
from schemas.objects.order import place_of
from schemas.reports.reports import Done
from schemas.values import codec


@dataclass(frozen=True, slots=True)
class ApplyObject:
    """Make the object as wanted."""

    wanted: DesiredObject


@dataclass(frozen=True, slots=True)
class PruneObject:
    """Take back what was applied."""

    done: Done


@dataclass(frozen=True, slots=True)
class InspectObject:
    """See whether the object is still there: it is not where it was looked for."""

    key: ObjectKey


ObjectAction = ApplyObject | PruneObject | InspectObject


def with_namespaces(wanted: Mapping[ObjectKey, DesiredObject]) -> dict[ObjectKey, DesiredObject]:
    """The wants, and with them the Namespaces that they need and do not bring."""
    needed = {key.namespace for key in wanted} - {""} - ALWAYS_THERE
    implied = (implied_namespace(name) for name in sorted(needed))
    return {**{want.key: want for want in implied}, **wanted}


def namespace_object(name: str) -> dict[str, object]:
    """A Namespace as the syncer makes it where an object needs one."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def action_for(
    want: DesiredObject | None, done: Done | None, *, may_prune: bool, drifted: bool = False
) -> ObjectAction | None:
    """What is to be done about one object; it depends on no other."""
    if want is None:
        return PruneObject(done) if done and may_prune and not done.kept else None
    if done is None or not done.uid or drifted or done.kept:
        return ApplyObject(want)
    claimed = (done.placements, done.order, done.asked)
    same_claim = claimed == (want.placements, want.order, want.on_removal)
    same = same_claim and not is_another(want, done)
    return None if is_applied(want, done) and same else ApplyObject(want)


def to_decide(
    former: Mapping[ObjectKey, DesiredObject],
    wanted: Mapping[ObjectKey, DesiredObject],
    done: Mapping[ObjectKey, Done],
    *,
    turned: bool,
) -> dict[ObjectKey, None]:
    """The objects on which something else may be to be decided; with `turned` all of them.

    What is wanted as before needs no decision, unless it waited for another.
    """
    return {
        key: None
        for key in {**former, **wanted, **done}
        if turned
        or (want := wanted.get(key)) is None
        or (want is not (before := former.get(key)) and want != before)
    }


def is_applied(want: DesiredObject | None, done: Done | None) -> bool:
    """Whether the record says that the object was made with the content that is wanted."""
    if want is None or done is None or not done.uid:
        return False
    return want.create_only or done.address == want.address


def rank(action: ObjectAction) -> tuple[int, int, ObjectKey]:
    """Sorts actions into the order in which they are carried out."""
    match action:
        case ApplyObject(wanted):
            return (0, place_of(wanted.order), wanted.key)
        case PruneObject(done):
            return (1, -place_of(done.order), done.key)
        case InspectObject(key):
            return (2, 0, key)


@lru_cache(maxsize=1024)
def implied_namespace(name: str) -> DesiredObject:
    """A Namespace that is wanted for what lies in it alone."""
    plain = codec.canonical(namespace_object(name))
    reference = Reference(blobs.OBJECT, codec.address(blobs.OBJECT, plain), len(plain))
    key = ObjectKey(*NAMESPACES, "", name)
    return DesiredObject(key, reference, apply_order(*NAMESPACES), CREATE_ONLY, ())
