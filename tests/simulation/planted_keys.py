"""Faults planted about keys: one for each rule that the lives of `lives_keys` are about."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from relay.core.effects import AddChild, Effect, WriteMail
from relay.core.events import Event, MailArrived
from schemas.content.sealing import KEY_BYTES
from schemas.objects.objects import ObjectKey
from schemas.records.records import KeyGrant, KeysRecord, NodeRecord, Profile
from schemas.records.roots import (
    bare_keys,
    forerunners_of,
    keys_envelope,
    keys_record,
    signatures_of,
)
from schemas.records.signing import Envelope, decode_envelope
from schemas.values.identity import KEYS_KEY, NodePath
from schemas.values.wire import INT_MAX, replace
from tests.simulation.host import Host
from tests.simulation.ports import Ports

EVERYTHING = ("delta", "profile", "location", "node", "snapshot", "ask")


class NoForerunners(Ports):
    """A relay passes the newest keys on without those that changed the roots before."""

    def said(self, _host: Host, effect: Effect) -> list[Effect]:
        if not isinstance(effect, WriteMail) or effect.key != KEYS_KEY:
            return [effect]
        data = bare_keys(decode_envelope(effect.data)).encode()
        return [replace(effect, data=data)]


class OwnRootsAlone(Ports):
    """A change of roots comes without the word of those before: who follows it believes anyone."""

    def said(self, _host: Host, effect: Effect) -> list[Effect]:
        return [_signed(effect, former=False)]


class FormerRootsAlone(Ports):
    """A change of roots comes without the word of the new ones: nobody may have their keys."""

    def said(self, _host: Host, effect: Effect) -> list[Effect]:
        return [_signed(effect, former=True)]


def _signed(effect: Effect, *, former: bool) -> Effect:
    """The mail of keys, each change of roots with the signatures of one side alone."""
    if not isinstance(effect, WriteMail) or effect.key != KEYS_KEY:
        return effect
    whole = decode_envelope(effect.data)
    parts = [_one_sided(part, former=former) for part in (*forerunners_of(whole), whole)]
    said = keys_envelope(whole.payload, signatures_of(parts[-1]), parts[:-1])
    return replace(effect, data=said.encode())


def _one_sided(envelope: Envelope, *, former: bool) -> Envelope:
    own = {root.key_id for root in keys_record(envelope).roots}
    signatures = signatures_of(envelope)
    left = {key: it for key, it in signatures.items() if (key not in own) is former}
    return keys_envelope(envelope.payload, left or signatures)


class RevokedBelieved(Ports):
    """The keys that name a revoked key are not heeded."""

    def heard(self, _host: Host, event: Event) -> list[Event]:
        if isinstance(event, MailArrived) and event.key == KEYS_KEY:
            record = keys_record(decode_envelope(event.data))
            if any(grant.is_revoked for grant in record.grants):
                return []
        return [event]


class NeverEnds(Ports):
    """A key that is rotated away goes on being granted for all that comes."""

    def keys(self, record: KeysRecord) -> KeysRecord:
        grants = tuple(self._lasting(grant) for grant in record.grants)
        return replace(record, grants=grants)

    def _lasting(self, grant: KeyGrant) -> KeyGrant:
        return grant if grant.is_revoked else replace(grant, last=INT_MAX)


class StillGranted(Ports):
    """A key that is revoked goes on being granted."""

    def keys(self, record: KeysRecord) -> KeysRecord:
        grants = tuple(
            replace(grant, kinds=EVERYTHING, last=INT_MAX) if grant.is_revoked else grant
            for grant in record.grants
        )
        return replace(record, grants=grants)


class VoidKeyKept(Ports):
    """A parent lets a child in by each key that the child ever had."""

    def __init__(self) -> None:
        self._known: dict[NodePath, set[str]] = {}

    def said(self, _host: Host, effect: Effect) -> list[Effect]:
        if not isinstance(effect, AddChild):
            return [effect]
        known = self._known.setdefault(effect.path, set())
        known.update(effect.nkey.split())
        return [replace(effect, nkey=" ".join(sorted(known)))]


class NextKeyAtOnce(Ports):
    """The next key of a node takes the place of the old one before the node uses it."""

    def issued(self, draft: Any) -> Any:
        if not isinstance(draft.record, NodeRecord):
            return draft
        record = replace(draft.record, nkey=draft.record.nkey.split()[-1])
        return dataclasses.replace(draft, record=record)


class BoxForOneKey(Ports):
    """The fleet key is sealed to one key of a node alone, whichever it uses."""

    def issued(self, draft: Any) -> Any:
        record = draft.record
        if not isinstance(record, Profile) or len(record.public_key) <= KEY_BYTES:
            return draft
        size = len(record.fleet_key) * KEY_BYTES // len(record.public_key)
        public_key, fleet_key = record.public_key[:KEY_BYTES], record.fleet_key[:size]
        record = replace(record, public_key=public_key, fleet_key=fleet_key)
        return dataclasses.replace(draft, record=record)


class ForgottenWithKey(Ports):
    """An edge wants nothing any more of what a key signed that ended."""

    def wanted(self, host: Host, honest: Mapping[ObjectKey, Any]) -> Mapping[ObjectKey, Any]:
        own = {k: decode_envelope(it.data) for k, it in host.streams.own.items() if k != "_cursor"}
        if KEYS_KEY not in own:
            return honest
        grants = keys_record(own[KEYS_KEY]).grants
        ended = {grant.key_id for grant in grants if "ask" not in grant.kinds}
        kept = {key for key, it in own.items() if it.kind != "delta" or it.key_id not in ended}
        return {key: wish for key, wish in honest.items() if kept.intersection(wish.placements)}

    def may_prune(self, host: Host, key: ObjectKey, *, honest: bool) -> bool:
        wanted = host.node.wanted if host.node is not None else {}
        return honest or (key in wanted and key not in self.wanted(host, wanted))
