"""Faults planted in the relay on purpose: a simulation that does not find them proves nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relay.core import inbox, node, reporting, state, trust
from relay.core.mailboxes import Supply

Patch = tuple[object, str, Any]


def ignore_generation() -> Patch:
    """Take whatever comes, also what is older than what is held."""
    return inbox, "_against", lambda held, _known: inbox.Take(held)


def accept_unsigned() -> Patch:
    """Believe every signature."""
    return trust.Trust, "judge", lambda *_: trust.Verdict.BELIEVED


def prune_on_absence() -> Patch:
    """Let the syncer remove what is not wanted at the moment, whatever is pending."""
    return node.Node, "may_prune", property(lambda _self: True)


def count_twice() -> Patch:
    """Count a node's own destination with its children's, and once more."""
    honest = reporting.Reporting.summary
    twice = reporting.reduce.merge

    def summary(self: reporting.Reporting, key: Any, own: Any) -> Any:
        return twice(honest(self, key, own), own)

    return reporting.Reporting, "summary", summary


def delta_before_blobs() -> Patch:
    """Send a delta on before its content is here."""
    return state.State, "supply", lambda *_: Supply.HERE


def complete_too_early() -> Patch:
    """Hold a summary complete though a child has not answered for what it was sent."""
    honest = state.State.facts

    def facts(self: state.State, child: str, key: Any) -> Any:
        return honest(self, child, key)._replace(bearing=0)

    return state.State, "facts", facts


MUTANTS: tuple[tuple[Callable[[], Patch], str], ...] = (
    (ignore_generation, "No resurrection"),
    (accept_unsigned, "Only signed, only mine"),
    (prune_on_absence, "No deletion from ignorance"),
    (count_twice, "Exactly once counting"),
    (delta_before_blobs, "Content before its delta"),
    (complete_too_early, "Exactly once counting"),
)
