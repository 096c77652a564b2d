"""Who says a property of a destination, and what of that can be sent."""

import base64

import pytest

from controllers.core.inventory.properties import DestinationProperties
from schemas.objects.objects import ObjectKey
from schemas.records.properties import PROPERTIES_MAX_BYTES, properties_of, read_properties
from schemas.records.records import API_LOCATION, API_SYNC_TARGET, LocationRecord, Profile, Source
from schemas.values.faults import Faulty
from schemas.values.identity import DestinationId, NodePath

KEY = ObjectKey("", "configmaps", "customization-properties", "s-001")


def profile(labels=None, annotations=None, properties=None):
    source = Source(API_SYNC_TARGET, "i", "", "s-001")
    path = NodePath.parse("/emea/s-001")
    said = (labels or {}, annotations or {}, properties or {})
    return Profile(source, 1, "", "", DestinationId("d"), path, *said)


def location(name, labels=None, annotations=None):
    source = Source(API_LOCATION, "i", "", name)
    return LocationRecord(source, 1, "", "", labels or {}, annotations or {}, None)


def config_map(**fields):
    metadata = {"name": "s-001", "namespace": "customization-properties"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **fields}


def test_the_config_map_counts_first_then_annotations_then_labels_then_what_is_built_in():
    east, west = location("east", {"a": "6"}, {"a": "4"}), location("west", {"a": "7"}, {"a": "5"})
    said = {"labels": {"a": "3"}, "annotations": {"a": "2"}, "properties": {"a": "1"}}
    steps = [(said, [west, east]), ({**said, "properties": {}}, [west, east])]
    steps += [({"labels": {"a": "3"}}, [west, east]), ({"labels": {"a": "3"}}, [])]
    found = [properties_of(profile(**said), at).values["a"] for said, at in steps]
    assert found == ["1", "2", "4", "3"]
    assert properties_of(profile(), []).values["clusterName"] == "s-001"
    named = properties_of(profile({"clusterName": "mine"}), [])
    assert named.values["clusterName"] == "mine"
    told = [layer.origin for layer in named.layers_with("clusterName")]
    assert told == ["label of SyncTarget s-001", "built in"]


def test_for_parameters_labels_go_before_annotations():
    east = location("east", {"a": "5", "b": "5"}, {"a": "4", "b": "4", "c": "4"})
    said = profile({"a": "3"}, {"a": "2"}, {"d": "1"})
    values = properties_of(said, [east]).values
    asked = ["a", "%a", "b", "%b", "c", "%c", "d", "%d", "%clusterName", "%e"]
    assert [values.get(name) for name in asked] == [*"2345", "4", "4", "1", "1", "s-001", None]
    assert values.get("%e", "") == ""
    told = [layer.origin for layer in properties_of(said, [east]).layers_with("%a")]
    assert told[:2] == ["label of SyncTarget s-001", "label of Location east"]


def test_locations_clash_where_nobody_else_decides():
    east, west = (
        location("east", {"sky": "a", "up": "1"}),
        location("west", {"sky": "b", "up": "1"}),
    )
    clash, as_parameter = properties_of(profile(), [west, east]).clashes()
    assert (clash.name, as_parameter.name) == ("sky", "%sky")
    assert str(clash) == str(as_parameter)
    assert str(clash) == (
        '"sky" is "a" by Location east and "b" by Location west; the first by name counts'
    )
    assert not [*properties_of(profile({"sky": "c"}), [east, west]).clashes()]
    noted = properties_of(profile(annotations={"sky": "c"}), [east, west])
    assert [clash.name for clash in noted.clashes()] == ["%sky"], "of parameters labels decide"
    notes = [location(name, annotations={"x.kubernetes.io/n": name}) for name in "ab"]
    assert not [*properties_of(profile(), notes).clashes()]


def test_properties_are_text_of_a_bounded_size():
    encoded = base64.b64encode("häuser".encode()).decode()
    read = read_properties(config_map(data={"a": "1"}, binaryData={"b": encoded}))
    assert read == {"a": "1", "b": "häuser"}
    for field, value, said in (
        ("data", {"a": 1}, "data[a]: not a string"),
        ("binaryData", {"a": "/w=="}, "binaryData[a]: not text in base64"),
        ("binaryData", {"a": "ü"}, "binaryData[a]: not text in base64"),
        ("data", {"a": "\ud800"}, "data[a]: not text; write characters that UTF-8 has"),
        ("data", {"a": "x" * PROPERTIES_MAX_BYTES}, "data: 65537 bytes of properties, at most"),
    ):
        with pytest.raises(Faulty) as refused:
            read_properties(config_map(**{field: value}))
        assert said in str(refused.value)


def test_what_cannot_be_read_leaves_the_last_good_properties_in_force():
    errors = {}
    known = DestinationProperties(errors)
    assert known.listed({KEY: config_map(data={"a": "1"})}) == {"s-001"}
    assert known.of("s-001", {"old": "x"}) == {"a": "1"}
    assert not known.put("s-001", config_map(data={"a": 1}))
    assert known.of("s-001", {"old": "x"}) == {"a": "1"}
    assert "not a string" in errors["configmap/customization-properties/s-001"]
    assert known.put("s-001", config_map(data={"a": "2"}))
    assert errors == {}
    assert not known.put("s-001", config_map(data={"a": "2"}))
    assert known.deleted("s-001")
    assert known.of("s-001", {"old": "x"}) == {}


def test_nobody_loses_properties_because_they_cannot_be_listed_or_read_at_first():
    known = DestinationProperties({})
    known.not_listed()
    assert known.of("s-001", {"old": "x"}) == {"old": "x"}
    known.listed({KEY: config_map(data={"a": 1})})
    assert known.of("s-001", {"old": "x"}) == {"old": "x"}
    known.listed({})
    assert known.of("s-001", {"old": "x"}) == {}
