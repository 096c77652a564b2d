"""What a follower of a space is told, as JSON: from the daemon that follows to who asked it to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from leafcast.ask.asked_space import key_form
from relay.space_port import (
    Bookmark,
    Interest,
    Kind,
    KindsServed,
    Object,
    ObjectChange,
    ObjectsListed,
    ServerUnanswered,
    SpaceEvent,
    Synced,
    Unserved,
)
from schemas.objects.objects import ObjectKey
from schemas.objects.selectors import LabelSelector

Form = dict[str, Any]
PIECE_BYTES = 1_000_000
"""So many bytes of objects one form of a listing holds, or a single larger object."""


def forms_of(event: SpaceEvent) -> Iterator[Form]:
    """An event as JSON says it; a listing takes several forms, of which all but the last say so."""
    match event:
        case KindsServed(kinds):
            yield {"is": "served", "kinds": [kind_form(kind) for kind in kinds]}
        case ObjectsListed(interest, objects, revision):
            head = {"is": "listed", "interest": _said(interest), "revision": revision}
            pieces = list(_pieces(objects))
            for at, piece in enumerate(pieces):
                yield {**head, "objects": piece, "more": at + 1 < len(pieces)}
        case ObjectChange(kind, key, obj, revision):
            said = {"kind": kind, "key": key_form(key), "object": obj, "revision": revision}
            yield {"is": "change", **said}
        case Unserved(interest, reason, message):
            why = {"reason": reason, "message": message}
            yield {"is": "unserved", "interest": interest_form(interest), **why}
        case ServerUnanswered(why):
            yield {"is": "unanswered", "why": why}
        case Synced(wanted):
            forms = None if wanted is None else [interest_form(one) for one in wanted]
            yield {"is": "synced", "wanted": forms}
        case Bookmark(revision):
            yield {"is": "progress", "revision": revision}


class EventReader:
    """Reads these forms again, in the order in which they were made."""

    def __init__(self) -> None:
        self._listed: dict[ObjectKey, Object] = {}

    def read(self, form: Mapping[str, Any]) -> SpaceEvent | None:
        """The event, once its last form came; raises ValueError, TypeError or KeyError."""
        match form["is"]:
            case "served":
                return KindsServed(tuple(kind_of(kind) for kind in form["kinds"]))
            case "listed":
                self._listed |= {ObjectKey(*key): obj for key, obj in form["objects"]}
                if form["more"]:
                    return None
                objects, self._listed = self._listed, {}
                interest = form["interest"]
                named = None if interest is None else interest_of(interest)
                return ObjectsListed(named, objects, form["revision"])
            case "change":
                key = ObjectKey(*form["key"])
                return ObjectChange(form["kind"], key, form["object"], form["revision"])
            case "unserved":
                return Unserved(interest_of(form["interest"]), form["reason"], form["message"])
            case "unanswered":
                return ServerUnanswered(form["why"])
            case "synced":
                wanted = form["wanted"]
                return Synced(None if wanted is None else frozenset(map(interest_of, wanted)))
            case "progress":
                return Bookmark(form["revision"])
            case other:
                raise ValueError(f"an event {other!r}")


def kind_form(kind: Kind) -> list[Any]:
    """`[group, version, resource, kind, namespaced, versions, verbs, has_status]`."""
    names = [kind.group, kind.version, kind.resource, kind.kind, kind.namespaced]
    return [*names, list(kind.versions), sorted(kind.verbs), kind.has_status]


def kind_of(form: list[Any]) -> Kind:
    """The kind again; raises ValueError or TypeError."""
    group, version, resource, kind, namespaced, versions, verbs, has_status = form
    names = group, version, resource, kind
    return Kind(*names, namespaced, tuple(versions), frozenset(verbs), has_status)


def interest_form(interest: Interest) -> list[Any]:
    """`[group, resource, selector, metadata_only, namespace, name]`."""
    selector = interest.selector.to_kubernetes() if interest.selector is not None else None
    names = [interest.group, interest.resource, selector, interest.metadata_only]
    return [*names, interest.namespace, interest.name]


def interest_of(form: list[Any]) -> Interest:
    """The interest again; raises ValueError or TypeError."""
    group, resource, selector, metadata_only, namespace, name = form
    chosen = LabelSelector.from_kubernetes(selector) if selector is not None else None
    return Interest(group, resource, chosen, metadata_only, namespace, name)


def _said(interest: Interest | None) -> list[Any] | None:
    return None if interest is None else interest_form(interest)


def _pieces(objects: Mapping[ObjectKey, Object]) -> Iterator[list[Any]]:
    """The objects with their keys, in lists that are not too long; at least one list."""
    piece: list[Any] = []
    size = 0
    for key, obj in objects.items():
        length = len(json.dumps(obj))
        if piece and size + length > PIECE_BYTES:
            yield piece
            piece, size = [], 0
        piece.append([key_form(key), obj])
        size += length
    yield piece
