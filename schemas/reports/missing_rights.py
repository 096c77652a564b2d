"""The right that an account lacks, as an API server says it, and as it is reported: in few words.

A server names the object first and the account in the middle; a report has room for 200 letters,
and names the object beside it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

FORBIDDEN = "Forbidden"
_SAID = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?P<verb>[\w*]+) resource "(?P<resource>[^"]*)" '
    r'in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]*)"| at the cluster scope)?'
)
_TOLD = re.compile(
    rf"{FORBIDDEN}: no right to (?P<verb>[\w*]+) (?P<kind>[^ ,]+) "
    r"(?:in the namespace (?P<namespace>[^ ,]+)|at the cluster scope), as (?P<user>[^;]*)"
)
_OF_OBJECT = re.compile(r'^\S+ "[^"]*" is forbidden: ')


class MissingRight(NamedTuple):
    """What an account may not do; at the cluster scope without a namespace."""

    verb: str
    resource: str
    group: str
    namespace: str
    user: str

    @property
    def kind(self) -> str:
        """`deployments.apps`."""
        return f"{self.resource}.{self.group}" if self.group else self.resource

    @property
    def where(self) -> str:
        return f"in the namespace {self.namespace}" if self.namespace else "at the cluster scope"

    def __str__(self) -> str:
        return f"no right to {self.verb} {self.kind} {self.where}, as {self.user}"


def missing_right(reason: str) -> MissingRight | None:
    """The right that a reason, of a server or as it was reported, names; None if it names none."""
    told = _TOLD.match(reason)
    if told is not None:
        resource, _, group = told["kind"].partition(".")
        return MissingRight(told["verb"], resource, group, told["namespace"] or "", told["user"])
    said = _SAID.search(reason)
    if said is None:
        return None
    namespace = said["namespace"] or ""
    return MissingRight(said["verb"], said["resource"], said["group"], namespace, said["user"])


def reported(reason: str, message: str) -> str:
    """A refusal as it is reported beside the name of the object."""
    if reason != FORBIDDEN:
        return f"{reason}: {message}"
    right = missing_right(message)
    return f"{reason}: {right or _OF_OBJECT.sub('', message)}"
