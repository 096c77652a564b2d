"""What is damaged, forged or missing is refused, counted and reported, and the rest goes on."""

from __future__ import annotations

import hashlib
import random
from dataclasses import replace

import pytest

from relay.core.effects import WriteMail
from relay.shell.publisher import CARRIED_MAX_BYTES
from relay.space_errors import SpaceError
from schemas.content import blobs
from schemas.content.blobs import store
from schemas.content.manifest import ManifestEntry, build_manifest
from schemas.objects.objects import ObjectKey
from schemas.objects.selectors import LabelSelector
from schemas.records.records import (
    OVER_LOCATION,
    Alternative,
    DeltaBody,
    DeltaHead,
    Gate,
    Source,
    decode_payload,
    encode_payload,
)
from schemas.records.signed_records import read_signed
from schemas.records.signing import Signer, decode_envelope
from schemas.values import wire
from schemas.values.groups import API_PLACEMENT
from schemas.values.identity import KeyId, NodePath, TreeId
from tests.memory_tree import config_map, memory_tree, placement

REGION, EDGE = NodePath.parse("/r1"), NodePath.parse("/r1/s1")


@pytest.fixture
async def tree(tmp_path):
    async with memory_tree(tmp_path, ["/r1", "/r1/s1", "/r1/s2"]) as grown:
        await grown.apply(placement("shop", "shop"), config_map("a", "shop"))
        await grown.until("shop", lambda c: c.exact and c.summary.states == {"synced": 2})
        yield grown


async def inject(tree, data: bytes, key: str) -> None:
    """Put a message into the edge's mailbox behind its parent's back."""
    mail = tree.network.streams(REGION).mail
    before = mail.get(("s1", key))
    write = WriteMail("s1", key, data, 1, b"", True, "", before.sequence if before else 0)
    await tree.network.bus(REGION).write(mail=[write])


async def noted(tree, path, reason: str) -> None:
    counters = tree.drivers[path].counters
    await tree.drivers[path].until(lambda _: counters.noted[reason] > 0)


async def still_works(tree) -> None:
    await tree.apply(config_map("after", "shop"))
    await tree.until("shop", lambda c: c.exact and c.summary.states == {"synced": 2})


def delta(name: str, entries: list[ManifestEntry], generation: int) -> tuple[DeltaHead, bytes]:
    root = build_manifest(entries)[0].reference
    body = DeltaBody((root,), (Gate(root),)).encode()
    head = DeltaHead(
        source=Source(API_PLACEMENT, "elsewhere", "", name),
        generation=generation,
        term="0" * 16,
        trace="",
        body_hash=hashlib.sha256(body).digest(),
        alternatives=(Alternative(OVER_LOCATION, LabelSelector()),),
        last_loss=0,
    )
    return head, body


async def test_a_corrupted_message_is_refused_and_counted(tree):
    await inject(tree, b"\xc1 no msgpack at all", "0" * 32)
    await noted(tree, EDGE, "Unreadable")
    await still_works(tree)


async def test_an_altered_message_is_refused_and_changes_nothing(tree):
    key = await tree.placement_key("shop")
    genuine = decode_envelope(tree.network.streams(REGION).mail.get(("s1", key)).data)
    head = decode_payload("delta", genuine.payload)
    later = wire.replace(head, generation=head.generation + 1, last_loss=head.generation + 1)
    altered = replace(genuine, payload=encode_payload(later))
    await inject(tree, altered.encode(), key)
    await noted(tree, EDGE, "Forged")
    held = tree.drivers[EDGE].node.records[key]
    assert held.generation == head.generation


async def test_what_an_unknown_key_or_another_tree_signed_is_refused(tree):
    head, body = delta("evil", [], tree.clock.now().wall_ms)
    unknown = Signer(tree.keys.tree, KeyId("b" * 26), b"x" * 32)
    foreign = Signer(TreeId("c" * 26), tree.keys.signing.key_id, tree.keys.signing.seed)
    for signer, reason in ((unknown, "UnknownKey"), (foreign, "Forged")):
        sealed = signer.seal("delta", encode_payload(head), body)
        await inject(tree, sealed.encode(), head.source.key)
        await noted(tree, EDGE, reason)
    assert head.source.key not in tree.drivers[EDGE].node.records
    await still_works(tree)


async def test_a_message_under_another_key_is_refused(tree):
    key = await tree.placement_key("shop")
    genuine = tree.network.streams(REGION).mail.get(("s1", key)).data
    await inject(tree, genuine, "1" * 32)
    await noted(tree, EDGE, "WrongKey")
    await still_works(tree)


async def test_a_damaged_blob_is_refused_named_at_the_centre_and_fetched_again(tree):
    tree.network.cut(EDGE)
    # More than travels along with a record.
    text = random.Random(1).randbytes(3000).hex()
    before = set(tree.network.streams(NodePath()).blobs)
    await tree.apply(placement("till", "till"), config_map("t", "till", text=text))
    await tree.drivers[REGION].until(
        lambda node: any(h.record.source.name == "till" for h in node.records.values())
    )
    await tree.until("till", lambda c: c.summary.states.get("synced") == 1)
    kept = tree.network.streams(REGION).blobs
    [large] = [it for it in kept.keys() - before if len(kept[it]) > CARRIED_MAX_BYTES]
    genuine = kept[large]
    kept[large] = b"\0damaged"
    tree.network.heal(EDGE)
    await noted(tree, EDGE, "BadBlob")
    count = await tree.until("till", lambda c: c.summary.states.get("failing") == 1)
    assert any("ContentRefused" in sample.reason for sample in count.summary.exceptions)
    await still_works(tree)

    kept[large] = genuine
    await tree.until("till", lambda c: c.exact and c.summary.states == {"synced": 2})


async def test_a_manifest_that_names_a_missing_blob_goes_no_further(tree):
    plain = b"never kept"
    reference = store(blobs.OBJECT, plain).reference
    entry = ManifestEntry(
        "", "configmaps", "shop", "ghost", reference.address, reference.size, "elsewhere", 1
    )
    head, body = delta("ghosts", [entry], tree.clock.now().wall_ms + 1000)
    values = {a: v for blob in build_manifest([entry]) for a, v in blob.values.items()}
    envelope = tree.keys.signing.seal("delta", encode_payload(head), body)
    await tree.centre.publisher.publish(values, [read_signed(envelope)])
    await noted(tree, REGION, "MissingBlob")
    key = head.source.key
    await tree.centre.until(lambda node: node.summary(key).exceptions != ())
    assert tree.centre.node.count(key).summary.states == {"pending": 2}
    assert key not in tree.drivers[EDGE].node.records
    await still_works(tree)


async def test_what_came_and_went_while_a_cluster_was_away_is_gone(tree, monkeypatch):
    async def away(*_):
        raise SpaceError("ServiceUnavailable", "the cluster is away")

    monkeypatch.setattr(tree.spaces[EDGE], "get", away)
    await tree.apply(placement("brief", "brief"), config_map("b", "brief"))
    await tree.until("brief", lambda c: c.summary.states == {"synced": 1, "failing": 1})
    await tree.workloads.delete(ObjectKey("edge.kubestellar.io", "edgeplacements", "", "brief"))
    await tree.until("brief", lambda c: not c.summary.destinations)
    monkeypatch.undo()
    await still_works(tree)
