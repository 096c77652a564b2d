"""What a centre that lost its ledger makes of the records that its children show it.

They are its own: it believes only what it signed itself, and of each key the newest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from controllers.core.drafts import slot_of
from schemas.identity import INDEX_KEY, KEYS_KEY, MailKey
from schemas.records import DeltaHead, Record, decode_payload
from schemas.refusals import RecordRefused
from schemas.signing import Envelope, Signer, decode_envelope


@dataclass(frozen=True, slots=True)
class Recalled:
    """A record that a child showed, signed by this centre."""

    envelope: Envelope
    record: Record
    child: str

    @property
    def slot(self) -> MailKey:
        return slot_of(self.envelope.kind, self.record)


@dataclass(frozen=True, slots=True)
class Orphan:
    """A placement in force that no object of the space says.

    `here` tells that it belongs to the space that the centre reads now, not to another one.
    """

    key: MailKey
    name: str
    space: str
    generation: int
    here: bool


def read_recalled(data: bytes, child: str, root: Signer, signing: Signer) -> Recalled | None:
    """What a child shows, if these keys of the centre signed it; None for anything else."""
    try:
        envelope = decode_envelope(data)
        record = decode_payload(envelope.kind, envelope.payload)
    except RecordRefused:
        return None
    signer = root if envelope.kind == "keys" else signing
    if envelope.key_id != signer.key_id or not envelope.verify(signer.tree, signer.public_key):
        return None
    return Recalled(envelope, record, child)


def newest_index(recalled: Iterable[Recalled]) -> int:
    """The generation of the newest index shown; 0 if none is."""
    return max((i.record.generation for i in recalled if i.slot == INDEX_KEY), default=0)


def highest(recalled: Iterable[Recalled]) -> int:
    """The highest generation that the children show; what is issued next lies above it."""
    return max((item.record.generation for item in recalled), default=0)


def missing(recalled: Iterable[Recalled], ledger: Mapping[MailKey, Record]) -> list[Recalled]:
    """Of each key the newest, where the ledger has none or an older one, by generation.

    The index and the keys are not among them: both are issued anew. A bare delta, without its
    body, gives way to the same with it.
    """
    found: dict[MailKey, Recalled] = {}
    for item in recalled:
        if item.slot in (INDEX_KEY, KEYS_KEY):
            continue
        known, there = ledger.get(item.slot), found.get(item.slot)
        if known is not None and known.generation >= item.record.generation:
            continue
        if there is None or _rank(there) < _rank(item):
            found[item.slot] = item
    return sorted(found.values(), key=lambda item: item.record.generation)


def orphans(
    records: Mapping[MailKey, Record],
    space: str,
    names: Iterable[str],
    others: Collection[str] = (),
) -> tuple[Orphan, ...]:
    """The placements in force that none of these names of this space stands for, by name.

    Those of `others` are other spaces' to judge.
    """
    there = frozenset(names)
    found = [
        Orphan(key, r.source.name, r.source.space, r.generation, r.source.space == space)
        for key, r in records.items()
        if isinstance(r, DeltaHead) and not r.deleted
        if (r.source.space != space and r.source.space not in others)
        or (r.source.space == space and r.source.name not in there)
    ]
    return tuple(sorted(found, key=lambda orphan: (orphan.name, orphan.space)))


def _rank(item: Recalled) -> tuple[int, bool]:
    return item.record.generation, item.envelope.body is not None
