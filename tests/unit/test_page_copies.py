"""A copy at an edge: what differs from what is meant, and nothing of what a Secret holds."""

import json
from dataclasses import replace

import pytest

from leafcast.ui.copies import CopySeen, copy_form, object_key
from leafcast.ui.patches import LONG_TEXT_MAX_CHARACTERS, TEXT_MAX_CHARACTERS, harmless
from schemas.objects.objects import ObjectKey
from tests.doubles.page_scenes import deployment, explanation, rendered

WEB = ObjectKey("apps", "deployments", "shop", "web")


@pytest.mark.parametrize(
    ("said", "key"),
    [
        ("deployments.apps/shop/web", WEB),
        ("configmaps/shop/settings", ObjectKey("", "configmaps", "shop", "settings")),
        ("namespaces/shop", ObjectKey("", "namespaces", "", "shop")),
        ("clusterroles.rbac.authorization.k8s.io/a:b", None),
        ("", None),
        ("deployments.apps", None),
        ("/shop/web", None),
    ],
)
def test_an_object_is_named_as_reports_name_it(said, key):
    if said.startswith("clusterroles"):
        key = ObjectKey("rbac.authorization.k8s.io", "clusterroles", "", "a:b")
    assert object_key(said) == key


def test_only_fields_that_somebody_said_count_as_other():
    live = deployment(5) | {"status": {"replicas": 5}}
    live["metadata"]["uid"] = "1"
    form = copy_form(WEB, CopySeen(rendered(deployment(3)), live))
    assert (form["differs"], form["tone"]) == (["spec.replicas"], "busy")
    assert copy_form(WEB, CopySeen(rendered(deployment(5)), live))["tone"] == "good"


def test_which_rule_set_which_field_is_told():
    form = copy_form(WEB, CopySeen(rendered(deployment(3)), deployment(3)))
    assert "spec.replicas: 3    from 1" in form["rules"]


def test_a_copy_that_is_not_there_and_one_that_cannot_be_seen_are_two_things():
    meant = rendered(deployment(3))
    gone, unseen = CopySeen(meant, None), CopySeen(meant, None, "", "/s is unreachable")
    assert [copy_form(WEB, it)["tone"] for it in (gone, unseen)] == ["busy", "away"]


def test_why_it_is_not_as_it_is_meant_is_told_unless_one_placement_has_it_so():
    stops = explanation("refused", "Forbidden: quota", "raise it", 7)
    good = explanation("as-meant", "applied, and healthy", "", 7, "edgeplacement/other")
    seen = CopySeen(rendered(deployment(3)), None, why=[stops])
    (told,) = copy_form(WEB, seen)["why"]
    assert (told["placement"], told["sinceMs"]) == ("epl/shop", 7)
    assert (told["said"], told["remedy"]) == ("refused: Forbidden: quota", "raise it")
    assert copy_form(WEB, replace(seen, why=[stops, good]))["why"] == []
    as_meant = replace(seen, live=deployment(3))
    tones = [copy_form(WEB, replace(as_meant, why=why))["tone"] for why in ([], [stops], [good])]
    assert tones == ["good", "bad", "good"]


@pytest.mark.parametrize(
    ("stages", "tone"),
    [
        (["not-healthy"], "bad"),
        (["approval"], "held"),
        (["under-way"], "busy"),
        (["under-way", "approval", "refused"], "bad"),
    ],
)
def test_a_copy_is_as_bad_as_the_worst_of_what_stops_it(stages, tone):
    stops = [explanation(it, "", "", 7) for it in stages]
    form = copy_form(WEB, CopySeen(rendered(deployment(3)), deployment(3), why=stops))
    assert form["tone"] == tone


def test_nothing_that_a_secret_holds_is_shown_whoever_says_it():
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "b"}}
    secret |= {"data": {"key": "b3BlbiBzZXNhbWU="}, "stringData": {"other": "open sesame"}}
    form = rendered(secret)
    form["changes"][0] |= {"before": "closed sesame", "after": "open sesame"}
    said = json.dumps(copy_form(ObjectKey("", "secrets", "b", "a"), CopySeen(form, secret)))
    assert "sesame" not in said
    assert "b3Blb" not in said


def test_what_is_long_is_shown_whole_and_what_is_longer_says_where_it_is_cut():
    def shown(length):
        meant = deployment(3) | {"data": {"said": "x " * (length // 2)}}
        return harmless(copy_form(WEB, CopySeen(rendered(meant), deployment(3))))

    form = shown(3 * TEXT_MAX_CHARACTERS)
    assert (len(form["meant"]) > 3 * TEXT_MAX_CHARACTERS, form["cut"]) == (True, [False, False])
    form = shown(LONG_TEXT_MAX_CHARACTERS)
    assert (len(form["meant"]), form["cut"]) == (LONG_TEXT_MAX_CHARACTERS, [True, False])
