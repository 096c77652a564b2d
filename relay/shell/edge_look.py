"""Which placements may stand otherwise at an edge after a batch, so that few are looked at."""

from __future__ import annotations

from collections.abc import Iterable

from relay.core.view import NodeView
from relay.shell.batch_news import BatchNews
from schemas.reports.reports import Summary
from schemas.values.identity import MailKey


class Touched:
    """Placements; the summary of each is made once, if it is asked for."""

    __slots__ = ("_made", "_view", "keys")

    def __init__(self, keys: Iterable[MailKey], view: NodeView) -> None:
        self.keys = frozenset(keys)
        self._view = view
        self._made: dict[MailKey, Summary] = {}

    def summary(self, key: MailKey) -> Summary:
        """What became of one of them."""
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = self._view.summary(key)
        return made


class EdgeLook:
    """Follows the batches of one edge."""

    def __init__(self) -> None:
        # Their wants changed with the last batch: no object can be as they want it within that.
        self._later: set[MailKey] = set()

    def after(self, news: BatchNews, view: NodeView) -> Touched | None:
        """Those that may stand otherwise after a batch; None if none do."""
        touched = self._later
        if news.is_empty and not touched:
            return None
        for event in news.observed:
            wanted = view.wanted.get(event.key)
            if wanted is not None:
                touched.update(map(MailKey, wanted.placements))
        received = set(news.received)
        touched.update(news.reported)
        self._later = received - touched if news.wants_other else set()
        return Touched(touched if news.wants_other else touched | received, view)
