"""What a node shows of the records that it holds, to a centre that lost its own.

All as they were signed, so that whoever asks believes its own signature and nobody's word. Page by
page: `after` names the last key of the page before, an answer's `next` what to name for the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relay.core.asks.answers import BadArguments
from relay.core.node import Node
from schemas.blobs import Reference
from schemas.identity import ContentHash, MailKey

PAGE_BYTES_MAX = 4 * 1024 * 1024


def records_answer(node: Node, arguments: Mapping[str, str]) -> dict[str, Any]:
    """Records held, tombstones included: `{ready, records: [bytes], next: key}`.

    So is mail that the node cannot judge: what it waits for may be what was lost. And so are the
    index that it looks through and the last one that was all here: of newer ones the content may
    be lost.
    """
    after, besides = arguments.get("after", ""), node.besides()
    ready = node.ready or besides is not None
    shown: dict[MailKey, list[bytes]] = {key: [held.data] for key, held in node.records.items()}
    for key, data in besides or ():
        if data not in shown.setdefault(key, []):
            shown[key].append(data)
    keys = sorted(key for key in shown if key > after)
    page: list[bytes] = []
    size = 0
    for at, key in enumerate(keys):
        if page and size > PAGE_BYTES_MAX:
            return {"ready": ready, "records": page, "next": keys[at - 1]}
        page += shown[key]
        size += sum(map(len, shown[key]))
    return {"ready": ready, "records": page, "next": ""}


def reference_of(arguments: Mapping[str, str]) -> Reference:
    """The blob that an ask names by `kind`, `address` and `size`; raises BadArguments."""
    try:
        address, size = ContentHash(arguments["address"]), int(arguments["size"])
        return Reference(arguments["kind"], address, size)
    except (KeyError, ValueError) as error:
        raise BadArguments(f"kind, address, size: {error}") from error
