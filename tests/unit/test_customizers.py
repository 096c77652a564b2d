"""The centre's part of customization: who asks for what, and what stops a placement."""

import pytest

from controllers.core.translation.placements import Placements
from controllers.core.workloads.space import placement_key
from relay.objects.customization import CUSTOMIZER, EXPAND_PARAMETERS, EXPAND_TEMPLATES
from schemas.content import blobs
from schemas.objects.objects import ObjectKey
from schemas.records.records import DeltaHead

BY = ObjectKey("edge.kubestellar.io", "customizers", "shop", "per-site")
V2 = "edge.kubestellar.io/v2alpha1"


def config(name, text="", **annotations):
    said = {
        {"p": EXPAND_PARAMETERS, "t": EXPAND_TEMPLATES, "by": CUSTOMIZER}[key]: value
        for key, value in annotations.items()
    }
    metadata = {"name": name, "namespace": "shop", "annotations": said, "resourceVersion": "5"}
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}}
    return ObjectKey("", "configmaps", "shop", name), obj


def customizer(*replacements, version="9"):
    metadata = {"name": "per-site", "namespace": "shop", "resourceVersion": version}
    said = [{"path": path, "value": value} for path, value in replacements]
    return {"apiVersion": V2, "kind": "Customizer", "metadata": metadata, "replacements": said}


def centre(*objects):
    placements = Placements("space", {})
    spec = {"locationSelectors": [{}], "downsync": [{"namespaces": ["shop"]}]}
    shop = {"apiVersion": V2, "kind": "EdgePlacement", "metadata": {"name": "shop"}, "spec": spec}
    placements.listed({placement_key("shop"): shop, **dict(objects)})
    return placements


def issue(placements):
    """The entries of what is issued now by name; None if nothing is."""
    works = placements.next(["shop"])
    if not works:
        return None
    head = works[0].draft.record
    assert isinstance(head, DeltaHead)
    placements.issued(works, [head])
    return {key.name: entry for key, entry in works[0].translation.entries.items()}


def test_only_what_is_customized_goes_out_as_a_template():
    entries = issue(
        centre(
            config("plain", "%(a) {{ .a }}"),
            config("nothing", "text", p="true"),
            config("no", "%(a)", p="yes"),
            config("parameters", "%(a)", p="true"),
            config("templates", "{{ .a }}", t="true"),
        )
    )
    kinds = {name: entry.reference.kind for name, entry in entries.items()}
    templates = {name for name, kind in kinds.items() if kind == blobs.TEMPLATE}
    assert templates == {"parameters", "templates"}


def test_a_customizer_goes_along_and_a_changed_one_is_news_of_just_its_objects():
    placements = centre(
        config("a", by="per-site"), config("b", "x"), (BY, customizer(("$.data.n", "1")))
    )
    before = issue(placements)
    assert before["a"].customizer.kind == blobs.CUSTOMIZER
    assert (before["a"].revision, before["b"].revision) == (9, 5)
    # As after each write of its status.
    assert placements.put(BY, customizer(("$.data.n", "1"), version="10")) == frozenset()
    assert placements.put(BY, customizer(("$.data.n", "2"), version="11")) == {"shop"}
    after = issue(placements)
    assert after["a"].address == before["a"].address
    assert after["a"].customizer != before["a"].customizer
    assert after["a"].revision == 11
    assert after["b"] == before["b"]


def test_a_missing_customizer_is_said_and_its_object_goes_out_as_it_is():
    placements = centre(config("a", "%(x)", p="true", by="per-site"), config("b", by="per-site"))
    entries = issue(placements)
    assert {entry.reference.kind for entry in entries.values()} == {blobs.OBJECT}
    missing = placements.workloads.resolver.customizers.missing("shop")
    assert missing == ("Customizer shop/per-site is not there: 2 objects go out as it is written",)
    assert placements.put(BY, customizer()) == {"shop"}
    assert issue(placements)["a"].customizer is not None
    assert placements.workloads.resolver.customizers.missing("shop") == ()
    assert placements.deleted(BY) == {"shop"}
    assert issue(placements)["a"].customizer is None


def test_a_mistake_that_is_everyones_stops_the_placement_until_it_is_corrected():
    placements = centre(config("a", "{{ .a }}", t="true"))
    issue(placements)
    for wrong, said in (
        (config("a", "{{ nonsense }}", t="true"), "configmaps/shop/a: data.text: "),
        (
            config("a", by="per-site"),
            "customizers.edge.kubestellar.io/shop/per-site: replacements[0]",
        ),
    ):
        placements.put(BY, customizer(("$", "1")))
        placements.put(*wrong)
        placements.put(*config("b"))
        assert issue(placements) is None
        lack = placements.workloads.lack("shop")
        assert lack.reason == "Frozen"
        assert said in lack.message
        placements.put(*config("a", "mended"))
        assert "b" in issue(placements)
        assert placements.workloads.lack("shop") is None
        placements.deleted(config("b")[0])
        issue(placements)


def test_the_first_version_does_not_go_out_either_and_deletion_always_does():
    placements = centre(config("a", "{{ if }}", t="true"))
    assert issue(placements) is None
    placements.put(*config("a", "fine"))
    assert issue(placements) is not None
    placements.put(*config("a", "{{ if }}", t="true"))
    placements.deleted(placement_key("shop"))
    (work,) = placements.next(["shop"])
    assert work.translation is None


@pytest.mark.parametrize(
    ("replacement", "wrong"),
    [
        (
            ("$.metadata.name", '"b"'),
            "metadata.name: it cannot be customized; leave it as it is, a",
        ),
        (("$.kind", '"Secret"'), "kind: it cannot be customized"),
        (("$.metadata.labels", '{"a b": ""}'), 'metadata.labels[a b]: "a b" is not a label key'),
    ],
)
def test_what_comes_out_wrong_whatever_the_properties_freezes_everywhere(replacement, wrong):
    placements = centre(config("a", by="per-site"), (BY, customizer(replacement)))
    assert issue(placements) is None
    [fault] = placements.workloads.frozen("shop")
    assert str(fault).startswith(f"configmaps/shop/a: {wrong}")
    placements.put(BY, customizer(("$.data.n", "1"), version="10"))
    assert set(issue(placements)) == {"a"}


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ("1e999", "NaN and infinities have no JSON form"),
        ("18446744073709551616", "an integer beyond 64 bits"),
        (r'"\ud800"', "a lone surrogate is no text"),
        ("[" * 300 + "]" * 300, "nested deeper than 100 levels"),
        ("[" * 100 + "]" * 100, "nested deeper than 100 levels; correct Customizer shop/per-site"),
    ],
)
def test_a_value_that_no_object_can_have_freezes_everywhere_by_one_error(value, wrong):
    placements = centre(config("a", by="per-site"), (BY, customizer(("$.data.n", value))))
    assert issue(placements) is None
    [fault] = placements.workloads.frozen("shop")
    assert wrong in str(fault)
    str(fault).encode()


@pytest.mark.parametrize("text", ["{{ .region }}", "%(region)"])
def test_what_comes_out_wrong_for_some_property_freezes_only_where_it_is(text):
    by = customizer(("$.metadata.name", f'"{text}"'))
    by["metadata"]["annotations"] = {EXPAND_PARAMETERS: "true", EXPAND_TEMPLATES: "true"}
    placements = centre(config("a", by="per-site"), (BY, by))
    assert set(issue(placements)) == {"a"}
