"""Every annotation of ours stands in one registry; what is in none of its words is refused."""

import re

import pytest

from schemas.objects.annotations import (
    ON_REMOVAL,
    REGISTRY,
    annotation_faults,
    meant_by,
)
from schemas.objects.manifest_files import InvalidManifest, load_manifests
from tests.unit.test_tidy import ROOT

PAGE = (ROOT / "docs" / "annotations.md").read_text()
CLAIM = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: data\n"
PLACEMENT = "apiVersion: edge.kubestellar.io/v2alpha1\nkind: EdgePlacement\nmetadata:\n  name: e\n"


def faults(key, value="keep", kind=("v1", "PersistentVolumeClaim"), where="annotations"):
    obj = {"apiVersion": kind[0], "kind": kind[1], "metadata": {"name": "x", where: {key: value}}}
    return [str(fault) for fault in annotation_faults(obj)]


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("leafcast.io/on-remove", ON_REMOVAL),
        ("leafcast.io/on_removal", ON_REMOVAL),
        ("leafcast.io/onRemoval", ON_REMOVAL),
        ("leafcast.io/removal", ON_REMOVAL),
        ("leafcast.com/on-removal", ON_REMOVAL),
        ("leafcats.io/on-removal", ON_REMOVAL),
        ("leafcast.io/on-imutable", "leafcast.io/on-immutable"),
        ("leafcast.io/exists", "leafcast.io/existing"),
    ],
)
def test_a_misspelt_key_is_a_fault_that_says_what_it_may_have_meant(key, meant):
    assert faults(key) == [
        f"metadata.annotations[{key}]: there is no such annotation; did you mean {meant}?"
    ]


def test_a_key_that_is_like_none_is_a_fault_that_lists_those_there_are():
    [said] = faults("leafcast.io/frobnicate")
    assert ON_REMOVAL in said
    assert "leafcast.io/wave" in said
    assert "leafcast.io/move" not in said


def test_a_wrong_value_names_those_there_are():
    [said] = faults(ON_REMOVAL, "retain")
    assert said == (
        f'metadata.annotations[{ON_REMOVAL}]: "retain" is no value of it; '
        "use delete, keep or orphan"
    )
    assert faults("edge.kubestellar.io/downsync-overwrite", "no")


def test_an_annotation_where_it_has_no_effect_is_a_fault_that_says_where_it_has():
    [said] = faults("leafcast.io/move", "make-before-break")
    assert said.endswith("it has no effect on objects; write it on placements")
    epl = ("edge.kubestellar.io/v2alpha1", "EdgePlacement")
    assert faults("leafcast.io/move", "make-before-break", epl) == []
    assert faults(ON_REMOVAL, "keep", epl) == []


def test_an_annotation_that_is_written_as_a_label_is_a_fault():
    [said] = faults(ON_REMOVAL, where="labels")
    assert said.endswith("it is an annotation, and no label; write it under metadata.annotations")
    assert faults("leafcast.io/stays", where="labels") == []


@pytest.mark.parametrize(
    "key", ["example.com/on-remove", "helm.sh/resource-policy", "on-call", "leaf.io/x", "leafcast"]
)
def test_what_is_others_is_nobodys_business_here(key):
    assert faults(key) == []


def test_what_we_say_of_what_we_make_is_no_fault_when_it_comes_back():
    for each in (it for it in REGISTRY if not it.by_people):
        assert faults(each.key) == []


def test_a_key_without_a_prefix_may_have_meant_one_of_ours():
    assert meant_by("on-removal") == ON_REMOVAL
    assert meant_by("on-remove") == ON_REMOVAL
    assert meant_by("path") == meant_by("example.com/on-removal") == ""


def test_a_fault_in_a_file_names_its_line():
    for text in (CLAIM, PLACEMENT):
        written = text + "  annotations:\n    leafcast.io/on-remove: keep\n"
        with pytest.raises(InvalidManifest, match=r"f.yaml:6:\d+: .*did you mean"):
            load_manifests(written, "f.yaml")


def test_the_page_lists_what_people_write_with_its_values():
    rows = dict(re.findall(r"^\| `([^`]+/[^`]+)` \| .* \| (.*) \|$", PAGE, re.MULTILINE))
    assert rows.keys() == {each.key for each in REGISTRY if each.by_people}
    for each in REGISTRY:
        for choice in each.choices if each.by_people else ():
            assert f"`{choice}`" in rows[each.key]
