"""A level of the tree: the worst of it first, searched by name and label, gathered once."""

from types import SimpleNamespace

from leafcast.ask.tree_rank import worst_nodes_first
from leafcast.daemon.tree_levels import FOUND_MAX, KnownPlaces, Places, found_form
from schemas.records.records import API_NODE, NodeRecord, Profile, Source
from schemas.values.identity import DestinationId, NodePath
from tests.doubles.page_facts import node


def path(text):
    return NodePath.parse(text)


def profile(text, **labels):
    place = path(text)
    return Profile(
        source=Source("v2alpha1/SyncTarget", "inv", "", "-".join(place.names)),
        generation=1,
        term="",
        trace="",
        destination=DestinationId("inv-mb-" + "-".join(place.names)),
        path=place,
        labels=labels,
        annotations={},
        properties={},
    )


def node_record(text):
    source = Source(API_NODE, "t", "", text)
    return NodeRecord(source=source, generation=1, term="", trace="", path=path(text), nkey="U")


class Centre:
    """A centre with an inventory, and nothing that runs but itself."""

    def __init__(self, *records):
        self.nodes = {NodePath(): None}
        self.listeners = []
        self.records = dict(enumerate(records))
        issuer = SimpleNamespace(records=self.records, listen=self.listeners.append)
        self.controllers = SimpleNamespace(issuer=issuer)

    def issue(self, record):
        self.records[len(self.records)] = record
        for tell in self.listeners:
            tell([record])


def inventory():
    return Centre(
        node_record("/r1"),
        node_record("/r1/s1"),
        node_record("/r1/s2"),
        profile("/r1/s1", env="prod"),
        profile("/r1/s2", env="dev"),
    )


def test_places_are_of_the_inventory_and_destinations_are_counted_at_each_tier():
    places = KnownPlaces(inventory()).now()
    assert places.children == {
        path("/"): [path("/r1")],
        path("/r1"): [path("/r1/s1"), path("/r1/s2")],
    }
    assert [places.destinations[path(it)] for it in ("/", "/r1", "/r1/s1")] == [2, 2, 1]
    assert places.has(path("/r1/s1"))
    assert not places.has(path("/r1/s3"))


def test_places_are_gathered_again_when_a_record_comes_and_not_before():
    centre = inventory()
    known = KnownPlaces(centre)
    before = known.now()
    assert known.now() is before
    centre.issue(node_record("/r2"))
    assert known.now().children[path("/")] == [path("/r1"), path("/r2")]


def found(words):
    places = KnownPlaces(inventory()).now()
    return [form["path"] for form in found_form(places, words)["places"]]


def test_a_place_is_found_by_parts_of_its_path_and_by_labels():
    assert found("s1") == ["/r1/s1"]
    assert found("r1") == ["/r1", "/r1/s1", "/r1/s2"]
    assert found("R1-S2") == ["/r1/s2"]
    assert found("env=dev") == ["/r1/s2"]
    assert found("r1 env=prod") == ["/r1/s1"]
    assert found("s1 env=dev") == found("nothing") == []


def test_of_very_many_that_fit_some_are_told_and_how_many_more_there_are():
    children = [path(f"/s{at}") for at in range(FOUND_MAX + 7)]
    form = found_form(Places({NodePath(): children}, {}, {}), "s")
    assert (len(form["places"]), form["more"]) == (FOUND_MAX, 7)


def test_nodes_come_with_what_is_worst_first():
    nodes = [
        node("/well"),
        node("/absent", state="never joined"),
        node("/lacking", 9, synced=8),
        node("/failing", 9, failing=1, synced=8),
        node("/silent", state="unreachable"),
        node("/revoked", state="revoked"),
    ]
    order = [form["path"] for form in worst_nodes_first(nodes)]
    assert order == ["/revoked", "/silent", "/failing", "/lacking", "/well", "/absent"]
