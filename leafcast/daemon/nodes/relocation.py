"""An edge's inventory as it is at another place: who it is stays, where it hangs does not."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

from schemas.records.moves import MOVED_ANNOTATION, after_move
from schemas.values.groups import GROUP, PATH_ANNOTATION, VERSION
from schemas.values.identity import NodePath

Json = dict[str, Any]


def name_for(path: NodePath, targets: Mapping[str, str]) -> str:
    """What the SyncTarget at a path is called, given the paths of all by name ("" for none).

    A name outlives a move, so another one may have the name that the path would give.
    """
    base = "-".join(path.names)
    hanging = sorted(name for name, where in targets.items() if where == str(path))
    if base in hanging or (not hanging and not targets.get(base)):
        return base
    if hanging:
        return hanging[0]
    return next(name for n in count(2) if (name := f"{base}-{n}") not in targets)


def moved_objects(
    target: Json, location: Json | None, new: NodePath, labels: Mapping[str, str]
) -> list[Json]:
    """The SyncTarget of a moved edge, and its Location if there is one, as they are to be applied.

    A label `region` that says the old region follows; labels given win, save over `id`.
    """
    metadata = target["metadata"]
    annotations = metadata["annotations"]
    old = NodePath.parse(annotations[PATH_ANNOTATION])
    told = {
        PATH_ANNOTATION: str(new),
        MOVED_ANNOTATION: after_move(annotations, old, new),
    }
    found = [_applied(target, _labels(target, old, new, labels), told)]
    if location is not None:
        found.append(_applied(location, _labels(location, old, new, labels), {}))
    return found


def _labels(obj: Json, old: NodePath, new: NodePath, given: Mapping[str, str]) -> dict[str, str]:
    own = obj["metadata"].get("labels") or {}
    followed = {"region": new.names[0]} if own.get("region") == old.names[0] else {}
    kept = {"id": own["id"]} if "id" in own else {}
    return {**own, **followed, **given, **kept}


def _applied(obj: Json, labels: Mapping[str, str], annotations: Mapping[str, str]) -> Json:
    metadata = {"name": obj["metadata"]["name"], "labels": dict(labels)}
    if annotations:
        metadata["annotations"] = dict(annotations)
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": obj["kind"],
        "metadata": metadata,
        "spec": obj.get("spec") or {},
    }
