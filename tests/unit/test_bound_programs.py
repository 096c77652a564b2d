"""What is ready for evaluation takes so much memory, however many objects are collected."""

from relay.objects.expressions.cel import ExpressionValues
from relay.shell.evaluator import CelEvaluator
from schemas.reports.collectors import Expression, Program
from schemas.values import codec
from schemas.values.bounded_cache import BoundedCache


def test_those_that_were_used_last_are_held_within_so_many_bytes():
    bounds = BoundedCache[object, str](100, 1)
    for at in range(10):
        bounds.put(at, f"p{at}", 20)
        bounds.get(0)
    assert [at for at in range(10) if bounds.get(at)] == [0, 6, 7, 8, 9]
    bounds.put("large", "p", 1_000)
    assert bounds.get("large")
    assert not bounds.get(9)
    bounds.pop("large")
    bounds.pop("nothing")
    bounds.assert_invariants()
    assert not any(bounds.get(at) for at in range(10))


def test_of_an_object_only_what_is_named_is_held_by_its_program(monkeypatch):
    held = []
    put = ExpressionValues.put

    def noted(values, name, value):
        held.append((name, value))
        put(values, name, value)

    monkeypatch.setattr(ExpressionValues, "put", noted)
    program = Program("p", select=(Expression("c", "obj.spec.a"),))
    obj = {"metadata": {"name": "web"}, "spec": {"a": 1, "b": "b" * 1_000}}
    bound = CelEvaluator().bind(program, codec.canonical(obj))
    assert held == [("obj", {"spec": {"a": 1}})]
    assert bound.weight > 1_000
