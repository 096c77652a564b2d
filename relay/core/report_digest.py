"""What each child's report slots hold, as one sum a child: so one that was lost is missed.

The child says the same sum with its heartbeat. Only slots count whose report says that something is
there: who answered "gone" has nothing more to lose.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from schemas.identity import MailKey
from schemas.records import DIGEST_MODULUS, digest_term
from schemas.reports import ObjectResult, Report, part_key
from schemas.wire import encode

PARTS_OF_CHILD_MAX, PARTS_BYTES_MAX = 4096, 64 * 1024 * 1024
"""So many later parts one child may have in all placements: what it can make its parent hold."""
RESULT_BYTES = 400
"""What a result takes besides its status: seven bytes of a message are opened to so many."""
Said = tuple[int, int]
"""Epoch and revision of a report: of one child no two reports in a slot have the same."""


def report_term(slot: str, said: Said) -> int:
    """What a report in a slot adds to the digest."""
    epoch, revision = said
    return digest_term(slot, epoch.to_bytes(8, "big") + revision.to_bytes(8, "big"))


def content_of(report: Report, results: object) -> bytes:
    """What makes a report another one; the revision and the oldest receipt alone do not."""
    said = report.summary
    counts = (said.states, said.health, said.arms)
    fields: list[object] = [sorted(count.items()) for count in counts]
    fields += [
        said.exceptions,
        said.complete,
        said.blocking,
        repr(results),
    ]
    fields += [report.generation, report.incarnation, report.answered, report.gone]
    return hashlib.sha256(encode(fields)).digest()


def size_of(results: Iterable[ObjectResult]) -> int:
    """How many bytes of memory a later part takes, about; it may be a fortieth on the wire."""
    return RESULT_BYTES + sum(RESULT_BYTES + len(item.status or b"") for item in results)


class ReportDigests:
    """The sums of all children, by their places in the fold."""

    def __init__(self) -> None:
        self._sums: dict[int, int] = {}
        self._parts: dict[int, dict[MailKey, dict[int, Said]]] = {}
        self._sizes: dict[int, dict[tuple[MailKey, int], int]] = {}
        self._totals: dict[int, int] = {}

    def of(self, place: int) -> bytes:
        """The digest of one child's reports: 16 bytes."""
        return self._sums.get(place, 0).to_bytes(16, "big")

    def replace(self, place: int, key: MailKey, former: Said | None, now: Said | None) -> None:
        """Count part 0 of a placement in place of the one before; None is a slot that says gone."""
        if former == now:
            return
        lost = report_term(key, former) if former is not None else 0
        gained = report_term(key, now) if now is not None else 0
        self._sums[place] = (self._sums.get(place, 0) + gained - lost) % DIGEST_MODULUS

    def has_room(self, place: int, key: MailKey, part: int, size: int) -> bool:
        """Whether a child that says this later part says no more than it may."""
        sizes = self._sizes.get(place, {})
        total = self._totals.get(place, 0) - sizes.get((key, part), 0) + size
        more = (key, part) not in sizes
        return total <= PARTS_BYTES_MAX and len(sizes) + more <= PARTS_OF_CHILD_MAX

    def part(self, place: int, key: MailKey, part: int, now: Said, size: int) -> None:
        """Count a later part of so many bytes in place of the one before."""
        self._resize(place, key, part, size)
        parts = self._parts.setdefault(place, {}).setdefault(key, {})
        former, parts[part] = parts.get(part), now
        self.replace(place, part_key(key, part), former, now)

    def keep_parts(self, place: int, key: MailKey, parts: int) -> None:
        """Forget the later parts of a placement beyond so many."""
        of_child = self._parts.get(place, {})
        known = of_child.get(key)
        for part in [part for part in known or () if part > parts]:
            assert known is not None
            self.replace(place, part_key(key, part), known.pop(part), None)
            self._resize(place, key, part, 0)
        if known is not None and not known:
            del of_child[key]

    def forget_child(self, place: int) -> None:
        """Forget all that a child said."""
        self._sums.pop(place, None)
        self._parts.pop(place, None)
        self._sizes.pop(place, None)
        self._totals.pop(place, None)

    def _resize(self, place: int, key: MailKey, part: int, size: int) -> None:
        sizes = self._sizes.setdefault(place, {})
        former = sizes.pop((key, part), 0)
        if size:
            sizes[key, part] = size
        self._totals[place] = self._totals.get(place, 0) - former + size
