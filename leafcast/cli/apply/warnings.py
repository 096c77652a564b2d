"""What `apply` warns of: placements that select nothing, what has no effect, what goes nowhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from leafcast.ask.asked_space import key_form
from leafcast.ask.session import SELECTION_OBJECTS_MAX, CallFailed, Session, is_properties
from leafcast.changes.forms import Placing
from leafcast.changes.placing import notes_on
from leafcast.changes.wishes import PlannedWrite
from leafcast.show.secrets_read import SECRETS_READ_BY
from relay.objects.customization import (
    customizer_faults,
    expression_faults,
    properties_needed,
    read_customizer,
)
from relay.objects.merge import wish_of
from schemas.objects.annotations import meant_by
from schemas.objects.objects import BUILT_IN_KINDS, DEFINITIONS, ObjectKey
from schemas.records.placements import placement_at
from schemas.values.groups import CONTROL_GROUPS, DENATURED_GROUP, GROUP, RELEASES, ROLLOUTS
from schemas.values.wording import some_of

_CUSTOMIZERS = (GROUP, "customizers")
_SYNC_TARGETS = (GROUP, "synctargets")
# It holds others, or says what becomes of them: who applies them alone has not forgotten anything.
_OF_CONTROL = frozenset({("", "namespaces"), ROLLOUTS, RELEASES, (DENATURED_GROUP, "healthrules")})
_PLACES = frozenset({(GROUP, "synctargets"), (GROUP, "locations")})
_SECRETS = ("", "secrets")
UNSELECTED = (
    "Note: no placement selects what was applied, so it stays at the centre; to send it, apply it "
    "with --place NAME, or a placement that selects it (leafcast get epl,bp lists those there are)"
)


async def warnings(
    session: Session, made: Sequence[PlannedWrite], *, dry: bool, placing: Placing | None = None
) -> list[str]:
    """Lines for standard error; of a dry run only what the objects themselves tell, and Secrets.

    What the centre cannot tell now is left out: it is in the placements' conditions later.
    """
    found = [line for change in made for line in _of_one(change)]
    found += _of_placing(placing, made)
    try:
        found += await _of_secrets(session, made)
        if dry or not made:
            return found
        found += await _of_properties(session, made)
        return found + await _of_placements(session, made) + await _of_objects(session, made)
    except CallFailed:
        return found


def _of_one(change: PlannedWrite) -> Iterator[str]:
    yield from (f"Warning: {note}" for note in change.wish.notes)
    yield from _on_its_way_out(change)
    yield from _miswritten(change)
    yield from _without_prefix(change)
    yield from _not_honoured(change)
    yield from _not_sent(change)
    yield from _pruned(change)


def _of_placing(placing: Placing | None, made: Sequence[PlannedWrite]) -> list[str]:
    """What is to be known of the placement that `--place` made or kept."""
    if placing is None or not made or placing.place != made[-1].wish.place:
        return []
    return notes_on(placing, made[-1].before, made[-1].after)


async def _of_secrets(session: Session, made: Sequence[PlannedWrite]) -> list[str]:
    """Who can read what is secret, if content is not sealed."""
    titles = [it.wish.title for it in made if it.wish.key.group_resource == _SECRETS]
    if not titles or (await session.call("keys"))["seals"]:
        return []
    return [f"Warning: {some_of(titles, 1)}: {SECRETS_READ_BY}"]


def _miswritten(change: PlannedWrite) -> Iterator[str]:
    """Expressions and replacements that no destination could follow, each by its field."""
    wish = change.wish
    if wish.key.group_resource == _CUSTOMIZERS:
        faults = customizer_faults(read_customizer(wish.object))
    else:
        faults = expression_faults(wish.object)
    for fault in faults:
        yield (
            f"Warning: {wish.title}: {fault}; "
            "until then nothing of the placements that it is part of goes out"
        )


def _without_prefix(change: PlannedWrite) -> Iterator[str]:
    """Annotations that look like ours but for the prefix; they may be somebody else's."""
    for key in change.wish.object["metadata"].get("annotations") or {}:
        if meant := meant_by(key):
            yield (
                f'Warning: {change.wish.title}: the annotation "{key}" has no effect here; '
                f"did you mean {meant}?"
            )


def _not_sent(change: PlannedWrite) -> Iterator[str]:
    """A field that a person wrote, and that does not go out."""
    if change.wish.object["metadata"].get("ownerReferences"):
        yield (
            f"Warning: {change.wish.title}: metadata.ownerReferences does not go out: it names an "
            "owner by a uid that no cluster has, and a cluster would delete the copy"
        )


def _not_honoured(change: PlannedWrite) -> Iterator[str]:
    """What others do by these fields, and we do not."""
    wish = change.wish
    if wish.key.group_resource != _SYNC_TARGETS:
        return
    spec = wish.object.get("spec") or {}
    for field in ("unschedulable", "evictAfter"):
        if spec.get(field):
            yield (
                f"Warning: {wish.title}: spec.{field} is not honoured: placements go by labels; "
                "take away those by which it is selected"
            )


def _on_its_way_out(change: PlannedWrite) -> Iterator[str]:
    """An object that is being deleted takes what is applied with it."""
    if (change.after.get("metadata") or {}).get("deletionTimestamp"):
        said = "is being deleted, and goes with what was applied; apply it again once it is gone"
        yield f"Warning: {change.wish.title} {said}"


