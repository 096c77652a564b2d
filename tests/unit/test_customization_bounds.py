"""What a text becomes is bounded while it grows, not when it is there."""

import copy
import json
import time
import tracemalloc

import pytest

from controllers.core.workloads.transforms import Transform, TransformFailed, transform
from relay.objects.customization import (
    CustomizationFailed,
    SentCustomizer,
    SentReplacement,
    customize,
)
from relay.objects.expansion import ExpandsTooFar, Syntax
from schemas.api.parsing import parse_kind
from schemas.content.blobs import OBJECT_MAX_BYTES
from schemas.objects.json_paths import JsonPath
from schemas.objects.objects import ObjectKey
from schemas.values.faults import InvalidObject

KEY = ObjectKey("", "configmaps", "shop", "c")
PEAK_MAX_BYTES = 24 * 1024 * 1024
BIG = {"big": "x" * 60_000}


def settings(data, **annotations):
    metadata = {"name": "c", "namespace": "shop", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def refused(obj, customizer=None, values=BIG):
    """Why an object cannot be customized; what that took at most, in bytes."""
    tracemalloc.start()
    try:
        with pytest.raises(CustomizationFailed) as failed:
            customize(KEY, obj, customizer, values, "s-001")
        return str(failed.value), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        ("edge.kubestellar.io/expand-parameters", "%(big)" * 200_000),
        ("control.kubestellar.io/expand-templates", "{{ .big }}" * 140_000),
    ],
)
@pytest.mark.parametrize("texts", [1, 20])
def test_a_text_that_would_become_too_large_takes_no_more_than_it_may_become(
    annotation, text, texts
):
    each = text[: len(text) // texts]
    obj = settings({f"x{at}": each for at in range(texts)}, **{annotation: "true"})
    said, peak = refused(obj)
    assert f"more than {OBJECT_MAX_BYTES} bytes once it is expanded" in said
    assert peak < PEAK_MAX_BYTES


def test_a_value_that_is_put_in_many_places_takes_no_more_than_an_object_may():
    obj = settings({f"x{at}": "" for at in range(2_000)})
    value = json.dumps([1] * 20_000)
    said, peak = refused(
        obj, SentCustomizer("shop/c", Syntax(False, False), (SentReplacement("$.data.*", value),))
    )
    assert "puts too much into this object, at 2000 places" in said
    assert peak < PEAK_MAX_BYTES


def test_many_values_that_are_put_one_after_another_share_the_room():
    obj = settings({"x": ""})
    half = json.dumps("y" * (OBJECT_MAX_BYTES // 2))
    replacements = tuple(SentReplacement(f"$.data.x{at}", half) for at in range(3))
    said, _ = refused(obj, SentCustomizer("shop/c", Syntax(False, False), replacements))
    assert "replacements[1]" in said or "replacements[2]" in said


def test_just_so_much_as_there_is_room_for_is_no_fault():
    syntax = Syntax(True, False)
    assert syntax.expand("%(a)%(a)c", {"a": "bb"}, {}, 5) == "bbbbc"
    for room in (4, 3, 0):
        with pytest.raises(ExpandsTooFar):
            syntax.expand("%(a)%(a)c", {"a": "bb"}, {}, room)


WIDE = "$.data[?@ != 'none']"


def test_all_paths_in_one_object_share_what_may_be_looked_at():
    """One of them alone is no trouble: there is no number of them that takes ever longer."""
    obj = settings({f"x{at}": "1" for at in range(2_000)})
    assert JsonPath(WIDE).remove(copy.deepcopy(obj))
    several = tuple(SentReplacement(f"$.data[?@ != 'n{at}']", '"2"') for at in range(30))
    began = time.process_time()
    said, _ = refused(obj, SentCustomizer("shop/c", Syntax(False, False), several))
    assert "looks at too much in this object" in said
    texts = tuple(f"$.data[?@ == 'n{at}']" for at in range(256))
    with pytest.raises(TransformFailed, match="looks at too much in this object"):
        transform(obj, tuple(Transform(f"t{at}", None, texts) for at in range(4)))
    assert time.process_time() - began < 3


def test_paths_have_a_number():
    spec = {"apiGroup": "", "resource": "configmaps", "remove": ["$.a"] * 257}
    obj = {"apiVersion": "control.kubestellar.io/v1alpha1", "kind": "CustomTransform"}
    with pytest.raises(InvalidObject, match="257 are listed, at most 256 may be"):
        parse_kind({**obj, "metadata": {"name": "t"}, "spec": spec})
    obj = {"apiVersion": "edge.kubestellar.io/v2alpha1", "kind": "Customizer"}
    named = {"name": "t", "namespace": "shop"}
    listed = [{"path": f"$.data.x{at}", "value": "1"} for at in range(257)]
    with pytest.raises(InvalidObject, match="257 are listed, at most 256 may be"):
        parse_kind({**obj, "metadata": named, "replacements": listed})
