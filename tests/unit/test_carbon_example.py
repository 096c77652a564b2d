"""The example that labels the Locations with the cleanest power."""

import importlib.util

import pytest

from tests.unit.test_tidy import ROOT


@pytest.fixture(scope="module")
def example():
    place = ROOT / "examples" / "carbon" / "relabel.py"
    spec = importlib.util.spec_from_file_location("relabel", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def location(name, **labels):
    return {
        "apiVersion": "edge.kubestellar.io/v2alpha1",
        "kind": "Location",
        "metadata": {"name": name, "labels": labels, "resourceVersion": "7", "uid": "u"},
        "spec": {"instanceSelector": {}},
        "status": {"x": 1},
    }


def test_the_cleanest_are_low_and_little_is_no_reason_to_move(example):
    grams = {"oslo": 30.0, "paris": 60.0, "warsaw": 640.0}
    assert example.cleanest(grams, (), 2, 20.0) == {"oslo", "paris"}
    assert example.cleanest(grams, ("paris",), 1, 20.0) == {"oslo"}
    assert example.cleanest(grams, ("paris",), 1, 31.0) == {"paris"}


def test_only_what_changes_is_said_and_all_else_stays(example):
    listed = [location("oslo", carbon="low", env="prod"), location("paris"), location("rome")]
    news = example.changes(listed, {"oslo": 90.0, "paris": 40.0}, 1, 20.0)
    assert [(it["metadata"]["name"], it["metadata"]["labels"]) for it in news] == [
        ("oslo", {"carbon": "high", "env": "prod"}),
        ("paris", {"carbon": "low"}),
    ]
    assert news[0]["metadata"].keys() == {"name", "labels"}
    assert "status" not in news[0]
    assert news[0]["spec"] == {"instanceSelector": {}}
    assert example.changes(listed, {"oslo": 40.0, "paris": 90.0}, 1, 20.0)[0]["metadata"][
        "labels"
    ] == {"carbon": "high"}
