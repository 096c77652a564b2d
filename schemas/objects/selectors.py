"""Label selectors as values: the Kubernetes form read, checked, matched and put on the wire.

A selector is the AND of its requirements. `{}` has none and selects everything; the nil selector,
which selects nothing, is None at the caller and never a LabelSelector.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from schemas.values import names
from schemas.values.faults import Fault
from schemas.values.refusals import BadSelector
from schemas.values.wire import WireRecord, convert, force_setattr
from schemas.values.wording import some_of

IN, NOT_IN, EXISTS, DOES_NOT_EXIST = "In", "NotIn", "Exists", "DoesNotExist"
OPERATORS = (IN, NOT_IN, EXISTS, DOES_NOT_EXIST)
_WITH_VALUES = (IN, NOT_IN)
VALUES_NAMED_MAX = 4
FEW_VALUES = 32
"""So many are compared one by one, and more by halves: a record may list hundred thousands."""


class Requirement(WireRecord, frozen=True, order=True, forbid_unknown_fields=True):
    """One condition on one label; values are kept sorted and once each. Raises BadSelector.

    Fields of a later version are refused: who ignored them could select more than was meant.
    """

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        faults = _requirement_faults(self.key, self.operator, self.values)
        if faults:
            raise BadSelector(*faults)
        if len(self.values) > 1:
            force_setattr(self, "values", tuple(sorted(set(self.values))))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels meet this condition; an absent key meets NotIn and DoesNotExist."""
        match self.operator:
            case "In":
                return self._lists(labels.get(self.key))
            case "NotIn":
                return not self._lists(labels.get(self.key))
            case "Exists":
                return self.key in labels
            case _:
                return self.key not in labels

    def refusal(self, labels: Mapping[str, str]) -> tuple[str, str]:
        """What labels that do not meet it say, and what is wanted: `is "dev"`, `wants "prod"`."""
        value = labels.get(self.key)
        said = "is not there" if value is None else f'is "{value}"'
        alike = (it for it in labels if value is None and it.lower() == self.key.lower())
        if (other := next(alike, "")) and other != self.key:
            said = f'is not there, "{other}" is'
        match self.operator:
            case "In" if len(self.values) == 1:
                return said, f'wants "{self.values[0]}"'
            case "In":
                return said, f"wants one of {_quoted(self.values)}"
            case "NotIn" if len(self.values) == 1:
                return said, f'wants anything but "{self.values[0]}"'
            case "NotIn":
                return said, f"wants none of {_quoted(self.values)}"
            case "Exists":
                return said, "wants it, whatever it says"
            case _:
                return said, "wants no such label"

    def _lists(self, value: str | None) -> bool:
        values = self.values
        if value is None:
            return False
        if len(values) < FEW_VALUES:
            return value in values
        at = bisect_left(values, value)
        return at < len(values) and values[at] == value

    def __str__(self) -> str:
        match self.operator:
            case "In" | "NotIn":
                return f"{self.key} {self.operator.lower()} ({','.join(self.values)})"
            case "Exists":
                return self.key
            case _:
                return f"!{self.key}"


class _Requirements(WireRecord, frozen=True):
    """What is read of a selector, as msgspec remembers only of classes how it reads them."""

    requirements: tuple[Requirement, ...]


