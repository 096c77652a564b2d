"""The release of Leafcast that the tree wants here: its content for children, and who runs what."""

from __future__ import annotations

from relay.core.content.content import Content
from relay.core.content.owners import ContentOwner, OwnerKind
from schemas.content.blobs import Reference
from schemas.records.records import ReleaseRecord
from schemas.reports.running import Running, merged, of_silent
from schemas.values.identity import MailKey

AT_ONCE = 4
"""So many stretches are fetched at once, so that what placements need comes between them."""
AWAY_SECONDS = 1_800.0
"""A child that is silent for so long says no more that nodes are under way to a release."""
GATHER_SECONDS = 2.0
"""What children say of releases is gathered for so long before it is said on."""
_OWNER = ContentOwner(OwnerKind.RELEASE)


class Releases:
    """What is known of releases at one node."""

    def __init__(self, content: Content, *, passes_on: bool, wire: int) -> None:
        """An edge passes nothing on; the centre has all content before the record.

        `wire` is the version that this program speaks.
        """
        self._content = content
        self.wire = wire
        self._passes_on = passes_on
        self._records: dict[MailKey, ReleaseRecord] = {}
        # How many of the references are here.
        self._here = 0
        self._own = Running()
        self._children: dict[str, Running] = {}
        # Since when a child is silent; and those that are for long.
        self._silent: dict[str, float] = {}
        self._away: set[str] = set()
        # When what changed is to be said; None if nothing did.
        self.say_at: float | None = None

    @property
    def newest(self) -> ReleaseRecord | None:
        """The release that was chosen last."""
        return max(self._records.values(), key=lambda it: it.generation, default=None)

    @property
    def needs(self) -> int:
        """The version of the wire that records in force need, as far as releases say; 0 is any."""
        return max((it.release.needs for it in self._records.values()), default=0)

    @property
    def lacks(self) -> int:
        """The same, if this program speaks an older one; else 0."""
        return self.needs if self.wire < self.needs else 0

    def keys(self) -> tuple[MailKey, ...]:
        """Under which keys releases are in force."""
        return tuple(self._records)

    def references(self) -> tuple[Reference, ...]:
        """All content that is to be kept."""
        return tuple(it for record in self._records.values() for it in record.release.content)

    def put(self, key: MailKey, record: ReleaseRecord) -> None:
        """The tree chose it."""
        self._records[key] = record
        self._begin()

    def drop(self, key: MailKey) -> None:
        """It is in force no more: nodes keep what they run."""
        if self._records.pop(key, None) is not None:
            self._begin()

    def supplied(self) -> None:
        """What was being fetched is here."""
        self._here += AT_ONCE
        self._fetch()

    def _begin(self) -> None:
        self._content.end(_OWNER)
        self._here = 0
        self._fetch()

    def _fetch(self) -> None:
        """Have the stretches fetched for children, a few at a time."""
        record = self.newest
        if record is None or not self._passes_on or not record.release.waves:
            return
        wanted = record.release.content
        while self._here < len(wanted):
            part = wanted[self._here : self._here + AT_ONCE]
            if not self._content.begin(_OWNER, part, expand=False):
                return
            self._here += AT_ONCE

    # Who runs what.

    @property
    def own(self) -> Running:
        """The node's own word."""
        return self._own

    def running(self) -> Running:
        """Who runs what at and below this node, as it was said last."""
        return merged((self._own, *map(self.of_child, self._children)))

    def of_child(self, child: str) -> Running:
        """The same at and below a child."""
        said = self._children.get(child, Running())
        return of_silent(said) if child in self._away else said

    def stated(self, own: Running, now: float) -> bool:
        """Take the node's own word; whether it is another."""
        if own == self._own:
            return False
        self._own = own
        self.say_at = now
        return True

    def take(self, child: str, said: Running, now: float) -> bool:
        """Take what a child says; whether it is another."""
        was_away = child in self._away
        self.heard(child)
        self._away.discard(child)
        if said == self._children.get(child, Running()) and not was_away:
            return False
        self._children[child] = said
        self._say_soon(now)
        return True

    def forget(self, child: str, now: float) -> bool:
        """The child is none any more; whether the sum is another without it."""
        self.heard(child)
        self._away.discard(child)
        if self._children.pop(child, Running()) == Running():
            return False
        self._say_soon(now)
        return True

    def heard(self, child: str) -> None:
        """The child is there."""
        self._silent.pop(child, None)

    def silent(self, child: str, now: float) -> None:
        """The child is not there now."""
        said = self._children.get(child)
        if child not in self._away and said is not None and of_silent(said) != said:
            self._silent.setdefault(child, now)

    def deadline(self) -> float | None:
        """When a child is silent for long."""
        return min(self._silent.values()) + AWAY_SECONDS if self._silent else None

    def tick(self, now: float) -> bool:
        """Let go of what those said who are silent for long; whether the sum is another then."""
        gone = [child for child, since in self._silent.items() if since + AWAY_SECONDS <= now]
        for child in gone:
            del self._silent[child]
            self._away.add(child)
            self._say_soon(now)
        return bool(gone)

    def _say_soon(self, now: float) -> None:
        if self.say_at is None:
            self.say_at = now + GATHER_SECONDS

    def take_due(self, now: float) -> bool:
        """Whether what changed is to be said now; asked once."""
        due = self.say_at is not None and self.say_at <= now
        if due:
            self.say_at = None
        return due
