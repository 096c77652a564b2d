"""Namespaces that objects of a batch lie in and that are not there: told once each, or made."""

from __future__ import annotations

from collections.abc import Sequence, Set

from leafcast.changes.space_pair import SpacePair
from relay.objects.serving import needs_namespace
from relay.objects.stored_object import WriteRefused
from relay.space_errors import NOT_FOUND, SpaceError
from schemas.objects.manifest_files import LoadedObject
from schemas.objects.objects import ObjectKey
from schemas.values.wording import many

CREATE = "--create-namespace"


def is_lacking(key: ObjectKey, error: SpaceError | WriteRefused) -> bool:
    """Whether an object is refused because its Namespace is not there."""
    said = f'namespaces "{key.namespace}" not found'
    return bool(key.namespace) and error.reason == NOT_FOUND and said in error.message


def lacking_text(namespace: str, titles: Sequence[str]) -> str:
    """That a Namespace is not there, of all its objects at once, and what to do."""
    said = f'namespaces "{namespace}" not found'
    return f"{first_of(titles)}: {said}; apply the Namespace first, or add {CREATE}"


def first_of(titles: Sequence[str]) -> str:
    """The first of objects of which all the same is said, and how many they are."""
    return titles[0] if not titles[1:] else f"{many(len(titles), 'object')}, such as {titles[0]}"


async def lacking_namespaces(spaces: SpacePair, keys: Set[ObjectKey]) -> list[LoadedObject]:
    """The Namespaces that these objects need, and that neither are there nor among them."""
    needed = {namespace for key in keys if (namespace := needs_namespace(key)) is not None}
    lacking = [key for key in sorted(needed - keys) if await spaces.space_for(key).get(key) is None]
    return [
        LoadedObject(_namespace(key.name), CREATE, number) for number, key in enumerate(lacking, 1)
    ]


def _namespace(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
