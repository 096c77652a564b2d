"""What the demo delivers: manifests read and checked whole before anything is started.

Without a placement among them one is made that names what is found, and sends it everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from controllers.core.translation.translate import alternatives_of
from controllers.core.workloads.selection import never_selected
from leafcast.changes.placements_by_names import placement_of
from leafcast.manifest_sources import (
    STDIN,
    STDIN_ORIGIN,
    SUFFIXES,
    BadManifests,
    read_manifests,
)
from schemas.api.parsing import parse_kind
from schemas.api.placement import EdgePlacement
from schemas.api.policy import BindingPolicy
from schemas.api.transform import CustomTransform
from schemas.objects.manifest_files import LoadedObject, load_manifests
from schemas.objects.objects import (
    ALWAYS_THERE,
    BUILT_IN_KINDS,
    KindTable,
    ObjectKey,
    apply_order,
    group_of,
)
from schemas.records.placements import BINDING_POLICIES, EDGE_PLACEMENTS
from schemas.values.faults import InvalidObject
from schemas.values.groups import CONTROL_GROUPS

MADE_PLACEMENT = "demo"

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Workload:
    """Objects to apply at the centre, placements last."""

    objects: tuple[Object, ...]
    placements: tuple[str, ...]
    # The placements that select all there is.
    everywhere: frozenset[str]
    # The objects that no placement ever sends, because every cluster has its own of them.
    kept: tuple[ObjectKey, ...]
    origin: str
    # How many Namespaces nobody wrote, which edges make by themselves.
    implied: int = 0

    @property
    def delivered(self) -> int:
        """How many objects go out, if the placements select them all."""
        return len(self.objects) - len(self.placements) - len(self.kept) - self.implied


def load_shop() -> Workload:
    """The shop that travels with the program."""
    folder = files("leafcast").joinpath("shop")
    sources = sorted(
        (source for source in folder.iterdir() if source.name.endswith(SUFFIXES)),
        key=lambda source: source.name,
    )
    texts = ((source.read_text(encoding="utf-8"), source.name) for source in sources)
    loaded = [found for text, name in texts for found in load_manifests(text, name)]
    return prepare(loaded, "a small shop")


def load_files(paths: Sequence[str], read_stdin: Callable[[], str]) -> Workload:
    """The objects in files, in folders (recursively, in the order of names) and, for `-`, on stdin.

    Raises BadManifests with everything that is wrong.
    """
    loaded = read_manifests(paths, read_stdin, recursive=True)
    named = ", ".join(STDIN_ORIGIN if path == STDIN else path for path in paths)
    return prepare(loaded, named)


def prepare(loaded: Sequence[LoadedObject], origin: str) -> Workload:
    """Complete objects as kubectl does, check our kinds, and add a placement if there is none.

    Raises BadManifests.
    """
    kinds = BUILT_IN_KINDS.extended_by(found.object for found in loaded)
    placements: list[EdgePlacement | BindingPolicy] = []
    faults: list[str] = []
    for found in loaded:
        try:
            parsed = parse_kind(found.object)
        except InvalidObject as error:
            faults += [f"{found.origin}:{found.line}: {line}" for line in str(error).splitlines()]
            continue
        if isinstance(parsed, EdgePlacement | BindingPolicy):
            placements.append(parsed)
        elif parsed is not None and not isinstance(parsed, CustomTransform):
            remedy = "the demo makes its own inventory; leave this object out"
            faults.append(f'{found.origin}:{found.line}: {parsed.kind} "{parsed.name}": {remedy}')
    if faults:
        raise BadManifests(faults)
    objects = [_with_namespace(found.object, kinds) for found in loaded]
    content = [obj for obj in objects if not _is_control(obj)]
    kept = tuple(key for obj in content if never_selected(key := kinds.key_of(obj), obj))
    if not placements:
        going = [kinds.key_of(obj) for obj in content]
        made = placement_of(MADE_PLACEMENT, {key for key in going if key not in kept}, [{}])
        parsed = parse_kind(made)
        assert isinstance(parsed, EdgePlacement)
        placements, objects = [parsed], [*objects, made]
    if len(content) == len(kept):
        raise BadManifests(
            [f"{origin}: nothing that can be sent; add a workload, such as a Deployment"]
        )
    implied = _implied(kinds.key_of(obj) for obj in content)
    return Workload(
        tuple(sorted([*implied, *objects], key=lambda obj: _order(kinds.key_of(obj)))),
        tuple(sorted({_name(placement) for placement in placements})),
        frozenset(
            _name(placement)
            for placement in placements
            if any(item.selector.is_everything for item in alternatives_of(placement.spec))
        ),
        kept,
        origin,
        len(implied),
    )


def _implied(keys: Iterable[ObjectKey]) -> list[Object]:
    """The Namespaces that these objects need and do not bring."""
    listed = list(keys)
    there = {key.name for key in listed if key.group_resource == ("", "namespaces")}
    needed = {key.namespace for key in listed} - there - ALWAYS_THERE - {""}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        for name in sorted(needed)
    ]


def _order(key: ObjectKey) -> tuple[bool, int]:
    """What others lean on first, placements last."""
    return key.group in CONTROL_GROUPS, apply_order(key.group, key.resource)


def _with_namespace(obj: Mapping[str, Any], kinds: KindTable) -> Object:
    namespace = kinds.key_of(obj).namespace
    metadata = {key: value for key, value in obj["metadata"].items() if key != "namespace"}
    if namespace:
        metadata["namespace"] = namespace
    return {**obj, "metadata": metadata}


def _name(placement: EdgePlacement | BindingPolicy) -> str:
    kind = EDGE_PLACEMENTS if isinstance(placement, EdgePlacement) else BINDING_POLICIES
    return kind.named(placement.name)


def _is_control(obj: Mapping[str, Any]) -> bool:
    """Whether it says what becomes of others, and goes nowhere itself."""
    return group_of(obj) in CONTROL_GROUPS
