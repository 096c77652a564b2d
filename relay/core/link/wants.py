"""What a node asks its parent for: what is in force and missing here, or to a child."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from relay.core.link.children import Children
from relay.core.records.book import RecordBook
from relay.core.records.judge import SnapshotJudge
from relay.core.records.snapshot import ListedAt, UnreadBlobs
from schemas.records.snapshots import EntryKey, mail_entry_key
from schemas.reports.link import WANTS_MAX
from schemas.values.identity import MailKey
from schemas.values.refusals import CodecError


class Wants:
    """Deltas and Locations that the newest snapshot lists above what is held."""

    def __init__(self, book: RecordBook, judge: SnapshotJudge, children: Children) -> None:
        self._book = book
        self._judge = judge
        self._children = children

    def current(self) -> set[MailKey]:
        """What is missing here, or to a child that is there."""
        outdated = dict(self._judge.standings.outdated)
        candidate = self._judge.candidate
        if candidate is not None and candidate.standings is not None:
            outdated |= candidate.standings.outdated
        wanted = {key for key in outdated if self._may_be_wanted(key)}
        return wanted.union(key for key in self._below() if self._lacks(key))

    def places_below(self) -> Iterator[EntryKey]:
        """Where a snapshot would list what children want."""
        return filter(None, map(_place_of, self._below()))

    def lack_listing(self) -> bool:
        """Whether a child wants what a part of the snapshot speaks of that was not read."""
        listed = map(self._judge.listing, self.places_below())
        return any(isinstance(found, UnreadBlobs) for found in listed)

    def _below(self) -> Iterator[MailKey]:
        """What children in session want, as much as one hello may name."""
        return islice(self._children.wants(), WANTS_MAX)

    def _lacks(self, key: MailKey) -> bool:
        """Whether the snapshot surely lists a newer version than is held."""
        held, place = self._book.get(key), _place_of(key)
        found = self._judge.listing(place) if place else None
        above = held.generation if held is not None else 0
        return isinstance(found, ListedAt) and found.generation > above

    def _may_be_wanted(self, key: MailKey) -> bool:
        held = self._book.get(key)
        if held is None:
            return False
        return held.kind in ("delta", "location")


def _place_of(key: MailKey) -> EntryKey | None:
    """Where a snapshot would list what a child names; None if it names nothing."""
    try:
        return mail_entry_key(key)
    except (CodecError, ValueError):
        return None
