"""Where content goes that has come: to whoever waits for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from relay.core.content.owners import ContentOwner, OwnerKind
from relay.core.events import BlobArrived
from relay.core.rooms import Rooms


class ContentRouter:
    """Goes on with each owner whose content is all here, and says whose cannot be had."""

    def __init__(self, rooms: Rooms, take_snapshots: Callable[[], None]) -> None:
        """`take_snapshots` reads on in snapshots; the centre, which signs them, reads none."""
        self._clock = rooms.clock
        self._book = rooms.book
        self._audience = rooms.audience
        self._content = rooms.content
        self._children = rooms.children
        self._reports = rooms.reports
        self._collected = rooms.collected
        self._destination = rooms.destination
        self._releases = rooms.releases
        self._take_snapshots = take_snapshots

    def arrived(self, event: BlobArrived) -> None:
        """Take the answer to a LoadBlob."""
        for owner in self._content.arrived(event, self._clock().seconds):
            self._go_on(owner)
        for owner in self._content.take_troubled():
            if owner.key:
                self._reports.touch(owner.key)
            if owner.key in self._book.gated:
                # Whoever is not sent a step of a rollout is pending then.
                for name in self._audience.concerned(owner.key):
                    self._reports.refresh(name, owner.key)

    def _go_on(self, owner: ContentOwner) -> None:
        kind, key, destination = owner.kind, owner.key, self._destination
        match kind:
            case OwnerKind.SNAPSHOTS:
                self._take_snapshots()
            case OwnerKind.MAILBOXES:
                self._children.supplied(key)
            case OwnerKind.PROGRAMS:
                self._collected.programs_ready(key)
            case OwnerKind.COLLECTED:
                self._collected.objects_ready(key)
            case OwnerKind.RELEASE:
                self._releases.supplied()
            case OwnerKind.DESTINATION:
                assert destination is not None
                destination.content_ready(key)
                self._reports.touch(key)
            case OwnerKind.HEALTH_RULES:
                assert destination is not None
                destination.health.supplied(key)
            case _:
                assert_never(kind)
