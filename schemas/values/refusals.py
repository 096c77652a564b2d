"""Refusals of what came over the wire, or would go there. All are WireRefused, a ValueError.

    WireRefused            `reason` says what is wrong, and where
    ├── CodecError         bytes that are no value, or a value without canonical bytes; has `path`
    ├── RecordRefused      a message, payload, body, report or list that is none of its kind
    │   └── BodyAltered    a body that is not the one its signed head names
    ├── BlobRefused        bytes that are not the blob their reference names; has `address`
    ├── BadIdentity        a name, path, id or key without its form; has `what`, `value`, `rule`
    └── BadSelector        a label selector that Kubernetes would refuse; has `faults`

Whoever reads from a peer catches WireRefused. The kinds are for who treats them differently.
"""

from __future__ import annotations

from schemas.values.faults import Faulty


class WireRefused(ValueError):
    """Wire data that is not taken; `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class CodecError(WireRefused):
    """Bytes that are no value, or a value that has no canonical bytes; `path` names the place."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path or '.'}: {reason}")
        self.path = path
        self.reason = reason


class RecordRefused(WireRefused):
    """Bytes that do not say what their kind demands; `reason` names kind and field."""


class BodyAltered(RecordRefused):
    """A body that is not the one its signed head names."""


class BlobRefused(WireRefused):
    """Bytes that are not the blob their reference names; `reason` says in what they differ."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(reason)
        self.address = address

    def __str__(self) -> str:
        return f"blob {self.address[:12]}: {self.reason}" if self.address else self.reason


class BadIdentity(WireRefused):
    """A name, path, id or key that does not have its form; `rule` says which it should have."""

    def __init__(self, what: str, value: object, rule: str) -> None:
        super().__init__(f"{value!r} is not a {what}: {rule}")
        self.what = what
        self.value = value
        self.rule = rule


class BadSelector(Faulty, WireRefused):
    """A label selector that Kubernetes would refuse; `faults` name the fields, relative to it."""
