"""What a node shows of the records that it holds, to a centre that lost its own.

All as they were signed, so that whoever asks believes its own signature and nobody's word. Page by
page: `after` names the last key of the page before, an answer's `next` what to name for the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relay.core.answers import BadArguments
from relay.core.node import Node
from schemas.blobs import Reference
from schemas.identity import ContentHash

PAGE_BYTES_MAX = 4 * 1024 * 1024


def records_answer(node: Node, arguments: Mapping[str, str]) -> dict[str, Any]:
    """Records held, tombstones included: `{ready, records: [bytes], next: key}`."""
    after = arguments.get("after", "")
    keys = sorted(key for key in node.records if key > after)
    page: list[bytes] = []
    size = 0
    for at, key in enumerate(keys):
        if page and size > PAGE_BYTES_MAX:
            return {"ready": node.ready, "records": page, "next": keys[at - 1]}
        page.append(node.records[key].data)
        size += len(page[-1])
    return {"ready": node.ready, "records": page, "next": ""}


def reference_of(arguments: Mapping[str, str]) -> Reference:
    """The blob that an ask names by `kind`, `address` and `size`; raises BadArguments."""
    try:
        address, size = ContentHash(arguments["address"]), int(arguments["size"])
        return Reference(arguments["kind"], address, size)
    except (KeyError, ValueError) as error:
        raise BadArguments(f"kind, address, size: {error}") from error
