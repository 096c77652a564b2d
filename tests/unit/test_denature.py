"""`leafcast denature`: what would act at a hub goes into Denatureds; all else is left alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core.workloads.denature import DENATURED_KINDS, denature, would_act
from controllers.core.workloads.renature import renature
from leafcast.denatured_text import denatured_text
from schemas.api.parsing import parse_wish
from schemas.objects.manifest_files import load_manifests
from schemas.objects.objects import BUILT_IN_KINDS
from schemas.objects.yaml_documents import InvalidManifest, read_documents
from schemas.objects.yaml_writing import write_yaml

ROOT = Path(__file__).resolve().parents[2]
ACTING = [
    (group, kind, entry)
    for (group, kind), entry in BUILT_IN_KINDS.items()
    if (group, entry.resource) in DENATURED_KINDS
]
PLAIN = """\
# Source: shop/templates/a.yaml
apiVersion: v1
kind: ConfigMap   # with a comment
metadata: {name: a}
data: {smile: "\U0001f600", yes: 'no', mode: 0644}
"""
ROLE = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "rules": []}


def acting(group, kind, entry, name="one"):
    version = "v1" if group != "admissionregistration.k8s.io" else "v1alpha1"
    metadata = {"name": name} | ({"namespace": "shop"} if entry.namespaced else {})
    return {"apiVersion": f"{group}/{version}".lstrip("/"), "kind": kind, "metadata": metadata}


def objects(text):
    return [found.object for found in load_manifests(text, "it")]


def test_each_kind_that_acts_at_a_hub_is_known_and_comes_out_again_as_it_was():
    assert len(ACTING) == len(DENATURED_KINDS)
    for group, kind, entry in ACTING:
        form = acting(group, kind, entry)
        assert would_act(form)
        made = denature(form)
        parse_wish(made)
        assert renature(made, BUILT_IN_KINDS) == (BUILT_IN_KINDS.key_of(form), form)
        assert not would_act(made)


def test_what_does_not_act_goes_through_to_the_byte_and_what_acts_keeps_its_head():
    assert denatured_text(PLAIN, "it") == PLAIN
    role = write_yaml({**ROLE, "metadata": {"name": "r", "namespace": "shop"}})
    text = f"---\n{PLAIN}---\n# Source: shop/templates/role.yaml\n{role}---\n{PLAIN}"
    said = denatured_text(text, "it")
    assert said.count(PLAIN) == 2
    assert "---\n# Source: shop/templates/role.yaml\napiVersion: leafcast.io/v1alpha1\n" in said
    assert [each["kind"] for each in objects(said)] == ["ConfigMap", "Denatured", "ConfigMap"]
    assert denatured_text(said, "it") == said


def test_marks_of_tools_stand_on_the_denatured_and_our_words_on_the_object():
    annotations = {
        "helm.sh/hook": "pre-install",
        "postrenderer.helm.sh/postrender-filename": "role.yaml",
        "leafcast.io/on-removal": "keep",
    }
    metadata = {"name": "r", "namespace": "shop", "labels": {"a": "b"}, "annotations": annotations}
    made = denature({**ROLE, "metadata": metadata})
    outer, inner = made["metadata"], made["spec"]["template"]["metadata"]
    assert outer["labels"] == inner["labels"] == {"a": "b"}
    assert [*outer["annotations"]] == ["helm.sh/hook", "postrenderer.helm.sh/postrender-filename"]
    assert [*inner["annotations"]] == ["helm.sh/hook", "leafcast.io/on-removal"]


def test_names_are_the_same_for_each_object_and_for_no_other_one():
    def name(name, namespace="", kind="Role"):
        metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
        return denature({**ROLE, "kind": kind, "metadata": metadata})["metadata"]["name"]

    assert name("r", "shop") == "roles.shop.r"
    assert name("admin", kind="ClusterRole") == "clusterroles.admin"
    long = "x" * 240
    found = [
        name(*it)
        for it in (
            ("b.c", "a"),
            ("a:b", "", "ClusterRole"),
            ("a-b", "", "ClusterRole"),
            ("A-b", "", "ClusterRole"),
            (long, "a-namespace"),
            (f"{long}y", "a-namespace"),
        )
    ]
    assert len({*found}) == len(found)
    for each in found:
        assert len(each) <= 253
        assert each[-1].isalnum()


def test_what_names_no_namespace_gets_the_one_of_the_release_or_is_an_error_with_its_line():
    text = f"{PLAIN}---\n{write_yaml({**ROLE, 'metadata': {'name': 'r'}})}"
    [_, made] = objects(denatured_text(text, "it", "shop"))
    assert made["spec"]["template"]["metadata"]["namespace"] == "shop"
    with pytest.raises(InvalidManifest) as refused:
        denatured_text(text, "it")
    line = PLAIN.count("\n") + 2
    assert str(refused.value).startswith(f'it:{line}:1: Role "r": metadata.namespace: missing; ')
    with pytest.raises(InvalidManifest):
        denatured_text(f"{PLAIN}---\na: [\n", "it")


def test_an_object_that_is_to_stay_at_home_stays_as_it_is():
    metadata = {"name": "r", "annotations": {"leafcast.io/keep-at-home": "true"}}
    text = write_yaml({**ROLE, "metadata": metadata})
    assert denatured_text(text, "it") == text


def test_lists_and_json_are_taken_apart_and_a_directive_is_no_hindrance():
    role = {**ROLE, "metadata": {"name": "r", "namespace": "shop"}}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    listed = {"apiVersion": "v1", "kind": "List", "items": [config, role]}
    typed = {"apiVersion": ROLE["apiVersion"], "kind": "RoleList"}
    typed["items"] = [{"metadata": role["metadata"], "rules": []}]
    for text in (
        json.dumps(listed),
        f"%YAML 1.1\n---\n{write_yaml(listed)}",
        f"{write_yaml(config)}---\n{json.dumps(typed)}\n",
    ):
        assert [each["kind"] for each in objects(denatured_text(text, "it"))] == [
            "ConfigMap",
            "Denatured",
        ]


def test_kustomize_gets_back_the_list_that_it_gave():
    role = {**ROLE, "metadata": {"name": "r", "namespace": "shop"}}
    role["metadata"]["annotations"] = {"internal.config.kubernetes.io/index": "1"}
    given = {"apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList", "items": [role]}
    text = write_yaml({**given, "functionConfig": {"apiVersion": "v1", "kind": "ConfigMap"}})
    [document] = read_documents(denatured_text(text, "it"), "it")
    assert [*document.root] == ["apiVersion", "functionConfig", "items", "kind"]
    [made] = document.root["items"]
    assert made["metadata"]["annotations"] == role["metadata"]["annotations"]
    assert "annotations" not in made["spec"]["template"]["metadata"]


KINDS = st.sampled_from(["ConfigMap", "Role", "APIService", "List"])
FORMS = st.fixed_dictionaries(
    {
        "apiVersion": st.sampled_from(["v1", "rbac.authorization.k8s.io/v1"]),
        "kind": KINDS,
        "metadata": st.fixed_dictionaries({"name": st.text(max_size=5)}),
        "data": st.dictionaries(st.text(max_size=3), st.text(max_size=9), max_size=2),
    }
)


@given(st.lists(FORMS, min_size=1, max_size=4))
def test_of_any_manifests_what_does_not_act_is_what_it_was(forms):
    text = "---\n".join(map(write_yaml, forms))
    try:
        said = denatured_text(text, "it", "shop")
    except InvalidManifest:
        return
    plain = [write_yaml(form) for form in forms if not would_act(form)]
    assert all(each in said for each in plain)
    assert said.count("kind: Denatured") == len(forms) - len(plain)


def test_the_command_is_a_filter_that_says_nothing_but_what_it_was_given_or_why_not():
    def run(text, *options, **more):
        words = [sys.executable, "-m", "leafcast", "denature", *options]
        environment = {**os.environ, **more}
        return subprocess.run(
            words, input=text.encode(), capture_output=True, env=environment, check=False
        )

    role = write_yaml({**ROLE, "metadata": {"name": "r"}})
    assert run(PLAIN).stdout.decode() == PLAIN
    assert run(role, HELM_NAMESPACE="shop").stdout == run(role, "-n", "shop").stdout
    done = run(role)
    assert (done.returncode, done.stdout) == (1, b"")
    assert "--namespace" in done.stderr.decode()
