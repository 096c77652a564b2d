"""Which cluster an edge is attached to: the one named, the one it had, or the Pod's own."""

import pytest

from leafcast.data_dir import DataDirUnusable
from leafcast.join.folder import (
    CLUSTER_FILE,
    IN_POD,
    JoinedFolder,
    cluster_of,
    kept_if_refused,
)
from leafcast.node.claim_note import ClusterRefused
from leafcast.space_settings import IN_CLUSTER, SIMULATED, SpaceSetting
from schemas.values.identity import NodePath, TreeId

STORE = SpaceSetting("kubeconfig", "/store.yaml", "store")


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.delenv(IN_POD, raising=False)
    return JoinedFolder(tmp_path, TreeId("t"), NodePath(("store",)), "home")


def test_outside_a_pod_an_edge_gets_a_simulated_cluster(place):
    assert cluster_of(place, None) == SIMULATED


def test_in_a_pod_an_edge_gets_the_cluster_that_it_runs_in(place, monkeypatch):
    monkeypatch.setenv(IN_POD, "10.0.0.1")
    assert cluster_of(place, None) == IN_CLUSTER


def test_in_a_pod_a_simulated_one_can_be_asked_for(place, monkeypatch):
    monkeypatch.setenv(IN_POD, "10.0.0.1")
    assert cluster_of(place, SIMULATED) == SIMULATED


def test_a_second_start_keeps_the_cluster_whatever_is_left_out(place, monkeypatch):
    cluster_of(place, STORE)
    monkeypatch.setenv(IN_POD, "10.0.0.1")
    assert cluster_of(place, None) == STORE


def test_a_cluster_that_is_named_takes_the_place_of_the_former(place):
    cluster_of(place, STORE)
    assert cluster_of(place, SIMULATED) == SIMULATED
    assert cluster_of(place, None) == SIMULATED


@pytest.mark.parametrize("former", [None, SIMULATED])
def test_a_cluster_that_is_refused_does_not_take_the_place_of_the_former(place, former):
    if former is not None:
        cluster_of(place, former)

    def refused():
        with kept_if_refused(place):
            cluster_of(place, STORE)
            raise ClusterRefused("it is another edge's")

    with pytest.raises(ClusterRefused):
        refused()
    assert cluster_of(place, None) == SIMULATED
    with kept_if_refused(place):
        cluster_of(place, STORE)
    assert cluster_of(place, None) == STORE


@pytest.mark.parametrize("text", ["", "{", '"embedded"', "3", '{"kubeconfig": 3}'])
def test_a_damaged_choice_is_refused_and_never_guessed(place, text):
    (place.folder / CLUSTER_FILE).write_text(text)
    with pytest.raises(DataDirUnusable, match=r"cluster\.json"):
        cluster_of(place, None)
