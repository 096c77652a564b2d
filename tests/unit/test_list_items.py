"""Items of lists whose key somebody changed, in objects as real servers write them."""

import copy
import json

import pytest

from relay.syncer.list_items import (
    items_in_the_way,
    moved_items,
    still_there,
    with_items_put_back,
)
from relay.syncer.ownership import hold_of

TWICE = 'Service "web" is invalid: spec.ports[1].name: Duplicate value: "http"'


def wish(*ports):
    return {"metadata": {"name": "web"}, "spec": {"ports": list(ports)}}


def port(number, name="http", target=8080, **more):
    return {"name": name, "port": number, "targetPort": target, **more}


def element(item):
    keys = {"port": item["port"], "protocol": item.get("protocol", "TCP")}
    return f"k:{json.dumps(keys)}", {".": {}, **{f"f:{name}": {} for name in item}}


def live(*held, operation="Update"):
    """An object whose ports are held by these managers."""
    entries, ports = [], []
    for manager, item in held:
        how = "Apply" if manager == "leafcast" else operation
        fields = {"f:spec": {"f:ports": dict([element(item)])}}
        entries.append({"manager": manager, "operation": how, "fieldsV1": fields})
        if (whole := {"protocol": "TCP", **item}) not in ports:
            ports.append(whole)
    return {"metadata": {"name": "web", "managedFields": entries}, "spec": {"ports": ports}}


def applied(*ports):
    """The marks of these, as they were applied."""
    fields = {"f:spec": {"f:ports": dict(map(element, ports))}}
    entry = {"manager": "leafcast", "operation": "Apply", "fieldsV1": fields}
    return hold_of({**wish(*ports), "metadata": {"managedFields": [entry]}}, "leafcast").fields


def test_an_item_whose_key_was_changed_goes_back_and_what_is_in_it_stays():
    there = live(("kubectl-patch", port(83, nodePort=30001)), ("them", port(9, "metrics", 9)))
    [moved] = moved_items(there, wish(port(80)), applied(port(80)))
    assert (moved.path, moved.managers) == (
        'spec.ports[port=83,protocol="TCP"]',
        ("kubectl-patch",),
    )
    put_back = with_items_put_back(there, [moved])
    expected = copy.deepcopy(there)
    expected["spec"]["ports"][0]["port"] = 80
    assert put_back == expected
    assert there["spec"]["ports"][0]["port"] == 83


@pytest.mark.parametrize(
    ("there", "wished", "noted"),
    [
        # It was not applied before, so nothing of ours is missing.
        (live(("them", port(83))), wish(port(80)), applied(port(81))),
        # It is still there.
        (live(("leafcast", port(80)), ("them", port(83))), wish(port(80)), applied(port(80))),
        # It has nothing of ours but the names of its fields.
        (live(("them", port(83, "own", 9))), wish(port(80)), applied(port(80))),
        # It lacks a field of ours.
        (live(("them", {"name": "http", "port": 83})), wish(port(80)), applied(port(80))),
        # It is said under that key by another applier.
        (live(("them", port(83)), operation="Apply"), wish(port(80)), applied(port(80))),
        # It is wished, too.
        (live(("them", port(83))), wish(port(80), port(83, "b")), applied(port(80))),
        # Nobody holds it.
        ({**live(), "spec": {"ports": [port(83)]}}, wish(port(80)), applied(port(80))),
    ],
)
def test_what_is_an_edges_own_is_no_moved_item(there, wished, noted):
    assert moved_items(there, wished, noted) == []


def test_each_item_takes_the_place_of_one():
    there = live(("them", port(83)), ("them", port(84)))
    moved = moved_items(there, wish(port(80)), applied(port(80)))
    assert [it.path for it in moved] == ['spec.ports[port=83,protocol="TCP"]']


def in_the_way(there, wished, noted, message=TWICE, *, force=False):
    mine, theirs = items_in_the_way(there, wished, noted, message, force=force)
    return [it.keys for it in mine], [it.managers for it in theirs]


