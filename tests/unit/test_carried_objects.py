"""Objects that placements bring are found by parts of how they are written."""

from controllers.core.workloads.what import WhatResolver
from leafcast.daemon.carried_objects import FOUND_MAX, carried_form
from schemas.objects.objects import ObjectKey

WEB = ObjectKey("apps", "deployments", "shop", "web")
SETTINGS = ObjectKey("", "configmaps", "shop", "settings")
CARRIED = {WEB: {"edgeplacement/shop", "edgeplacement/all"}, SETTINGS: {"edgeplacement/shop"}}


def found(words):
    return [ObjectKey(*it["key"]) for it in carried_form(CARRIED, words)["objects"]]


def test_an_object_is_found_by_parts_of_its_kind_namespace_and_name():
    assert found("shop") == [SETTINGS, WEB]
    assert found("deploy WEB") == [WEB]
    assert found("deployments.apps/shop/web") == [WEB]
    assert found("deploy settings") == found("") == found("nothing") == []


def test_it_is_named_with_the_placements_that_bring_it():
    (form,) = carried_form(CARRIED, "web")["objects"]
    assert form["placements"] == ["edgeplacement/all", "edgeplacement/shop"]


def test_of_very_many_some_are_named_and_how_many_more_there_are():
    many = {ObjectKey("", "configmaps", "shop", f"c{at}"): {"epl"} for at in range(FOUND_MAX + 7)}
    form = carried_form(many, "c")
    assert (len(form["objects"]), form["more"]) == (FOUND_MAX, 7)


def test_what_no_placement_selects_is_not_found():
    resolver = WhatResolver()
    resolver.put(WEB, {"kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}})
    assert carried_form(resolver.carried, "web")["objects"] == []
