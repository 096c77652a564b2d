"""What the demo delivers: manifests read and checked whole before anything is started.

Without a placement among them one is made that names what is found, and sends it everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from controllers.core.translation.translate import alternatives_of
from controllers.core.workloads.selection import never_selected
from leafcast.changes.placements_by_names import placement_of
from leafcast.changes.wishes import wishes_of
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
    ObjectKey,
)
from schemas.records.placements import BINDING_POLICIES, EDGE_PLACEMENTS
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
    wishes, wrong = wishes_of((), loaded, None)
    placements: list[EdgePlacement | BindingPolicy] = []
    faults = list(map(str, wrong))
    for wish in wishes:
        parsed = parse_kind(wish.object)
        if isinstance(parsed, EdgePlacement | BindingPolicy):
            placements.append(parsed)
        elif parsed is not None and not isinstance(parsed, CustomTransform):
            remedy = "the demo makes its own inventory; leave this object out"
            faults.append(f'{wish.place}: {parsed.kind} "{parsed.name}": {remedy}')
    if faults:
        raise BadManifests(faults)
    # Placements come last: what they select is there then.
    wishes.sort(key=lambda wish: wish.key.group in CONTROL_GROUPS)
    objects = [wish.object for wish in wishes]
    # Others say what becomes of these, and go nowhere themselves.
    content = {it.key: it.object for it in wishes if it.key.group not in CONTROL_GROUPS}
    kept = tuple(key for key, obj in content.items() if never_selected(key, obj))
    if not placements:
        made = placement_of(MADE_PLACEMENT, content.keys() - set(kept), [{}])
        parsed = parse_kind(made)
        assert isinstance(parsed, EdgePlacement)
        placements, objects = [parsed], [*objects, made]
    if len(content) == len(kept):
        raise BadManifests(
            [f"{origin}: nothing that can be sent; add a workload, such as a Deployment"]
        )
    implied = _implied(content.keys())
    return Workload(
        (*implied, *objects),
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


def _implied(keys: Set[ObjectKey]) -> list[Object]:
    """The Namespaces that these objects need and do not bring."""
    there = {key.name for key in keys if key.group_resource == ("", "namespaces")}
    needed = {key.namespace for key in keys} - there - ALWAYS_THERE - {""}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        for name in sorted(needed)
    ]


def _name(placement: EdgePlacement | BindingPolicy) -> str:
    kind = EDGE_PLACEMENTS if isinstance(placement, EdgePlacement) else BINDING_POLICIES
    return kind.named(placement.name)
