"""Faults planted about keys: one for each rule that the lives of `lives_keys` are about."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from relay.core.effects import Effect, WriteMail
from relay.core.events import Event, MailArrived
from schemas.identity import KEYS_KEY
from schemas.objects import ObjectKey
from schemas.records import KeyGrant, KeysRecord
from schemas.roots import bare_keys, keys_record
from schemas.signing import decode_envelope
from schemas.wire import INT_MAX, replace
from tests.simulation.host import Host
from tests.simulation.ports import Ports

EVERYTHING = ("delta", "profile", "location", "node", "snapshot", "ask")


class NoForerunners(Ports):
    """A relay passes the newest keys on without those that changed the roots before."""

    def said(self, _host: Host, effect: Effect) -> list[Effect]:
        if not isinstance(effect, WriteMail) or effect.key != KEYS_KEY:
            return [effect]
        data = bare_keys(decode_envelope(effect.data)).encode()
        return [dataclasses.replace(effect, data=data)]


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
