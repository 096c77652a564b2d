"""Kinds of which a space shows nothing now: what placements may select of them, nobody knows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from controllers.core.workloads.missing_references import UNKNOWN_KIND
from controllers.core.workloads.selection import Rules
from schemas.objects.objects import GroupResource, kind_name
from schemas.records.hold_reasons import KIND_UNREADABLE

NOT_LISTED = "KindNotListed"
KINDS_LACKED = frozenset({UNKNOWN_KIND, KIND_UNREADABLE, NOT_LISTED})
"""What a placement lacks whose kind is not served, or not read."""
FORBIDDEN, UNAUTHORIZED, UNAVAILABLE = "Forbidden", "Unauthorized", "ServiceUnavailable"

Namespaces = Mapping[str, Mapping[str, str]]
"""The labels of each Namespace."""


@dataclass(frozen=True, slots=True)
class UnreadKind:
    """Why a kind is not shown: a word and a text of the space; none if it is not listed yet."""

    namespaced: bool
    reason: str = ""
    message: str = ""
    # Whether it was shown before.
    was_listed: bool = False
    # The Namespaces in which it was seen that there is none of it.
    empty: frozenset[str] = frozenset()

    @property
    def stands_still(self) -> bool:
        """Whether nothing can have changed since it was shown: who serves it is away."""
        return self.was_listed and self.reason == UNAVAILABLE


def hidden(
    kinds: Mapping[GroupResource, UnreadKind],
    rules: Rules,
    selected: AbstractSet[GroupResource],
    namespaces: Namespaces,
) -> Iterator[tuple[str, str]]:
    """What a placement may select of these and nobody can see: a word and a text for each kind.

    `selected` are the kinds of what is known that it selects.
    """
    for kind, unread in sorted(kinds.items()):
        concerned = kind in selected
        if not concerned and not unread.stands_still:
            concerned = may_reach(rules, kind, unread, namespaces)
        if concerned:
            yield (KIND_UNREADABLE if unread.reason else NOT_LISTED), text(kind, unread)


def may_reach(
    rules: Rules, kind: GroupResource, unread: UnreadKind, namespaces: Namespaces
) -> bool:
    """Whether a placement selects objects of a kind in a place where there may be one."""
    reaching = [
        clause
        for clause in rules.clauses
        if clause.reach.covers(*kind, namespaced=unread.namespaced)
    ]
    if not unread.namespaced or not namespaces:
        return bool(reaching)
    others = [name for name in namespaces if name not in unread.empty]
    return any(
        clause.admits_namespace(name, namespaces[name]) for clause in reaching for name in others
    )


def narrowed_to(
    rules: Iterable[Rules], kind: GroupResource, unread: UnreadKind, namespaces: Namespaces
) -> frozenset[str]:
    """The Namespaces to which clauses narrow down where they select objects of a kind."""
    clauses = [
        clause
        for each in rules
        for clause in each.clauses
        if (clause.namespaces or clause.namespace_selectors)
        and clause.reach.covers(*kind, namespaced=unread.namespaced)
    ]
    return frozenset(
        name
        for name, labels in namespaces.items()
        if any(clause.admits_namespace(name, labels) for clause in clauses)
    )


def text(kind: GroupResource, unread: UnreadKind) -> str:
    """Why a kind is not seen, in the words of the space first, and what to do."""
    name = kind_name(*kind)
    if not unread.reason:
        return f"{name} are not listed yet"
    said = unread.message.removesuffix(".")
    remedy = _remedy(name, unread)
    left = f"; {remedy}" if remedy not in said else ""
    return f"{said}; so {name} cannot be read: what was sent of it stays{left}"


def _remedy(name: str, unread: UnreadKind) -> str:
    if unread.reason in (FORBIDDEN, UNAUTHORIZED):
        return "let the centre get, list and watch it, or name other resources"
    if unread.reason == UNAVAILABLE:
        return "see kubectl get apiservices"
    if "conversion webhook" in unread.message:
        return "let the webhook answer, or store all of it in one version that is served"
    return f"see kubectl get {name} -A"
