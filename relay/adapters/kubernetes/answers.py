"""What an API server answers, as values; what is no answer of one is refused, never believed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from relay.adapters.kubernetes import paths, refusals
from relay.space_errors import SpaceError
from relay.space_port import Kind, Object
from schemas.objects.objects import ObjectKey
from schemas.values.fields import mapping_at

_CHANGES: Mapping[str, Literal["added", "modified", "deleted"]] = {
    "ADDED": "added",
    "MODIFIED": "modified",
    "DELETED": "deleted",
}
_LETTERS_MAX = 4096
"""The longest revision, or text that continues a list: more than any server makes."""


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list: its revision, and what asks for the next part."""

    objects: tuple[Object, ...]
    revision: str
    more: str


@dataclass(frozen=True, slots=True)
class WatchAnswer:
    """What a watch brings; `change` is None of a bookmark, which has a revision only."""

    change: Literal["added", "modified", "deleted"] | None
    object: Object
    revision: str


def mapping(answer: object) -> Mapping[str, Any]:
    """An answer that has fields; raises SpaceError."""
    if not isinstance(answer, Mapping):
        raise _strange("no object")
    return answer


def object_of(answer: object) -> Object:
    """An object with a name; raises SpaceError."""
    obj = dict(mapping(answer))
    metadata = obj.get("metadata")
    if not isinstance(metadata, Mapping) or not isinstance(metadata.get("name"), str):
        raise _strange("an object without a name")
    if not isinstance(metadata.get("namespace") or "", str):
        raise _strange("an object in no namespace that there could be")
    return obj


def page_of(kind: Kind, answer: object) -> Page:
    """A part of a list; a server leaves out what all its objects share. Raises SpaceError."""
    form = mapping(answer)
    items = form.get("items")
    if not isinstance(items, list | None):
        raise _strange("no list")
    shared = {"apiVersion": paths.group_version(kind.group, kind.version), "kind": kind.kind}
    objects = tuple({**shared, **object_of(item)} for item in items or ())
    return Page(objects, _meta(form, "resourceVersion"), _meta(form, "continue"))


def event_of(answer: object) -> WatchAnswer:
    """What a watch brought; raises SpaceError, with what the server says if that is an error."""
    form = mapping(answer)
    kind, obj = form.get("type"), mapping(form.get("object"))
    if kind == "ERROR":
        code = obj.get("code")
        raise refusals.refusal(code if isinstance(code, int) else 500, obj)
    if kind == "BOOKMARK":
        return WatchAnswer(None, dict(obj), _meta(obj, "resourceVersion"))
    if not isinstance(kind, str) or kind not in _CHANGES:
        raise _strange("an event of no kind that there is")
    return WatchAnswer(_CHANGES[kind], object_of(obj), _meta(obj, "resourceVersion"))


def key_of(group: str, resource: str, obj: Object) -> ObjectKey:
    """The object's key, by the resource that it is of."""
    metadata = obj["metadata"]
    return ObjectKey(group, resource, metadata.get("namespace") or "", metadata["name"])


def revision_of(answer: object) -> str:
    """The revision of a list; raises SpaceError."""
    return _meta(mapping(answer), "resourceVersion")


def _meta(form: Mapping[str, Any], name: str) -> str:
    value = mapping_at(form, "metadata").get(name)
    return value[:_LETTERS_MAX] if isinstance(value, str) else ""


def _strange(said: str) -> SpaceError:
    return SpaceError("InternalError", f"the server answered with {said}: is it an API server?")
