"""An object says how many copies there are of it, where each generation of KubeStellar looks."""

import pytest

from controllers.core.workloads.executing_count import count_to_say, is_counted

COUNT = "kubestellar.io/executing-count"
AS_ANNOTATION, AS_LABEL = {"annotations": {COUNT: "2"}}, {"labels": {COUNT: "2"}}


@pytest.mark.parametrize(
    ("placements", "said"),
    [
        (["shop"], AS_ANNOTATION),
        (["bindingpolicy/shop"], AS_LABEL),
        (["shop", "bindingpolicy/shop"], {**AS_ANNOTATION, **AS_LABEL}),
    ],
)
def test_an_edge_placement_has_an_annotation_and_a_binding_policy_a_label(placements, said):
    obj = {"metadata": {"name": "web", "labels": {"app": "web"}}}
    assert count_to_say(obj, 2, placements) == said
    assert count_to_say({"metadata": said}, 2, placements) is None
    assert count_to_say({"metadata": said}, 3, placements) != said


def test_who_asks_no_more_leaves_no_count():
    obj = {"metadata": {"name": "web", **AS_ANNOTATION, **AS_LABEL}}
    assert count_to_say(obj, 0, []) == {}
    assert count_to_say(obj, 2, ["shop"]) == AS_ANNOTATION
    assert count_to_say({"metadata": {"name": "web"}}, 0, []) is None
    assert is_counted(obj)
    assert not is_counted({"metadata": {"annotations": {"a": "b"}}})
