"""What a syncer follows of its space, kind by kind, and of which objects it can act on now.

A kind is followed as a whole. Where that is forbidden, it is followed in each namespace that its
objects are in, and Namespaces one by one, by their names: an edge may have rights in few.
"""

from __future__ import annotations

from collections.abc import Collection

from relay.space_port import Interest, Interests, Kind, KindsServed, Synced, Unserved
from relay.syncer.object_marks import any_trees
from schemas.objects.objects import NAMESPACES, ObjectKey
from schemas.reports.missing_rights import FORBIDDEN, reported

KindName = tuple[str, str]
Scope = tuple[str, str, str]
"""A kind, and the namespace (of a Namespace, the name) of which alone is told; "" for all of it."""


class WatchedKinds:
    """The kinds that objects of ours are of: which are served, listed, or out of reach."""

    def __init__(self) -> None:
        self.interests = Interests(())
        self.begun = False
        self._lost = ""
        self._silence = ""
        self._selector = any_trees()
        self._served: dict[KindName, Kind] = {}
        self._keys: Collection[ObjectKey] = ()
        # Those that may not be followed as a whole.
        self._narrowed: set[KindName] = set()
        self._synced: set[Scope] = set()
        self._unserved: dict[Scope, str] = {}
        self._since: dict[Scope, str] = {}

    def want(self, keys: Collection[ObjectKey]) -> None:
        """Follow the kinds of these objects, and no others."""
        self._keys = keys
        kinds = {key.group_resource for key in keys}
        scopes: set[Scope] = {(*kind, "") for kind in kinds - self._narrowed}
        if self._narrowed:
            scopes |= {self.scope(key) for key in keys if key.group_resource in self._narrowed}
        self.interests.set(map(self._interest, scopes))

    def scope(self, key: ObjectKey) -> Scope:
        """The part of its kind by which an object is told of."""
        kind = key.group_resource
        if kind not in self._narrowed:
            return (*kind, "")
        return (*kind, key.name if kind == NAMESPACES else key.namespace)

    @property
    def synced(self) -> bool:
        """Whether all that is followed was told of, and is within reach."""
        scopes = {scope_of(item) for item in self.interests.wanted or ()}
        return self.begun and scopes <= self._synced and not any(map(self._trouble, scopes))

    def serves(self, served: KindsServed) -> set[KindName]:
        """Take what the space serves now; the kinds that came or changed."""
        now = {kind.group_resource: kind for kind in served.kinds}
        changed = {name for name, kind in now.items() if self._served.get(name) != kind}
        self._served = now
        return changed

    def listed(self, scope: Scope) -> bool:
        """It is told of; whether it was out of reach before."""
        self._since.pop(scope, None)
        return self._unserved.pop(scope, None) is not None

    def unserved(self, told: Unserved, now: str) -> Scope:
        """Note what cannot be told of now, for people, or what it is to be followed by instead."""
        scope = scope_of(told.interest)
        kind = told.interest.group_resource
        if told.reason == FORBIDDEN and not scope[2] and self._may_be_narrowed(kind):
            self._narrowed.add(kind)
            self.want(self._keys)
            return scope
        since = self._since.setdefault(scope, now)
        self._unserved[scope] = f"{reported(told.reason, told.message)}; since {since}"
        return scope

    def has_status(self, key: ObjectKey) -> bool:
        """Whether somebody is to write the status of such an object, as far as known."""
        kind = self._served.get(key.group_resource)
        return kind is not None and kind.has_status

    def unready(self) -> str:
        """What keeps the space, or a kind of it, from being told of; "" if nothing does."""
        if not self.begun:
            return "it is not read yet"
        scopes = sorted(scope_of(item) for item in self.interests.wanted or ())
        return next(filter(None, map(self._trouble, scopes)), "")

    def lose(self, why: str) -> None:
        """Another space answers: nothing may be done to it, until the one that was does again."""
        # Whether that one answers is told anew.
        self._lost, self._silence = why, ""

    def silence(self, why: str) -> bool:
        """Take it why nobody answers, "" if somebody does; whether that is news."""
        before, self._silence = self._silence, why
        return before != why

    def told_all(self, synced: Synced) -> set[Scope]:
        """What may be acted on from now on."""
        now = {scope_of(item) for item in synced.wanted or ()}
        fresh, self._synced = now - self._synced, now
        if self._lost:
            self._lost, fresh = "", now
        self.begun = True
        return fresh

    def may_act(self, key: ObjectKey) -> bool:
        """Whether an object can be applied now; one whose kind is not served is told by trying."""
        scope = self.scope(key)
        return scope in self._synced and not self._trouble(scope)

    def trouble(self, key: ObjectKey) -> str:
        """What keeps a kind that is served out of reach, or its part; "" if nothing does."""
        return self._trouble(self.scope(key))

    def _may_be_narrowed(self, kind: KindName) -> bool:
        return kind == NAMESPACES or any(
            key.namespace for key in self._keys if key.group_resource == kind
        )

    def _interest(self, scope: Scope) -> Interest:
        group, resource, part = scope
        if (group, resource) == NAMESPACES:
            return Interest(group, resource, self._selector, name=part)
        return Interest(group, resource, self._selector, namespace=part)

    def _trouble(self, scope: Scope) -> str:
        is_served = scope[:2] in self._served or not self._served
        return self._lost or self._silence or (self._unserved.get(scope, "") if is_served else "")


def scope_of(interest: Interest) -> Scope:
    """The part of its kind that an interest tells of."""
    return (*interest.group_resource, interest.namespace or interest.name)
