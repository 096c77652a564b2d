"""Laws of API kinds and objects: they read back as written, and nothing unknown gets in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.api.parsing import parse_kind
from schemas.objects.objects import BUILT_IN_KINDS, object_faults
from schemas.values.faults import InvalidObject

V = "edge.kubestellar.io/v2alpha1"
names = st.sampled_from(["shop", "web-1", "a.b"])
labels = st.sampled_from(["shop", "web-1"])
selectors = st.sampled_from(
    [
        {},
        {"matchLabels": {"env": "prod"}},
        {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["x", "y"]}]},
        {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
    ]
)
some = st.lists(labels, max_size=3)
clauses = st.fixed_dictionaries(
    {"resources": st.lists(st.sampled_from(["pods", "services"]), min_size=1)},
    optional={
        "apiGroup": st.sampled_from(["", "apps"]),
        "namespaces": some,
        "namespaceSelectors": st.lists(selectors, max_size=2),
        "objectNames": st.lists(st.sampled_from(["*", "system:x"])),
        "labelSelectors": st.lists(selectors, max_size=2),
        "createOnly": st.booleans(),
        "statusCollectors": some,
        "wantSingletonReportedState": st.booleans(),
        "wantMultiWECReportedState": st.booleans(),
    },
)
upsyncs = st.fixed_dictionaries(
    {"resources": some}, optional={"apiGroup": st.just("x.io"), "namespaces": some, "names": some}
)
specs = st.fixed_dictionaries(
    {},
    optional={
        "locationSelectors": st.lists(selectors, max_size=2),
        "downsync": st.lists(clauses, max_size=3),
        "wantSingletonReportedState": st.booleans(),
        "upsync": st.lists(upsyncs, max_size=2),
    },
)
placements = st.builds(
    lambda name, spec: {
        "apiVersion": V,
        "kind": "EdgePlacement",
        "metadata": {"name": name},
        "spec": spec,
    },
    names,
    specs,
)
junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
fields = st.sampled_from(["apiVersion", "kind", "metadata", "spec", "status", "destinations"])


def holders(form):
    """Every mapping of a spec whose fields are ours, not labels."""
    yield form
    yield from form.get("downsync", ())
    yield from form.get("upsync", ())


@given(placements)
def test_a_placement_reads_back_as_it_was_written(obj):
    parsed = parse_kind(obj)
    assert parsed.to_mapping() == obj
    assert parse_kind(parsed.to_mapping()) == parsed


@given(placements, st.data())
def test_an_unknown_field_is_found_wherever_it_is(obj, data):
    data.draw(st.sampled_from(list(holders(obj["spec"]))))["unheardOf"] = 1
    with pytest.raises(InvalidObject) as refused:
        parse_kind(obj)
    (fault,) = refused.value.faults
    assert fault.path.endswith("unheardOf")
    assert fault.message == "unknown field"


@given(
    st.sampled_from(["EdgePlacement", "Location", "SyncTarget", "SinglePlacementSlice"]),
    st.dictionaries(fields, junk),
)
def test_any_mapping_gives_a_kind_or_a_refusal(kind, form):
    obj = {"apiVersion": V, "metadata": {"name": "shop"}, **form, "kind": kind}
    faults = ()
    try:
        parse_kind(obj)
    except InvalidObject as refused:
        faults = refused.faults
    assert all(fault.message for fault in faults)


@given(st.dictionaries(fields, junk))
def test_any_mapping_is_valid_and_has_a_key_or_has_a_fault(obj):
    if not list(object_faults(obj)):
        key = BUILT_IN_KINDS.key_of(obj)
        assert key.name == obj["metadata"]["name"]
