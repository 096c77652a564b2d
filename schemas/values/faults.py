"""What is wrong with an object, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong: the field's path (`spec.downsync[0].resources`), what, and the remedy."""

    path: str
    message: str
    remedy: str = ""

    def __str__(self) -> str:
        said = f"{self.message}; {self.remedy}" if self.remedy else self.message
        return f"{self.path}: {said}" if self.path else said

    def below(self, path: str) -> Fault:
        """Say the same fault of an object that holds the faulty one at `path`."""
        joint = "" if not path or not self.path or self.path.startswith("[") else "."
        return Fault(f"{path}{joint}{self.path}", self.message, self.remedy)


def told_once(faults: Iterable[Fault]) -> list[str]:
    """The faults in words; what is wrong alike in several places is told once, with how many."""
    alike: dict[tuple[str, str], list[Fault]] = {}
    for fault in faults:
        alike.setdefault((fault.message, fault.remedy), []).append(fault)
    return [
        str(Fault(f"{first.path} and {len(rest)} more", first.message, first.remedy))
        if rest
        else str(first)
        for first, *rest in alike.values()
    ]


class Unusable(Exception):
    """What cannot be used, or be done: what that is (after a `word`), why, and what to do."""

    word = ""

    def __init__(self, what: object, reason: str, remedy: str) -> None:
        super().__init__(f"{self.word}{what}: {reason}; {remedy}")
        self.what = what
        self.reason = reason
        self.remedy = remedy


class Faulty(ValueError):
    """A value with one fault or more; their paths are relative to it."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__("; ".join(str(fault) for fault in faults))
        self.faults = faults


class InvalidObject(ValueError):
    """An object that is refused, before anything is changed; there is one fault at least."""

    def __init__(self, kind: str, name: str, faults: Iterable[Fault]) -> None:
        self.kind = kind
        self.name = name
        self.faults = tuple(faults)
        title = f'{kind or "object"} "{name}"' if name else (kind or "object")
        super().__init__("\n".join(f"{title}: {fault}" for fault in self.faults))
