"""What a node has of placements as it was signed, asked of the node itself."""

from __future__ import annotations

from functools import partial
from typing import Any

from leafcast.ask.decode import read_proof
from leafcast.ask.failures import CallFailed
from leafcast.ask.pages import LISTED_MAX, asked_page
from leafcast.ask.session import Session
from leafcast.key_files import public_keys
from leafcast.proofs import Proof
from schemas.records.asks import PROOF
from schemas.records.placements import bare_name, kind_of, said_placement
from schemas.records.roots import Roots
from schemas.values.identity import NodePath, TreeId, mail_key


async def asked_proof(
    session: Session, path: NodePath, placement: str = "", page_max: int | None = None
) -> Proof:
    """The proof of a node, of one placement if one is named; raises CallFailed.

    With `page_max` of the first placements alone.
    """
    keys = await session.call("keys")
    roots = Roots(public_keys(keys["publicRoots"]), keys["threshold"], keys["version"])
    asked: dict[str, Any] = {"placement": await _key(session, placement)} if placement else {}
    if page_max is not None:
        asked["limit"] = str(page_max)
    after, records, message = "", list[bytes](), b""
    while True:
        read = partial(read_proof, after=after)
        page = await asked_page(session, path, PROOF, read, after=after, **asked)
        records += [bytes.fromhex(it.message) for it in page.records]
        message, after = bytes.fromhex(page.keys), page.after
        if not after or page_max is not None:
            break
        if len(records) > LISTED_MAX:
            said = f"{path} has more than {LISTED_MAX} placements"
            raise CallFailed("ask", "TooLarge", said, "name a placement")
    now_ms = session.clock.now().wall_ms
    return Proof(TreeId(keys["tree"]), path, now_ms, roots, message, tuple(records))


async def _key(session: Session, placement: str) -> str:
    said, space = said_placement(placement), await session.workloads.identity()
    return mail_key(kind_of(said).api, space, "", bare_name(said))