def test_an_item_in_the_way_is_ours_if_it_was_applied_or_stands_for_one_that_was():
    keys = {"port": 80, "protocol": "TCP"}
    # Its key was changed there, and the content at the centre since.
    there = live(("them", port(83, target=1)))
    assert in_the_way(there, wish(port(80)), applied(port(80))) == ([keys], [])
    # Its key was changed at the centre, and somebody holds the former one, too.
    there = live(("leafcast", port(81)), ("them", port(81)))
    assert in_the_way(there, wish(port(80)), applied(port(81))) == ([keys], [])
    # Of that the present one is there as well: the other one goes.
    there = live(("leafcast", port(80, "b")), ("them", port(81)))
    assert in_the_way(there, wish(port(80)), applied(port(81))) == ([None], [])


def test_an_item_of_others_in_the_way_is_named_and_goes_by_force():
    there = live(("leafcast", port(80, "b")), ("them", port(83)))
    wished = wish(port(80, "b"), port(81))
    assert in_the_way(there, wished, applied(port(80, "b"))) == ([], [("them",)])
    keys = {"port": 81, "protocol": "TCP"}
    assert in_the_way(there, wished, applied(port(80, "b")), force=True) == ([keys], [])


def test_only_what_a_server_named_is_in_the_way():
    there = live(("leafcast", port(80, "b")), ("them", port(83, "own", 8080)))
    wished = wish(port(80, "b"), port(81))
    assert in_the_way(there, wished, b"") == ([], [])
    said = 'spec.ports: Invalid value: "array": targets are unique'
    assert in_the_way(there, wished, b"", said) == ([], [("them",)])


def test_an_item_that_goes_leaves_the_places_of_the_others():
    there = live(("leafcast", port(1, "a")), ("them", port(2)), ("leafcast", port(3, "c")))
    noted = applied(port(1, "a"), port(2), port(3, "c"))
    mine, _ = items_in_the_way(there, wish(port(1, "a"), port(3)), noted, TWICE, force=False)
    left = with_items_put_back(there, mine)["spec"]["ports"]
    assert [(it["port"], it["name"]) for it in left] == [(1, "a"), (3, "c")]


def test_an_object_that_tells_no_managers_has_no_moved_items():
    assert moved_items({"metadata": {}, **wish(port(83))}, wish(port(80)), applied(port(80))) == []


def test_an_item_that_is_only_its_key_is_another_ones_under_another_key():
    def named(*names):
        return {"metadata": {"name": "a"}, "imagePullSecrets": [{"name": name} for name in names]}

    def held(by, name):
        fields = {"f:imagePullSecrets": {f'k:{{"name":"{name}"}}': {".": {}, "f:name": {}}}}
        how = "Apply" if by == "leafcast" else "Update"
        entry = {"manager": by, "operation": how, "fieldsV1": fields}
        return {**named(name), "metadata": {"name": "a", "managedFields": [entry]}}

    noted = hold_of(held("leafcast", "ours"), "leafcast").fields
    assert moved_items(held("them", "theirs"), named("ours"), noted) == []
    # Of a port without a name the protocol tells that it is the same.
    there = live(("them", {"port": 83}))
    [moved] = moved_items(there, wish({"port": 80}), applied({"port": 80}))
    assert moved.keys == {"port": 80, "protocol": "TCP"}


def test_what_could_not_be_put_back_goes_once_ours_stands_beside_it():
    before = live(("them", port(83)), ("them", port(9, "own", 9)))
    moved = moved_items(before, wish(port(80)), applied(port(80)))
    after = live(("leafcast", port(80)), ("them", port(83)), ("them", port(9, "own", 9)))
    beside = still_there(after, wish(port(80)), moved)
    left = with_items_put_back(after, beside)["spec"]["ports"]
    assert [it["port"] for it in left] == [80, 9]
    assert still_there(live(("leafcast", port(80))), wish(port(80)), moved) == []


def test_an_item_in_the_way_is_ours_if_one_of_ours_is_missing_that_is_wished_no_more():
    keys = {"port": 81, "protocol": "TCP"}
    # Both ends changed the key at once.
    there, noted = live(("them", port(83))), applied(port(80))
    assert in_the_way(there, wish(port(81)), noted) == ([keys], [])
    both = live(("leafcast", port(80, "b")), ("them", port(83)))
    assert in_the_way(both, wish(port(80, "b"), port(81)), noted) == ([], [("them",)])
    applier = live(("them", port(83)), operation="Apply")
    assert in_the_way(applier, wish(port(81)), noted) == ([], [("them",)])
