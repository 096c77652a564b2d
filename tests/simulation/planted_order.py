"""Faults planted in what waits for what, and in moves."""

from __future__ import annotations

from dataclasses import replace as replaced
from hashlib import sha256
from typing import Any

from controllers.core.inventory.make_before_break import holds_in
from schemas.records.records import Dependency
from schemas.records.signed_records import EncodedBody
from schemas.values.wire import replace
from tests.simulation.ports import Ports


class OldContentCounts(Ports):
    """A dependency is met by whatever content the other has, an older one too."""

    def issued(self, draft: Any) -> Any:
        return _waiting(draft, lambda each: replace(each, generation=0))


class WaitForNothing(Ports):
    """Nothing says what it waits for."""

    def issued(self, draft: Any) -> Any:
        return _waiting(draft, lambda _each: None)


class WaitEverywhere(Ports):
    """A dependency is waited for also where it is not meant."""

    def issued(self, draft: Any) -> Any:
        meant = "location", "synctarget"
        return _waiting(draft, lambda each: replace(each, alternatives=_everyone(each, meant)))


class BreakBeforeMake(Ports):
    """Who loses a placement by a label loses it at once."""

    def issued(self, draft: Any) -> Any:
        held = holds_in(draft.record)
        if not held:
            return draft
        labels = {k: v for k, v in draft.record.labels.items() if not k.startswith("held.")}
        return replaced(draft, record=replace(draft.record, labels=labels))


def _everyone(each: Dependency, overs: tuple[str, ...]) -> Any:
    one = each.alternatives[0]
    return tuple(replace(one, over=over, selector=type(one.selector)()) for over in overs)


def _waiting(draft: Any, change: Any) -> Any:
    """The draft of a delta with its dependencies changed; None leaves one out."""
    if draft.kind != "delta" or draft.body is None:
        return draft
    body = draft.body.value
    if not body.after:
        return draft
    after = tuple(said for each in body.after if (said := change(each)) is not None)
    encoded = EncodedBody.of(replace(body, after=after))
    record = replace(draft.record, body_hash=sha256(encoded.data).digest())
    return replaced(draft, record=record, body=encoded)
