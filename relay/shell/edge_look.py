"""Which placements may stand otherwise at an edge after a batch, so that few are looked at."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from relay.core.effects import Effect, SendReport, StoreOwn, WantsChanged
from relay.core.events import Event, ObjectObserved
from relay.core.view import NodeView
from schemas.values.identity import MailKey

_KEY_CHARACTERS = 32


def placement_key(key: str) -> MailKey:
    """The placement that a report is of, by the key of the report."""
    return MailKey(key[:_KEY_CHARACTERS])


class Touched:
    """Placements; the summary of each is made once, if it is asked for."""

    __slots__ = ("keys", "summary")

    def __init__(self, keys: Iterable[MailKey], view: NodeView) -> None:
        self.keys = frozenset(keys)
        self.summary = cache(view.summary)


class EdgeLook:
    """Follows the batches of one edge."""

    def __init__(self) -> None:
        # Their wants changed with the last batch: no object can be as they want it within that.
        self._later: set[MailKey] = set()

    def after(self, events: Iterable[Event], effects: Iterable[Effect], view: NodeView) -> Touched:
        """Those that may stand otherwise after a batch."""
        touched, received, wants_other = self._later, set[MailKey](), False
        for event in events:
            if isinstance(event, ObjectObserved):
                wanted = view.wanted.get(event.key)
                touched.update(map(MailKey, wanted.placements if wanted is not None else ()))
        for effect in effects:
            if isinstance(effect, StoreOwn) and effect.hops:
                received.add(MailKey(effect.key))
            elif isinstance(effect, SendReport):
                touched.add(placement_key(effect.key))
            elif isinstance(effect, WantsChanged):
                wants_other = True
        self._later = received - touched if wants_other else set()
        return Touched(touched if wants_other else touched | received, view)
