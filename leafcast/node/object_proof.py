"""What an edge answers when it is asked who signed one of its objects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from relay.core.asks.answers import BadAskArguments, Json, limit_of, paged
from relay.core.destination.copies_here import ListedObject
from relay.core.node_answers import OBJECT_WORDS, placement_of
from relay.core.records.accepted import is_delta
from relay.core.view import NodeView
from relay.shell.asker import AskFailed
from schemas.content.blobs import Reference
from schemas.content.manifest import read_root
from schemas.objects.objects import ObjectKey
from schemas.records.asks import AskFault
from schemas.values.identity import KEYS_KEY

Load = Callable[[Reference], Awaitable[bytes | None]]
"""Reads a blob's plain bytes from the store; None if it is not there."""


async def object_proof_answer(
    node: NodeView, load: Load, path: str, arguments: Mapping[str, str]
) -> Json:
    """The signed messages by which an object is there, with what leads from each to it, in hex.

    `{path, keys, records: [{key, message, manifest, chunk, address}], next}`: messages with their
    bodies, the manifest's root that the body names, the chunk that the root names and that lists
    the object, and the object's address. Nothing of what the object says. Arguments: `group`,
    `resource`, `namespace`, `name`; `placement`, `after` and `limit` as of all placements.
    """
    if not node.is_destination:
        raise AskFailed(AskFault("NoCluster", f"{path} has no cluster of its own", path))
    if not arguments.get("name"):
        raise BadAskArguments("name: it is missing; name one object")
    key = ObjectKey(*(arguments.get(word, "") for word in OBJECT_WORDS))
    after, limit = arguments.get("after", ""), limit_of(arguments)
    only = placement_of(arguments) if arguments.get("placement") else None
    # Read at one moment, for what follows waits.
    found = [
        (it, held.data)
        for it in node.listed(key)
        if it.placement > after and only in (None, it.placement)
        # By its head alone nobody can tell what it delivers.
        if is_delta(held := node.records.get(it.placement)) and held.full
    ]
    keys = node.records.get(KEYS_KEY)
    said = [await _shown(load, path, key, it, data) for it, data in found]
    page, following = paged(said, limit, lambda it: str(it["key"]), lambda it: it)
    message = keys.data.hex() if keys is not None else ""
    return {"path": path, "keys": message, "records": page, "next": following}


async def _shown(load: Load, path: str, key: ObjectKey, it: ListedObject, message: bytes) -> Json:
    root = await load(it.arm)
    chunk = await load(read_root(root).chunk_of(key)) if root is not None else None
    if root is None or chunk is None:
        raise AskFailed(AskFault("NotReady", f"{path} fetches what lists {key} anew", path))
    return {
        "key": it.placement,
        "message": message.hex(),
        "manifest": root.hex(),
        "chunk": chunk.hex(),
        "address": it.address,
    }
