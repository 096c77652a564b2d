"""What a batch led to of which those take note who follow changes: it is walked once for them."""

from __future__ import annotations

from collections.abc import Iterable

from relay.core.effects import Effect, SendReport, StoreOwn, WantsChanged, WriteMail
from relay.core.events import BlobArrived, Event, ObjectObserved, RecordIssued, ReportArrived
from schemas.values.identity import MailKey

_KEY_CHARACTERS = 32


def placement_key(key: str) -> MailKey:
    """The placement that a report is of, by the key of the report."""
    return MailKey(key[:_KEY_CHARACTERS])


class BatchNews:
    """Each kind in the order in which it came; most batches have nothing of any of them."""

    __slots__ = (
        "blob_came",
        "heard",
        "is_empty",
        "issued",
        "observed",
        "received",
        "reported",
        "wants_other",
        "written",
    )

    def __init__(self, events: Iterable[Event], effects: Iterable[Effect]) -> None:
        self.issued: list[RecordIssued] = []
        self.heard: list[ReportArrived] = []
        self.observed: list[ObjectObserved] = []
        self.blob_came = self.wants_other = False
        # Records that came from the parent, mail with all of a record, and of whom was reported.
        self.received: list[MailKey] = []
        self.written: list[WriteMail] = []
        self.reported: dict[MailKey, None] = {}
        self._take_events(events)
        self._take_effects(effects)
        self.is_empty = not (
            self.received
            or self.written
            or self.reported
            or self.heard
            or self.observed
            or self.issued
            or self.blob_came
            or self.wants_other
        )

    def _take_events(self, events: Iterable[Event]) -> None:
        for event in events:
            if isinstance(event, ReportArrived):
                self.heard.append(event)
            elif isinstance(event, ObjectObserved):
                self.observed.append(event)
            elif isinstance(event, RecordIssued):
                self.issued.append(event)
            elif isinstance(event, BlobArrived):
                self.blob_came = True

    def _take_effects(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, StoreOwn):
                if effect.hops:
                    self.received.append(MailKey(effect.key))
            elif isinstance(effect, WriteMail):
                if effect.has_body and effect.hops:
                    self.written.append(effect)
            elif isinstance(effect, SendReport):
                self.reported[placement_key(effect.key)] = None
            elif isinstance(effect, WantsChanged):
                self.wants_other = True
