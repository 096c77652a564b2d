"""What a destination brings up: the clauses of its placements, and what of them is amiss."""

from __future__ import annotations

from collections.abc import Iterable

from relay.core.events import UpsyncObserved
from schemas.reports.reports import ExceptionSample
from schemas.reports.upsync import UpsyncClause
from schemas.values.identity import MailKey

REASON_MAX_CHARACTERS = 200
SECRETS_LEFT_OUT = "Secrets stay: `*` does not bring them up; name secrets in spec.upsync.resources"


class UpsyncWishes:
    """The clauses in force, by placement; what was said of objects that they name."""

    def __init__(self) -> None:
        self._by_placement: dict[MailKey, tuple[UpsyncClause, ...]] = {}
        self._observed = UpsyncObserved()
        self.clauses: frozenset[UpsyncClause] = frozenset()
        # Whether the clauses changed since they were last told.
        self.is_news = False

    @property
    def observed(self) -> UpsyncObserved:
        """The last word of who carries it out."""
        return self._observed

    @property
    def in_use(self) -> bool:
        """Whether anything comes up."""
        return bool(self._by_placement)

    def put(self, key: MailKey, clauses: tuple[UpsyncClause, ...]) -> None:
        """Take what a placement brings up; nothing of one that is gone."""
        if self._by_placement.get(key, ()) == clauses:
            return
        self._by_placement.pop(key, None)
        if clauses:
            self._by_placement[key] = clauses
        before = self.clauses
        self.clauses = frozenset(each for listed in self._by_placement.values() for each in listed)
        self.is_news = self.is_news or self.clauses != before

    def take_news(self) -> bool:
        """Whether they changed since this was asked last."""
        news, self.is_news = self.is_news, False
        return news

    def observe(self, event: UpsyncObserved) -> Iterable[MailKey]:
        """Take a word on what came up; the placements whose report it changes."""
        before, self._observed = self._observed, event
        if (before.faults, before.unserved) == (event.faults, event.unserved):
            return ()
        return list(self._by_placement)

    def samples(self, key: MailKey, path: str) -> list[ExceptionSample]:
        """What of a placement does not come up, the worst first: 0 is a failure, 2 a remark."""
        clauses = self._by_placement.get(key, ())
        found = [
            ExceptionSample(0, str(fault.key), fault.reason[:REASON_MAX_CHARACTERS], 1, path)
            for fault in self._observed.faults
            if any(clause.matches(fault.key) for clause in clauses)
        ]
        found += [
            ExceptionSample(2, kind.text, kind.reason[:REASON_MAX_CHARACTERS], 1, path)
            for kind in self._observed.unserved
            if any(clause.admits_kind(kind.group, kind.resource) for clause in clauses)
        ]
        if any(clause.leaves_secrets_out for clause in clauses):
            found.append(ExceptionSample(2, "", SECRETS_LEFT_OUT, 1, path))
        return found
