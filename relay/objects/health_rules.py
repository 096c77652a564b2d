"""Health as users say it: ignored, or by a CEL expression, on one object or for a kind.

An expression that gives nothing, as one over a status that is not there yet, counts as false. What
it may cost is bounded, as that of a collector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from relay.objects.expressions.bounds import (
    STEPS_MAX,
    TooCostly,
    check_all,
    check_texts,
    extent_of,
    narrowed,
    steps_of,
    weight_of,
)
from relay.objects.expressions.cel import (
    VARIABLES,
    CompiledExpression,
    EvaluationFailed,
    ExpressionRefused,
    ExpressionValues,
)
from relay.objects.health import Assessment
from schemas.objects.annotations import HEALTH, IGNORE
from schemas.objects.secret_values import without_secret_values
from schemas.records.health_rules import HealthProgram
from schemas.values import codec
from schemas.values.faults import Fault
from schemas.values.fields import mapping_at
from schemas.values.refusals import CodecError

HEALTH_VARIABLES: Mapping[str, object] = {
    "obj": VARIABLES["obj"],
    "returned": VARIABLES["returned"],
}
"""The object as it is at its edge, with its status, which is also `returned.status`."""
COMPILED_MAX = 256
REFUSALS_MAX = 8192
REASON_MAX_CHARACTERS = 160
_SHOWN_CHARACTERS = 40
_REMEDY = f"write {IGNORE}, or an expression such as: obj.status.phase == 'Ready'"
_HEALTHY: Assessment = ("healthy", "")
_WORDS: Mapping[str, Assessment] = {
    "healthy": _HEALTHY,
    "progressing": ("progressing", ""),
    "degraded": ("degraded", ""),
}


def health_said(obj: Mapping[str, Any]) -> str:
    """What an object itself says of its health; "" if nothing."""
    return str(mapping_at(obj, "metadata", "annotations").get(HEALTH) or "")


def annotation_fault(obj: Mapping[str, Any]) -> Fault | None:
    """What is wrong with what an object says of its health; None if nothing is."""
    said = health_said(obj)
    if said in ("", IGNORE):
        return None
    path = f"metadata.annotations[{HEALTH}]"
    if said in _WORDS or said in ("true", "false"):
        return Fault(path, f'"{said}" looks at nothing', _REMEDY)
    fault = expression_fault(path, said)
    return None if fault is None else Fault(path, fault.message, _REMEDY)


def expression_fault(path: str, text: str) -> Fault | None:
    """What is wrong with an expression of a field; None if nothing is."""
    refused = _refusal(text)
    return Fault(path, refused, "correct the expression") if refused else None


def rule_faults(rule: HealthProgram) -> list[Fault]:
    """What is wrong with a HealthRule that is to be written: by field, or with all it says."""
    return field_faults(rule) or length_faults(rule)


def field_faults(rule: HealthProgram) -> list[Fault]:
    """What is wrong with each expression of a HealthRule, by field."""
    found = (expression_fault(f"spec.{name}", text) for name, text in _texts(rule).items())
    return [fault for fault in found if fault is not None]


def length_faults(rule: HealthProgram) -> list[Fault]:
    """Whether a HealthRule, of which each expression is right, says too much in all."""
    try:
        compiled = [_compiled(text) for text in _texts(rule).values()]
        check_texts([each.shape for each in compiled if isinstance(each, CompiledExpression)])
    except TooCostly as error:
        return [Fault("spec", str(error), "say less by one rule")]
    return []


def _texts(rule: HealthProgram) -> dict[str, str]:
    """The expressions of a HealthRule that are there, by field."""
    fields = (("healthy", rule.healthy), ("degraded", rule.degraded))
    named = (*fields, ("message", rule.message), ("done", rule.done))
    return {name: text for name, text in named if text}


def assess_as_said(text: str, obj: Mapping[str, Any]) -> Assessment:
    """The health of an object that says itself how well it is."""
    if text == IGNORE:
        return _HEALTHY
    value, failure = _Looked(obj, (text,)).value(text)
    if isinstance(value, str):
        word, _, reason = value.partition(":")
        if word.strip() in _WORDS:
            health, said = word.strip(), reason.strip()[:REASON_MAX_CHARACTERS]
            return _WORDS[health][0], "" if health == "healthy" else said or f"{HEALTH} says so"
    elif value is True:
        return _HEALTHY
    if not failure and value is not False:
        given = str(value)[:_SHOWN_CHARACTERS]
        failure = f"it gives {given}; give true or false, or {', '.join(_WORDS)}"
    return "progressing", f"{HEALTH}: {failure or 'not yet'}"


def assess_by_rule(
    rule: HealthProgram, obj: Mapping[str, Any], otherwise: Callable[[], Assessment]
) -> Assessment:
    """The health of an object of a rule's kind; `otherwise` it is as that of any other."""
    if rule.ignore:
        return _HEALTHY
    if not (rule.degraded or rule.healthy):
        return otherwise()
    looked = _Looked(obj, (rule.degraded, rule.healthy, rule.message))
    if rule.degraded and looked.value(rule.degraded)[0] is True:
        return "degraded", _message(rule, looked)
    if not rule.healthy:
        return otherwise()
    value, failure = looked.value(rule.healthy)
    if value is True:
        return _HEALTHY
    reason = _message(rule, looked)
    is_told = reason != _by(rule)
    return "progressing", f"{reason}: {failure}" if failure and not is_told else reason


