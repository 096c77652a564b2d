"""Removals that follow from an edit, and that are large, wait for a person's word.

Nobody named what goes: a selector or a label says something else, and much is not meant any more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from controllers.core.inventory.make_before_break import is_hold
from controllers.core.ledger.destination_counts import SelectedDestinations
from controllers.core.ledger.weighing import Confirmations, Loss
from relay.objects.stored_object import timestamp
from schemas.identity import MailKey
from schemas.placements import short_title
from schemas.records import Alternative


@dataclass(slots=True)
class Brake:
    """Which placements of one space hold what an edit takes of them, since when, and for how long.

    Who starts again counts anew: a removal never goes sooner for that.
    """

    confirmed: Confirmations = field(default_factory=Confirmations)
    # By name: what is held, and since when, in ms since 1970.
    held: dict[str, tuple[Loss, int]] = field(default_factory=dict)
    # When what is held goes by itself.
    due: dict[str, int] = field(default_factory=dict)
    # Holds nothing that was not held before: a change is tried, and is to be told whole.
    tries: bool = False
    _accepted: set[str] = field(default_factory=set)

    def trial(self) -> Brake:
        """The same of its own, to try a change on."""
        return Brake(held=dict(self.held), tries=True)

    def accept(self, name: str) -> None:
        """Let go what is held of a placement now."""
        if name in self.held:
            self._accepted.add(name)

    def let_go(self, name: str) -> None:
        """Take it that nothing of a placement is to be held."""
        self.held.pop(name, None)
        self.due.pop(name, None)
        self._accepted.discard(name)

    def holds(self, name: str, key: MailKey, loss: Loss, grace: float | None, now_ms: int) -> bool:
        """Whether a loss waits; `grace` says for how many seconds, None until it is accepted."""
        known = self.held.get(name)
        if self.tries:
            return known is not None and known[0] == loss
        accepted = name in self._accepted and known is not None
        self._accepted.discard(name)
        lets_go = accepted and known is not None and loss.copies <= known[0].copies
        if not loss.is_large or grace == 0 or lets_go:
            self.let_go(name)
            return False
        if self.confirmed.covers(key, loss.copies, now_ms):
            self.let_go(name)
            return False
        # What grows is another removal: nobody knew of it when the time began.
        since = known[1] if known is not None and loss.copies <= known[0].copies else now_ms
        if grace is not None and now_ms >= since + grace * 1000:
            self.let_go(name)
            return False
        self.held[name] = loss, since
        self.due.pop(name, None)
        if grace is not None:
            self.due[name] = since + int(grace * 1000)
        return True

    def message(self, name: str) -> str:
        """What is held, and what to do."""
        due = self.due.get(name)
        until = f"; it goes by itself at {timestamp(due)}" if due is not None else ""
        return held_text(name, self.held[name][0]) + until


def held_text(name: str, loss: Loss) -> str:
    """That an edit takes so much of a placement, and what to do."""
    remedy = f"put the edit back, or let them go with `leafcast accept {short_title(name)}`"
    return f"an edit takes away {loss}; {remedy}"


def kept_alternatives(
    inventory: SelectedDestinations,
    before: Iterable[Alternative],
    wanted: tuple[Alternative, ...],
) -> tuple[Alternative, ...]:
    """Who is meant no more by what is wanted, and keeps it: of `before` no more than is needed."""
    covered = inventory.destinations(wanted)
    kept: list[Alternative] = []
    for each in before:
        if each in wanted or is_hold(each):
            continue
        more = inventory.destinations((each,)) - covered
        if more:
            kept.append(each)
            covered |= more
    return tuple(kept)
