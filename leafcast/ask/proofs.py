"""What a node has of placements as it was signed, asked of the node itself."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from leafcast.ask.decode import SignedForm, read_proof
from leafcast.ask.failures import CallFailed
from leafcast.ask.pages import LISTED_MAX, asked_page
from leafcast.ask.session import Session
from leafcast.key_files import public_keys
from leafcast.object_proofs import ObjectProof, ShownList, sealing_id
from leafcast.proofs import Proof, check_proof
from schemas.objects.objects import ObjectKey
from schemas.records.asks import PROOF
from schemas.records.placements import bare_name, kind_of, said_placement
from schemas.records.records import decode_base
from schemas.records.roots import Roots
from schemas.records.signing import decode_envelope
from schemas.values.identity import ContentHash, NodePath, TreeId, mail_key


async def asked_proof(
    session: Session, path: NodePath, placement: str = "", page_max: int | None = None
) -> Proof:
    """The proof of a node, of one placement if one is named; raises CallFailed.

    With `page_max` of the first placements alone.
    """
    asked = await _placement(session, placement)
    if page_max is not None:
        asked["limit"] = str(page_max)
    proof, _ = await _asked(session, path, asked, one_page=page_max is not None)
    return proof


async def asked_object_proof(
    session: Session, path: NodePath, key: ObjectKey, placement: str = ""
) -> Proof:
    """The proof of one object at an edge, of all that deliver it or of one; raises CallFailed."""
    asked = {
        **await _placement(session, placement),
        "group": key.group,
        "resource": key.resource,
        "namespace": key.namespace,
        "name": key.name,
    }
    proof, shown = await _asked(session, path, asked, of_object=True)
    return replace(proof, about=ObjectProof(key, tuple(map(_shown_list, shown))))


async def with_keys(session: Session, proof: Proof) -> Proof:
    """The same with the keys of placements that open what it shows, where the centre has them."""
    if proof.about is None:
        return proof
    lists = list[ShownList]()
    for data, it, shown in zip(
        proof.records, check_proof(proof).records, proof.about.lists, strict=True
    ):
        # Of what nobody signed the key would be of any placement that the node likes.
        if it.refused or it.listed is None or not it.listed.is_closed:
            lists.append(shown)
            continue
        placement = decode_base(decode_envelope(data).payload).source.key
        said = await session.call(
            "keys-placement", placement=placement, key=sealing_id(shown).hex()
        )
        lists.append(replace(shown, key=bytes.fromhex(said["key"])))
    return replace(proof, about=replace(proof.about, lists=tuple(lists)))


async def _asked(
    session: Session,
    path: NodePath,
    asked: dict[str, str],
    *,
    one_page: bool = False,
    of_object: bool = False,
) -> tuple[Proof, list[SignedForm]]:
    keys = await session.call("keys")
    roots = Roots(public_keys(keys["publicRoots"]), keys["threshold"], keys["version"])
    after, shown, message = "", list[SignedForm](), b""
    while True:
        read = partial(read_proof, after=after, of_object=of_object)
        page = await asked_page(session, path, PROOF, read, after=after, **asked)
        shown += page.records
        message, after = bytes.fromhex(page.keys), page.after
        if not after or one_page:
            break
        if len(shown) > LISTED_MAX:
            said = f"{path} has more than {LISTED_MAX} placements"
            raise CallFailed("ask", "TooLarge", said, "name a placement")
    now_ms = session.clock.now().wall_ms
    records = tuple(bytes.fromhex(it.message) for it in shown)
    return Proof(TreeId(keys["tree"]), path, now_ms, roots, message, records), shown


def _shown_list(form: SignedForm) -> ShownList:
    manifest, chunk = bytes.fromhex(form.manifest), bytes.fromhex(form.chunk)
    return ShownList(manifest, chunk, ContentHash(form.address))


async def _placement(session: Session, placement: str) -> dict[str, Any]:
    return {"placement": await _key(session, placement)} if placement else {}


async def _key(session: Session, placement: str) -> str:
    said, space = said_placement(placement), await session.workloads.identity()
    return mail_key(kind_of(said).api, space, "", bare_name(said))