def is_done(rule: HealthProgram, obj: Mapping[str, Any]) -> bool:
    """Whether a rule says that an object has done what it is for."""
    return _Looked(obj, (rule.done,)).value(rule.done)[0] is True


def _message(rule: HealthProgram, looked: _Looked) -> str:
    value = looked.value(rule.message)[0] if rule.message else None
    said = value.strip()[:REASON_MAX_CHARACTERS] if isinstance(value, str) else ""
    return said or _by(rule)


def _by(rule: HealthProgram) -> str:
    return f"by the HealthRule {rule.name}"


class _Looked:
    """An object that expressions look at: all of them together may cost as much as a collector."""

    def __init__(self, obj: Mapping[str, Any], texts: Iterable[str]) -> None:
        metadata = {name: it for name, it in obj["metadata"].items() if name != "managedFields"}
        # What it says becomes a reason, which all see who see the placement.
        plain = without_secret_values({**obj, "metadata": metadata})
        returned = {"status": plain["status"]} if "status" in plain else {}
        self._values = ExpressionValues()
        self._failure = ""
        compiled = [it for it in map(_compiled, filter(None, texts)) if not isinstance(it, str)]
        shapes = [each.shape for each in compiled]
        try:
            largest, count = extent_of([plain])
            size = weight_of(len(codec.pack(plain)), count)
            check_all(shapes, largest, size)
        except (CodecError, TooCostly) as error:
            self._failure = str(error)
            return
        self._values.begin(steps_of(shapes, largest, size) / STEPS_MAX)
        for name, value in (("obj", plain), ("returned", returned)):
            if any(name in each.variables for each in compiled):
                paths = {path for each in compiled for path in each.shape.paths.get(name, ())}
                self._values.put(name, narrowed(value, paths))

    def value(self, text: str) -> tuple[Any, str]:
        """What an expression gives of the object, or why it gives nothing."""
        expression = _compiled(text)
        if isinstance(expression, str) or self._failure:
            return None, self._failure or str(expression)
        try:
            return expression.value(self._values), ""
        except EvaluationFailed as error:
            return None, str(error)


@lru_cache(maxsize=REFUSALS_MAX)
def _refusal(text: str) -> str:
    """Why an expression is refused; "" if it is not. Each object may have another one."""
    compiled = _compiled(text)
    return "" if isinstance(compiled, CompiledExpression) else compiled


@lru_cache(maxsize=COMPILED_MAX)
def _compiled(text: str) -> CompiledExpression | str:
    """An expression, or why it is refused."""
    try:
        return CompiledExpression(text, HEALTH_VARIABLES)
    except ExpressionRefused as error:
        return str(error)
