"""A relay that was broken into: what it writes into its children's mailboxes is not what it got.

While a file is there, the relay lies in the ways that stand in it, each a word:

- `index`: it shows each child the first index that this had from it;
- `replay`: it hands on the first version of each placement that the child had from it;
- `alter`: it says of each new version, signed as it is, that the placement is deleted;
- `forge`: it says the same with a signature of its own;
- `redirect`: it hands on another placement, as the centre signed it, in the place of the right one.

All else goes its way, and its own streams keep what is true.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from relay.adapters.jetstream.bus import JetStreamBus
from relay.core.effects import WriteMail
from relay.core.events import MailWritten
from schemas import wire
from schemas.identity import INDEX_KEY, KeyId, MailKey, TreeId
from schemas.records import DeltaHead, decode_payload, encode_payload
from schemas.signing import Signer, decode_envelope

FORGER = Signer(TreeId("e" * 26), KeyId("e" * 26), b"e" * 32)

First = Mapping[tuple[str, MailKey], bytes]


def lie(while_there: Path) -> None:
    """Have the relay of this process lie in the ways that the file names."""
    honest, first = JetStreamBus.write_mail, dict[tuple[str, MailKey], bytes]()

    async def write_mail(bus: JetStreamBus, writes: Sequence[WriteMail]) -> list[MailWritten]:
        for write in writes:
            first.setdefault((write.child, write.key), write.data)
        ways = while_there.read_text().split() if while_there.exists() else ()
        return await honest(bus, [replace(w, data=_said(w, ways, first)) for w in writes])

    JetStreamBus.write_mail = write_mail


def _said(write: WriteMail, ways: Sequence[str], first: First) -> bytes:
    envelope = decode_envelope(write.data)
    if write.key == INDEX_KEY:
        return first[write.child, write.key] if "index" in ways else write.data
    if envelope.kind != "delta":
        return write.data
    data, head = write.data, decode_payload("delta", envelope.payload)
    assert isinstance(head, DeltaHead)
    gone = wire.replace(
        head, generation=head.generation + 1, deleted=True, body_hash=b"", references=()
    )
    for way in ways:
        match way:
            case "replay":
                data = first[write.child, write.key]
            case "alter":
                data = replace(envelope, payload=encode_payload(gone), body=None).encode()
            case "forge":
                data = FORGER.seal("delta", encode_payload(gone)).encode()
            case "redirect":
                data = _another(write, first)
    return data


def _another(write: WriteMail, first: First) -> bytes:
    """What the child had of another placement."""
    return next(
        data
        for (child, key), data in first.items()
        if child == write.child and key != write.key and decode_envelope(data).kind == "delta"
    )