class LabelSelector(tuple[Requirement, ...]):
    """All requirements must hold; they are kept sorted and once each, so equal means equal.

    On the wire it is the array of its requirements.
    """

    __slots__ = ()

    def __new__(cls, requirements: Iterable[Requirement] = ()) -> LabelSelector:
        kept = tuple(requirements)
        return super().__new__(cls, kept if len(kept) < 2 else sorted(set(kept)))

    def __bool__(self) -> bool:
        """A selector without requirements is one all the same: it selects everything."""
        return True

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        return self

    @classmethod
    def from_kubernetes(cls, form: Mapping[str, object]) -> LabelSelector:
        """Read `{matchLabels: …, matchExpressions: […]}`; raises BadSelector with every fault."""
        faults = [
            Fault(str(field), "unknown field", "use matchLabels or matchExpressions")
            for field in form
            if field not in ("matchLabels", "matchExpressions")
        ]
        requirements = _read_labels(form.get("matchLabels"), faults)
        requirements += _read_expressions(form.get("matchExpressions"), faults)
        if faults:
            raise BadSelector(*faults)
        return cls(tuple(requirements))

    @classmethod
    def from_wire(cls, value: object) -> LabelSelector:
        """Read `[[key, operator, [value, …]], …]`; raises RecordRefused on anything else."""
        return cls(convert(_Requirements, (value,), "selector").requirements)

    def to_kubernetes(self) -> dict[str, object]:
        """Say it as `from_kubernetes` reads it, `In` with one value by matchLabels."""
        labels: dict[str, str] = {}
        expressions: list[object] = []
        for item in self:
            if item.operator == IN and len(item.values) == 1 and item.key not in labels:
                labels[item.key] = item.values[0]
                continue
            values = {"values": list(item.values)} if item.values else {}
            expressions.append({"key": item.key, "operator": item.operator, **values})
        form: dict[str, object] = {"matchLabels": labels} if labels else {}
        return {**form, "matchExpressions": expressions} if expressions else form

    def to_query(self) -> str:
        """The form of kubectl's -l and of the API server's labelSelector; "" takes everything."""
        return ",".join(map(str, self))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels meet every requirement."""
        return self.unmet(labels) is None

    def unmet(self, labels: Mapping[str, str]) -> Requirement | None:
        """The first requirement that the labels do not meet; None if they match."""
        # By hand: most have one requirement, and to make a generator takes as long as to ask it.
        for requirement in self:
            if not requirement.matches(labels):
                return requirement
        return None

    @property
    def is_everything(self) -> bool:
        """Whether this is `{}`."""
        return not len(self)


def _quoted(values: Sequence[str]) -> str:
    return some_of([f'"{value}"' for value in values], VALUES_NAMED_MAX)


@lru_cache(maxsize=1024)
def _requirement_faults(key: str, operator: str, values: Sequence[str]) -> list[Fault]:
    faults = []
    if bad_key := names.label_key_fault(key):
        faults.append(Fault("key", bad_key, f"use {names.QUALIFIED_RULE}"))
    if operator not in OPERATORS:
        remedy = "use In, NotIn, Exists or DoesNotExist"
        faults.append(Fault("operator", f'"{operator}" is not an operator', remedy))
    elif operator in _WITH_VALUES and not values:
        remedy = "list at least one, or use Exists or DoesNotExist"
        faults.append(Fault("values", f"{operator} without values", remedy))
    elif operator not in _WITH_VALUES and values:
        faults.append(Fault("values", f"{operator} with values", "leave them out, or use In"))
    for at, value in enumerate(values):
        if bad_value := names.label_value_fault(value):
            faults.append(Fault(f"values[{at}]", bad_value, f"use {names.LABEL_VALUE_RULE}"))
    return faults


def _read_labels(form: object, faults: list[Fault]) -> list[Requirement]:
    if form is None:
        return []
    if not isinstance(form, Mapping):
        faults.append(Fault("matchLabels", "not a mapping", "write key: value"))
        return []
    requirements = []
    for key, value in form.items():
        path = f"matchLabels[{key}]"
        if not isinstance(key, str) or not isinstance(value, str):
            faults.append(
                Fault(path, f"{json.dumps(value, default=str)} is not a string", "quote it")
            )
            continue
        try:
            requirements.append(Requirement(key, IN, (value,)))
        except BadSelector as error:
            faults.extend(Fault(path, fault.message, fault.remedy) for fault in error.faults)
    return requirements


def _read_expressions(form: object, faults: list[Fault]) -> list[Requirement]:
    if form is None:
        return []
    if not isinstance(form, (list, tuple)):
        faults.append(Fault("matchExpressions", "not a list", "write - key: …, operator: …"))
        return []
    requirements = []
    for at, item in enumerate(form):
        path = f"matchExpressions[{at}]"
        try:
            requirements.append(_read_expression(item))
        except BadSelector as error:
            faults.extend(fault.below(path) for fault in error.faults)
    return requirements


def _read_expression(form: object) -> Requirement:
    if not isinstance(form, Mapping):
        raise BadSelector(Fault("", "not a mapping", "write key, operator and values"))
    unknown = [str(field) for field in form if field not in ("key", "operator", "values")]
    if unknown:
        remedy = "use key, operator and values"
        raise BadSelector(*(Fault(field, "unknown field", remedy) for field in unknown))
    key, operator, values = form.get("key"), form.get("operator"), form.get("values") or ()
    if not isinstance(key, str):
        raise BadSelector(Fault("key", "not a string", "name the label's key"))
    if not isinstance(operator, str):
        remedy = "use In, NotIn, Exists or DoesNotExist"
        raise BadSelector(Fault("operator", "not a string", remedy))
    if not isinstance(values, (list, tuple)) or not all(isinstance(it, str) for it in values):
        raise BadSelector(Fault("values", "not a list of strings", "quote the values"))
    return Requirement(key, operator, tuple(values))