def _pruned(change: PlannedWrite) -> Iterator[str]:
    """Fields of a custom resource that were not kept, as its definition does not know them."""
    kind = change.wish.kind
    if BUILT_IN_KINDS.lookup(kind.group, kind.kind) is None:
        for path in _lost(wish_of(change.wish.object), change.after, ""):
            yield f'Warning: {change.wish.title}: unknown field "{path}"'


def _lost(wished: Any, kept: Any, path: str) -> Iterator[str]:
    if isinstance(wished, Mapping) and isinstance(kept, Mapping):
        for name, value in wished.items():
            below = f"{path}.{name}" if path else name
            if value is None:
                continue
            if name not in kept:
                yield below
            else:
                yield from _lost(value, kept[name], below)
    elif isinstance(wished, list) and isinstance(kept, list) and len(wished) == len(kept):
        for at, (value, held) in enumerate(zip(wished, kept, strict=True)):
            yield from _lost(value, held, f"{path}[{at}]")


async def _of_properties(session: Session, made: Sequence[PlannedWrite]) -> list[str]:
    """Which templates ask for a property that no destination has."""
    needed = [(change.wish, properties_needed(change.wish.object)) for change in made]
    names = sorted({name for _, fields in needed for name in fields})
    if not names or any(_says_properties(change.wish.key) for change in made):
        return []
    answer = await session.call("selection", properties=names, written=[])
    return [
        f'Warning: {wish.title}: {field}: no destination has a property "{name}": its placements '
        "are frozen everywhere; say it as a label or an annotation of the SyncTargets"
        for wish, fields in needed
        for name, field in fields.items()
        if name in answer["unsaid"]
    ]


def _says_properties(key: ObjectKey) -> bool:
    """Whether it may say properties, which are not read yet where it came with others."""
    return key.group_resource in _PLACES or is_properties(key)


async def _of_placements(session: Session, made: Sequence[PlannedWrite]) -> list[str]:
    titles = {
        placement: change.wish.title
        for change in made
        if (placement := placement_at(change.wish.key)) is not None
    }
    rollouts = [it.wish for it in made if it.wish.key.group_resource == ROLLOUTS]
    if not titles and not rollouts:
        return []
    keys = {*(wish.key for wish in rollouts)}
    written = [
        _written(it) for it in made if it.wish.key in keys or placement_at(it.wish.key) is not None
    ]
    names = [key.name for key in keys]
    answer = await session.call(
        "selection", placements=list(titles), rollouts=names, written=written
    )
    # Whose definition comes along is served in a moment.
    kinds_come = any(change.wish.key.group_resource == DEFINITIONS for change in made)
    told = [
        (titles[form["name"]], form["lack"])
        for form in answer["placements"]
        if not (kinds_come and form["lacksKind"])
    ]
    # Who comes with it is not a destination yet.
    if not any(change.wish.key.group_resource in _PLACES for change in made):
        told += [
            (titles[form["name"]], said)
            for form in answer["placements"]
            for said in (_nowhere(form) if form.get("nowhere") else "", *form.get("empty", ()))
        ]
        told += [(f"rollout/{name}", said) for name, said in answer.get("waves", {}).items()]
    return [f"Warning: {title}: {said}" for title, said in told if said]


def _nowhere(form: Mapping[str, Any]) -> str:
    # Here, as few placements go nowhere.
    from leafcast.show.wait_states import nowhere_text  # noqa: PLC0415

    return f"{nowhere_text(form['name'])}: it goes nowhere (leafcast get loc,synctargets)"


async def _of_objects(session: Session, made: Sequence[PlannedWrite]) -> list[str]:
    """That nothing of all this goes anywhere, or what of it was aborted or undone, and stays."""
    listed = [change for change in made if _may_go_anywhere(change.wish.key)]
    told, carried = list[str](), False
    for at in range(0, len(listed), SELECTION_OBJECTS_MAX):
        part = listed[at : at + SELECTION_OBJECTS_MAX]
        written = list(map(_written, part))
        keys = [key for *key, _ in written]
        answer = await session.call("selection", objects=keys, written=written)
        carried = carried or any(answer["carried"])
        told += _rejected(part, answer["rejected"])
    return told if carried or not listed else [UNSELECTED]


def _may_go_anywhere(key: ObjectKey) -> bool:
    """Whether it is an object that placements select, and says nothing of others."""
    is_control = key.group in CONTROL_GROUPS or key.group_resource in _OF_CONTROL
    return not is_control and not is_properties(key)


def _written(change: PlannedWrite) -> list[str]:
    """What was written, and the version that it has now."""
    key, version = change.wish.key, _version(change.after)
    return [*key_form(key), str(version or "")]


def _rejected(made: Sequence[PlannedWrite], rollouts: Sequence[str]) -> Iterator[str]:
    """What was applied as it was when it was aborted or undone: it does not go out by that."""
    for change, rollout in zip(made, rollouts, strict=True):
        if (
            rollout
            and change.before is not None
            and _version(change.before) == _version(change.after)
        ):
            yield (
                f"Note: {change.wish.title} was aborted or undone as it is, so it stays back; "
                f"to let it out again: leafcast rollout retry {rollout}"
            )


def _version(obj: Mapping[str, Any]) -> Any:
    return obj["metadata"].get("resourceVersion")
