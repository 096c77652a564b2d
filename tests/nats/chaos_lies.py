"""A relay that was broken into: what it writes into its children's mailboxes is not what it got.

While a file is there, the relay lies in the ways that stand in it, each a word:

- `snapshot`: it shows each child the first snapshot that this had from it, and no newer one;
- `replay`: it hands on the first version of each placement that the child had from it;
- `alter`: it hands on the head of each new version under a higher generation, signed as it was;
- `forge`: it says the same with a signature of its own;
- `stolen:TREE:ID:SEED`: it says, signed with a key that it stole, that nobody is meant any more;
- `redirect`: it hands on another placement, as the centre signed it, in the place of the right one.

All else goes its way, and its own streams keep what is true.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from relay.adapters.jetstream.bus import JetStreamBus
from relay.core.effects import StoreOwn, WriteMail
from relay.core.events import MailWritten
from schemas.records.records import DeltaHead, decode_payload, encode_payload
from schemas.records.signing import Signer, decode_envelope
from schemas.reports.link import Welcome
from schemas.values import wire
from schemas.values.identity import SNAPSHOT_KEY, ContentHash, KeyId, MailKey, TreeId
from schemas.values.wire import decode, encode

FORGER = Signer(TreeId("e" * 26), KeyId("e" * 26), b"e" * 32)

First = Mapping[tuple[str, MailKey], bytes]


def lie(while_there: Path) -> None:
    """Have the relay of this process lie in the ways that the file names."""
    honest_write, honest_welcome = JetStreamBus.write, JetStreamBus.send_welcome
    first = dict[tuple[str, MailKey], bytes]()

    def ways() -> Sequence[str]:
        return while_there.read_text().split() if while_there.exists() else ()

    async def write(
        bus: JetStreamBus,
        *,
        blobs: Mapping[ContentHash, bytes] | None = None,
        own: Iterable[StoreOwn] = (),
        mail: Sequence[WriteMail] = (),
    ) -> list[MailWritten]:
        for it in mail:
            first.setdefault((it.child, it.key), it.data)
        said, now = [], ways()
        for it in mail:
            data = _said(it, now, first)
            said.append(it if data == it.data else wire.replace(it, data=data, carried=()))
        return await honest_write(bus, blobs=blobs, own=own, mail=said)

    async def send_welcome(bus: JetStreamBus, child: str, data: bytes) -> None:
        message = decode(Welcome, data)
        if message.snapshot:
            shown = first.setdefault((child, SNAPSHOT_KEY), message.snapshot)
            if "snapshot" in ways():
                data = encode(wire.replace(message, snapshot=shown))
        await honest_welcome(bus, child, data)

    JetStreamBus.write, JetStreamBus.send_welcome = write, send_welcome


def _said(write: WriteMail, ways: Sequence[str], first: First) -> bytes:
    if write.key == SNAPSHOT_KEY:
        return first[write.child, write.key] if "snapshot" in ways else write.data
    envelope = decode_envelope(write.data)
    if envelope.kind != "delta":
        return write.data
    data, head = write.data, decode_payload("delta", envelope.payload)
    assert isinstance(head, DeltaHead)
    later = wire.replace(head, generation=head.generation + 1, last_loss=head.generation + 1)
    for way in ways:
        match way:
            case "replay":
                data = first[write.child, write.key]
            case "alter":
                data = replace(envelope, payload=encode_payload(later), body=None).encode()
            case "forge":
                data = FORGER.seal("delta", encode_payload(later)).encode()
            case "redirect":
                data = _another(write, first)
            case _ if way.startswith("stolen:"):
                nobody = wire.replace(later, alternatives=())
                data = _thief(way).seal("delta", encode_payload(nobody), envelope.body).encode()
    return data


def _thief(way: str) -> Signer:
    _, tree, key_id, seed = way.split(":")
    return Signer(TreeId(tree), KeyId(key_id), bytes.fromhex(seed))


def _another(write: WriteMail, first: First) -> bytes:
    """What the child had of another placement."""
    return next(
        data
        for (child, key), data in first.items()
        if child == write.child
        and key not in (write.key, SNAPSHOT_KEY)
        and decode_envelope(data).kind == "delta"
    )
