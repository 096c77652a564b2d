"""A destination's record tells where it hung before, so that who kept its things knows them."""

from __future__ import annotations

from collections.abc import Mapping

from schemas.values.identity import NodePath
from schemas.values.refusals import BadIdentity

MOVED_ANNOTATION = "leafcast.io/moved-from"
FORMER_MAX = 8
"""So many former paths are told, the latest last."""


def former_paths(annotations: Mapping[str, str]) -> tuple[NodePath, ...]:
    """The paths at which a destination hung before, the latest last; what is no path is none."""
    found = []
    said = annotations.get(MOVED_ANNOTATION)
    for text in said.split(",")[-FORMER_MAX:] if said else ():
        try:
            path = NodePath.parse(text.strip())
        except BadIdentity:
            continue
        if not path.is_root:
            found.append(path)
    return tuple(found)


def after_move(annotations: Mapping[str, str], old: NodePath, new: NodePath) -> str:
    """What the annotation says once a destination was moved from one path to another."""
    before = [path for path in former_paths(annotations) if path not in (old, new)]
    return ",".join(str(path) for path in [*before, old][-FORMER_MAX:])
