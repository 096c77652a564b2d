"""Values of Secrets are for nobody who may create placements, collectors or rules of health."""

import copy

import pytest

from controllers.core.workloads.selection import rules_of
from controllers.core.workloads.space_settings import SpaceSettings, secret_faults
from relay.core.collectors.ports import CopyView
from relay.shell.evaluator import CelEvaluator
from schemas.api.parsing import parse_kind
from schemas.objects.objects import ObjectKey
from schemas.objects.secret_values import without_secret_values
from schemas.reports.collectors import Expression, Program
from schemas.reports.upsync import UpsyncClause
from schemas.values import codec

SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {
        "name": "door",
        "namespace": "vault",
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "MTIzNA==", "a": "b"},
    },
    "data": {"code": "MTIzNA=="},
    "stringData": {"more": "1234"},
}
SYSTEM = ObjectKey("", "namespaces", "", "leafcast-system")
SOURCE = UpsyncClause("", ("secrets",), ("*",), ("*",))


def said(program, obj):
    """What a program says of what is sent, or of what came up."""
    plain = codec.canonical(obj)
    sent, returned = (plain, None) if program.source is None else (b"", plain)
    return str(CelEvaluator().bind(program, sent).outcome(CopyView("s1", returned)))


def columns(name):
    return tuple(
        Expression(f"c{at}", text)
        for at, text in enumerate(
            (f"{name}.data.code", f"{name}.stringData", f"{name}.metadata.annotations")
        )
    )


@pytest.mark.parametrize(("name", "source"), [("obj", None), ("returned", SOURCE)])
def test_to_collectors_the_values_of_a_secret_are_empty(name, source):
    program = Program("p", select=columns(name), source=source)
    told = said(program, SECRET)
    assert "kept=True" in told
    assert "1234" not in told
    assert "MTIz" not in told
    assert "MTIz" in said(allowing().allowed(program), SECRET)
    assert program.id != allowing().allowed(program).id


def allowing():
    kinds = SpaceSettings()
    kinds.put(SYSTEM, system("secrets"))
    return kinds


def system(value):
    annotations = {"leafcast.io/may-come-up": value}
    return {"metadata": {"name": "leafcast-system", "annotations": annotations}}


def test_keys_stay_and_nothing_of_what_came_in_is_changed():
    before = copy.deepcopy(SECRET)
    blank = without_secret_values(SECRET)
    assert (blank["data"], blank["stringData"]) == ({"code": ""}, {"more": ""})
    assert blank["metadata"]["annotations"] == {"a": "b"}
    assert before == SECRET
    other = {**SECRET, "apiVersion": "example.org/v1"}
    assert without_secret_values(other) is other
    for odd in ({}, None, {**SECRET, "data": None, "metadata": []}):
        assert "MTIz" not in str(without_secret_values(odd))


def placement(*resources):
    spec = {
        "upsync": [
            {"apiGroup": "", "resources": list(resources), "namespaces": ["*"], "names": ["*"]}
        ]
    }
    form = {"apiVersion": "edge.kubestellar.io/v2alpha1", "kind": "EdgePlacement"}
    return rules_of(parse_kind({**form, "metadata": {"name": "p"}, "spec": spec}).spec)


def test_edges_are_told_to_bring_up_secrets_only_where_that_is_allowed():
    kinds, rules = SpaceSettings(), placement("configmaps", "secrets")
    limited = kinds.limited(rules)
    assert [clause.resources for clause in limited.sent_upsync] == [("configmaps",)]
    [fault] = secret_faults(limited)
    assert fault.path == "spec.upsync[0].resources"
    assert "leafcast.io/may-come-up: secrets" in fault.remedy
    assert kinds.limited(placement("secrets")).sent_upsync == ()
    assert not list(secret_faults(kinds.limited(placement("configmaps", "*"))))
    # Nothing is sent down for that, which is said to come up.
    assert limited.brings_up(ObjectKey("", "secrets", "vault", "door"))

    assert kinds.put(SYSTEM, system("secrets"))
    assert kinds.limited(rules).sent_upsync == rules.upsync
    assert not list(secret_faults(kinds.limited(rules)))
    assert not kinds.put(SYSTEM, system("secrets"))
    assert kinds.put(SYSTEM, None)
    assert not kinds.put(ObjectKey("", "namespaces", "", "other"), system("secrets"))
