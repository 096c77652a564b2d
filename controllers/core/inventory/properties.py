"""What ConfigMaps of an inventory space say of its destinations, as far as it can be read.

One that cannot be sent keeps the destination's last good properties.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

from schemas.objects.objects import ObjectKey, is_terminating
from schemas.records.properties import read_properties
from schemas.values.faults import Faulty
from schemas.values.groups import PROPERTIES_NAMESPACE

CONFIG_MAPS = ("", "configmaps")
REMEDY = "its last good properties stay in force"


def is_properties(key: ObjectKey) -> bool:
    """Whether an object says properties of a destination, which is the one of its name."""
    return key.group_resource == CONFIG_MAPS and key.namespace == PROPERTIES_NAMESPACE


class DestinationProperties:
    """By the names of SyncTargets. Each change returns whether, or whose, properties are others."""

    def __init__(self, errors: MutableMapping[str, str]) -> None:
        # What is wrong, by object.
        self._errors = errors
        self._said: dict[str, Mapping[str, str]] = {}
        self._wrong: set[str] = set()
        self._unread = False

    def listed(self, objects: Mapping[ObjectKey, Mapping[str, Any]]) -> set[str]:
        """Take all ConfigMaps that say properties."""
        self._unread = False
        names = {key.name for key in objects if is_properties(key)}
        touched = {name for name in self._names() - names if self.deleted(name)}
        for key, obj in objects.items():
            if is_properties(key) and self.put(key.name, obj):
                touched.add(key.name)
        return touched | self._names()

    def not_listed(self) -> None:
        """Take it that nobody can tell: what is in force stays."""
        self._unread = True

    def put(self, name: str, obj: Mapping[str, Any]) -> bool:
        """Take the ConfigMap of a destination."""
        if is_terminating(obj):
            return self.deleted(name)
        known = self._said.get(name), name in self._wrong
        try:
            said = read_properties(obj)
        except Faulty as error:
            self._wrong.add(name)
            self._errors[_title(name)] = f"{error}; {REMEDY}"
            return False
        self._errors.pop(_title(name), None)
        self._wrong.discard(name)
        self._said[name] = said
        return known != (said, False)

    def deleted(self, name: str) -> bool:
        """Take it that a destination has no ConfigMap any more."""
        self._errors.pop(_title(name), None)
        wrong = name in self._wrong
        self._wrong.discard(name)
        return self._said.pop(name, None) is not None or wrong

    def of(self, name: str, in_force: Mapping[str, str]) -> Mapping[str, str]:
        """The properties of a destination; `in_force` are those that the ledger holds."""
        if name in self._wrong:
            return self._said.get(name, in_force)
        if self._unread:
            return in_force
        return self._said.get(name, {})

    def _names(self) -> set[str]:
        return set(self._said) | self._wrong


def _title(name: str) -> str:
    return f"configmap/{PROPERTIES_NAMESPACE}/{name}"
