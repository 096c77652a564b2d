"""The verb `render`: what an object becomes at one destination, as far as the centre knows it.

The destination may be away: the centre holds the object, and the records that say its properties.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from controllers.centre import Controllers
from controllers.core.workloads.clean_copies import clean, taken_off
from controllers.core.workloads.space_settings import marks_of, take_off_marks
from controllers.core.workloads.transforms import TransformFailed, take_off, transform
from controllers.core.workloads.unsaid import unsaid
from controllers.core.workloads.what import is_partial
from leafcast.ask.api import Api, ApiError
from leafcast.centre.centre import Centre, running
from leafcast.daemon.verbs.selection import until_seen
from relay.objects.customization import (
    CustomizationFailed,
    Customized,
    customize,
    path_text,
)
from relay.objects.nulls import field_text, null_fields
from relay.objects.serving import Serving
from relay.space_errors import SpaceError
from relay.space_port import Object, Space
from schemas.api.placement import AS_WRITTEN, KUBESTELLAR, Cleaning
from schemas.objects.objects import DEFINITIONS, ObjectKey
from schemas.records.placements import title
from schemas.records.properties import PARAMETER, Properties, properties_of
from schemas.records.records import LocationRecord, Profile
from schemas.values.identity import NodePath

_OF_TOOLS = "it tells a tool what is its own"


def register_rendering(api: Api, centre: Centre) -> None:
    """Answer the verb `render` about this tree."""

    async def render(path: str, key: list[str]) -> dict[str, Any]:
        """An object (group, resource, namespace, name) as it is to be at the node of a path.

        Beside it, in `changes`, what was expanded or replaced; in `properties`, who says what was
        asked for; in `taken_off`, the fields that do not go out, by the reason; in `nulls`, those
        that a cluster leaves out; in `unsaid`, those that stay out where a cluster does not know
        them; in `notes`, what else there is to know. Raises ApiError.
        """
        controllers = running(centre.controllers)
        await until_seen(controllers)
        wanted = ObjectKey(*key)
        properties = _properties_at(controllers, NodePath.parse(path))
        obj = await _object(controllers, centre, wanted)
        made = _made(controllers, wanted, obj, properties)
        names = dict.fromkeys(name for change in made.changes for name in change.names)
        return {
            "object": made.object,
            "changes": [{**asdict(change), "names": list(change.names)} for change in made.changes],
            "properties": {name: _said(properties, name) for name in names},
            "taken_off": _taken_off(controllers, wanted, obj),
            "nulls": await _nulls(running(centre.workloads), wanted, made.object),
            "unsaid": _unsaid(controllers, wanted, obj),
            "notes": _notes(controllers, wanted, obj),
        }

    api.register("render", render)


def _properties_at(controllers: Controllers, path: NodePath) -> Properties:
    records = controllers.issuer.records.values()
    here = [item for item in records if isinstance(item, Profile) and item.path == path]
    if not here:
        remedy = "see those there are: leafcast get synctargets"
        raise ApiError("NotFound", f"no destination hangs at {path}", remedy)
    profile = max(here, key=lambda item: item.generation)
    located = (
        item
        for item in records
        if isinstance(item, LocationRecord)
        and item.source.space == profile.source.space
        and item.instance_selector is not None
        and item.instance_selector.matches(profile.labels)
    )
    return properties_of(profile, located)


async def _object(controllers: Controllers, centre: Centre, key: ObjectKey) -> Object:
    """The object in the workload space; of one in a Denatured, the inner one."""
    known = controllers.translator.workloads.resolver.objects.get(key)
    if known is not None and not is_partial(known):
        return dict(known)
    obj = await running(centre.workloads).get(key)
    if obj is None:
        remedy = "see: leafcast get " + key.resource
        raise ApiError("NotFound", f"{key} is not there", remedy)
    return obj


def _made(
    controllers: Controllers, key: ObjectKey, obj: Object, properties: Properties
) -> Customized:
    workloads = controllers.translator.workloads
    customizers = workloads.resolver.customizers
    casting = customizers.casting(key, obj)
    if casting.faults:
        said = "; ".join(str(fault) for fault in casting.faults)
        raise ApiError("Frozen", said, "correct it: until then nothing of its placements goes out")
    plain = clean(key, obj, _cleaning(controllers, key))
    take_off_marks(plain, workloads.settings.mark_patterns)
    try:
        transform(plain, workloads.transforms.of(key))
    except TransformFailed as error:
        raise ApiError("ObjectRefused", f"{key}: {error.message}", error.remedy) from error
    if not casting.template:
        return Customized(plain)
    try:
        by = customizers.asked_by(key, obj)
        return customize(key, plain, by, properties.values, properties.destination)
    except CustomizationFailed as error:
        said = "until then its placements stay there as they are"
        raise ApiError("Frozen", str(error), said) from error


def _cleaning(controllers: Controllers, key: ObjectKey) -> Cleaning:
    """By which rule the object is cleaned; where two meet, what is written counts."""
    workloads = controllers.translator.workloads
    rules = {workloads.cleaning_of(name) for name in workloads.resolver.selecting(key)}
    return KUBESTELLAR if rules == {KUBESTELLAR} else AS_WRITTEN


def _taken_off(controllers: Controllers, key: ObjectKey, obj: Object) -> dict[str, list[str]]:
    """The fields that do not go out, by the reason."""
    workloads, rule = controllers.translator.workloads, _cleaning(controllers, key)
    found = dict[str, list[str]]()
    for path, reason in taken_off(key, obj, rule):
        found.setdefault(reason, []).append(path)
    plain = clean(key, obj, rule)
    for steps in list(marks_of(plain, workloads.settings.mark_patterns)):
        found.setdefault(_OF_TOOLS, []).append(path_text(("metadata", *steps)))
    take_off_marks(plain, workloads.settings.mark_patterns)
    for place, by in take_off(plain, workloads.transforms.of(key)):
        found.setdefault(f"customtransform/{by.name} takes it off", []).append(path_text(place))
    return found


async def _nulls(space: Space, key: ObjectKey, obj: Object) -> list[str]:
    """The fields that are null, though the definition that is here does not let them be."""
    if not any(null_fields(obj)):
        return []
    try:
        definition = await space.get(ObjectKey(*DEFINITIONS, "", f"{key.resource}.{key.group}"))
    except SpaceError:
        return []
    serving = Serving().extended_by([definition] if definition is not None else [])
    return [field_text(steps) for steps in serving.not_nullable(obj)]


def _unsaid(controllers: Controllers, key: ObjectKey, obj: Object) -> list[str]:
    """The fields that go out, and that nobody said."""
    resolver = controllers.translator.workloads.resolver
    sent = clean(key, obj, _cleaning(controllers, key))
    for _ in take_off(sent, controllers.translator.workloads.transforms.of(key)):
        pass
    found = unsaid(obj, sent, resolver.objects.get(resolver.definition_of(key)))
    return sorted(map(path_text, found))


def _said(properties: Properties, name: str) -> list[dict[str, str]]:
    """Who says a property, the one that counts first."""
    plain = name.removeprefix(PARAMETER)
    return [
        {"origin": layer.origin, "what": layer.kind, "value": layer.values[plain]}
        for layer in properties.layers_with(name)
    ]


def _notes(controllers: Controllers, key: ObjectKey, obj: Object) -> list[str]:
    resolver = controllers.translator.workloads.resolver
    missing = resolver.customizers.lacks(key, obj)
    notes = [f"Customizer {missing} is not there: it goes out as it is written"] if missing else []
    names, rule = resolver.selecting(key), _cleaning(controllers, key)
    other = [n for n in names if controllers.translator.workloads.cleaning_of(n) != rule]
    if other:
        where = "where it alone goes, it is cleaned so"
        notes += [f"{title(name)} says cleaning: {KUBESTELLAR}: {where}" for name in sorted(other)]
    if not names:
        notes.append("no placement selects it: it goes nowhere")
    return notes
