"""Faults planted about sealing: who may open what, and when keys come."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from controllers.core.ledger.ledger import Draft
from schemas.content.sealing import NotOpened, unwrap_keys, wrap_keys
from schemas.objects.objects import ObjectKey
from schemas.records.records import DeltaHead, Profile
from schemas.records.signed_records import EncodedBody
from schemas.values.wire import replace
from tests.simulation.host import Host
from tests.simulation.model import placement_key
from tests.simulation.ports import Ports
from tests.simulation.scenes import P1, says
from tests.simulation.sealing import TREE, all_fleet_keys, content_key, wrapped


class FleetKeyInClear(Ports):
    """A profile brings the fleet key in clear, for whoever reads it."""

    def issued(self, draft: Any) -> Any:
        if not isinstance(draft.record, Profile):
            return draft
        record = replace(draft.record, fleet_key=all_fleet_keys()[0])
        return dataclasses.replace(draft, record=record)


class AnothersKey(Ports):
    """A delta brings the key as it is sealed for another placement."""

    def issued(self, draft: Any) -> Any:
        return _with_key(draft, wrapped(placement_key("another"), 0))


class KeyInClear(Ports):
    """A delta brings the key of its content in clear."""

    def issued(self, draft: Any) -> Any:
        return _with_key(draft, content_key(0).key)


class FormerKeysAlone(Ports):
    """A delta brings the key that its placement had at first, whatever came since."""

    def issued(self, draft: Any) -> Any:
        return _with_keys(draft, slice(-1, None))


class NewestKeyAlone(Ports):
    """A delta brings the newest key alone, also where something is sealed under a former one."""

    def issued(self, draft: Any) -> Any:
        return _with_keys(draft, slice(1))


class DeltasFirst(Ports):
    """Deltas need a fleet key before profiles bring it."""

    def announces_first(self) -> bool:
        return False


class UnopenedRemoved(Ports):
    """What cannot be opened any more is wanted no more."""

    def wanted(self, host: Host, honest: Mapping[ObjectKey, Any]) -> Mapping[ObjectKey, Any]:
        return {} if says(host, P1, "Sealed") else honest

    def may_prune(self, host: Host, _key: ObjectKey, *, honest: bool) -> bool:
        return honest or says(host, P1, "Sealed")


def _with_key(draft: Draft, key: bytes) -> Draft:
    if not isinstance(draft.record, DeltaHead) or draft.body is None or draft.body.value is None:
        return draft
    body = EncodedBody.of(replace(draft.body.value, key=key))
    record = replace(draft.record, body_hash=hashlib.sha256(body.data).digest())
    return dataclasses.replace(draft, record=record, body=body)


def _with_keys(draft: Draft, part: slice) -> Draft:
    """The draft of a delta that brings just these of its keys, which come newest first."""
    if not isinstance(draft.record, DeltaHead) or draft.body is None or draft.body.value is None:
        return draft
    brought = draft.body.value.key
    for fleet in all_fleet_keys():
        with suppress(NotOpened):
            keys = unwrap_keys([fleet], TREE, draft.slot, brought)[part]
            return _with_key(draft, wrap_keys(fleet, TREE, draft.slot, keys))
    return draft
