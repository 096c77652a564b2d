"""Trees and placements as a person sees them: worst first, at least, unreachable since when."""

import io

import pytest
from rich.console import Console

from leafcast.show.placement_order import worst_first
from leafcast.show.traces import trace_lines
from leafcast.show.tree_tables import placement_view, placements_view, tree_view
from schemas.reports.states import NEVER_JOINED

MINUTE = 60_000
NOW = 1_800_000_000_000


def shown(view, width=80):
    file = io.StringIO()
    Console(file=file, width=width, highlight=False).print(view)
    return file.getvalue()


def counts(
    synced=0, healthy=0, whole=2, *, complete=True, failing=0, unreachable=0, wrong=(), absent=0
):
    pending = whole - synced - failing - unreachable
    states = {
        "synced": synced,
        "failing": failing,
        "unreachable": unreachable,
        "pending": pending,
    }
    return {
        "destinations": whole,
        "never_joined": absent,
        "states": {state: count for state, count in states.items() if count},
        "health": {"healthy": healthy, "unknown": whole - healthy},
        "complete": complete,
        "blocking": [] if complete else ["/emea"],
        "oldest_ms": 0,
        "exceptions": [
            {"severity": 0, "object": object_, "reason": reason, "count": 1, "path": "/emea/s1"}
            for object_, reason in wrong
        ],
    }


def node(path, since=None, **more):
    form = {
        "path": path,
        "role": "edge",
        "here": True,
        "state": "up" if since is None else "unreachable",
        "silent_since_ms": since,
        "lag": 0,
        "objects_applied": 3,
        "edges": 2,
        **counts(),
        "synced": 2,
        "healthy": 1,
    }
    return {**form, **more}


def placement(name, *, children=(), unreachable=(), problem="", lack="", selected=3, **more):
    return {
        "name": name,
        "problem": problem,
        "selected": selected,
        "lack": lack,
        "unreachable": list(unreachable),
        "children": list(children),
        **counts(**more),
    }


def test_who_never_joined_is_shown_apart_and_with_no_figures():
    late = node("/s2", state=NEVER_JOINED, destinations=0, synced=0, healthy=0)
    text = shown(tree_view({"nodes": [node("/"), node("/s1"), late]}, NOW))
    assert "never joined" in next(line for line in text.splitlines() if "s2" in line)
    assert "1 never joined: /s2" in text
    assert "unreachable" not in text
    one = placement("shop", synced=2, healthy=2, absent=1)
    assert "delivered to 2 of 2, working at 2 of 2; 1 never joined" in shown(
        placement_view(one, NOW), 100
    )
    assert "1 never joined" in shown(placements_view([one], NOW))
    nobody = shown(placement_view(placement("shop", whole=0, absent=3), NOW))
    assert "3 never joined; nothing to deliver yet" in nobody


def test_what_an_object_is_called_is_told_to_its_end_also_where_there_is_little_room():
    said = "policyreports.wgpolicyk8s.io/scans/cpol-disallow-latest-tag"
    wrong = [(said, "TooMuch: at most 16 MiB of one edge come up")]
    text = shown(placement_view(placement("up", failing=1, wrong=wrong), NOW))
    lines = text[text.index("OBJECT") :].splitlines()[1:]
    assert "".join(line[:32].split("  ")[0].strip() for line in lines).startswith(
        "scans/policyreports.wgpolicyk8s.io/cpol-disallow-latest-tag"
    )
    assert max(map(len, lines)) <= 80


def test_children_stand_below_their_parents():
    paths = ["/", "/apac", "/apac/s1", "/emea", "/emea/s1", "/emea/s2"]
    text = shown(tree_view({"nodes": [node(path) for path in paths]}, NOW))
    labels = [line.partition("up")[0].rstrip() for line in text.splitlines()[1:]]
    assert labels == ["/", "├─ apac", "│  └─ s1", "└─ emea", "   ├─ s1", "   └─ s2"]


def test_a_node_that_is_not_reached_says_since_when():
    nodes = [node("/"), node("/emea", since=NOW - 5 * MINUTE)]
    text = shown(tree_view({"nodes": nodes}, NOW))
    assert "unreachable 5m" in text
    assert "/emea is unreachable since 2027-01-15 07:55:00Z (5m)" in text


def test_a_count_that_is_not_complete_says_at_least():
    text = shown(placements_view([placement("shop", synced=1, complete=False)], NOW))
    assert "at least 1/2" in text
    one = shown(placement_view(placement("shop", synced=1, complete=False), NOW))
    assert "at least 1 of 2" in one
    assert "waiting for /emea" in one


def test_the_worst_comes_first():
    forms = [
        placement("fine", synced=2, healthy=2),
        placement("away", synced=1, healthy=2),
        placement("failing", synced=1, failing=1),
        placement("invalid", problem="spec.downsync: no field tells objects apart"),
        placement("pending", synced=0),
    ]
    named = [form["name"] for form in worst_first(forms)]
    assert named[:2] == ["invalid", "failing"]
    assert named[-1] == "fine"


def test_what_is_wrong_is_named_with_a_place():
    wrong = [("deployments.apps/shop/web", "Denied")]
    form = placement("shop", synced=1, failing=1, wrong=wrong)
    assert "shop/deployments.apps/web: Denied" in shown(placements_view([form], NOW), 100)
    text = shown(placement_view(form, NOW))
    assert "shop/deployments.apps/web  Denied" in text
    assert "/emea/s1" in text


@pytest.mark.parametrize("width", [80, 60])
def test_long_names_are_cut_and_the_width_is_kept(width):
    long = "n" * 253
    form = placement(long, synced=1, failing=1, wrong=[(long, long)], children=[node(f"/{long}")])
    views = [
        placements_view([form], NOW),
        placement_view(form, NOW),
        tree_view({"nodes": [node("/"), node(f"/{'m' * 63}")]}, NOW),
    ]
    for view in views:
        assert all(len(line) <= width for line in shown(view, width).splitlines())


def test_no_placement_says_what_to_do():
    assert "leafcast apply" in shown(placements_view([], NOW))


def test_what_a_lost_space_said_is_named_with_what_to_do():
    lost = {"abc": "2 SyncTargets (a, b)"}
    text = shown(placements_view([], NOW, lost))
    assert "2 SyncTargets (a, b)" in text
    assert "leafcast accept --space abc" in text
    assert "No placements" not in text
    assert "shop" in shown(placements_view([placement("shop")], NOW, lost))


@pytest.mark.parametrize("wave", ["2.1", ""])
def test_under_a_rollout_a_destination_says_its_wave(wave):
    row = {
        "path": "/emea/s1",
        "state": "waiting",
        "health": "healthy",
        "wave": wave,
        "silent_since_ms": None,
        "object": "",
        "reason": "",
    }
    text = shown(placement_view({**placement("shop"), "destinationList": [row]}, NOW))
    assert ("WAVE" in text, "2.1" in text) == (bool(wave), bool(wave))


def test_no_destination_is_not_delivered():
    text = shown(placement_view(placement("shop", whole=0), NOW))
    assert "no destination is selected" in text


def test_a_region_that_is_cut_off_says_how_many_destinations_are_behind_it():
    away = {"path": "/emea", "since_ms": NOW - 5 * MINUTE, "state": "unreachable"}
    form = placement("shop", whole=6, synced=3, healthy=3)
    form["unreachable"] = [{**away, "destinations": 3}]
    text = shown(placement_view(form, NOW))
    assert "/emea is unreachable since 2027-01-15 07:55:00Z (5m) (3 destinations)" in text


def test_a_node_that_stopped_in_good_order_is_not_called_unreachable():
    nodes = [node("/"), node("/emea", since=NOW - 5 * MINUTE, state="stopped")]
    text = shown(tree_view({"nodes": nodes}, NOW))
    assert "/emea is stopped since 2027-01-15 07:55:00Z (5m)" in text
    assert "unreachable" not in text


def test_what_selects_nothing_is_delivered_nowhere_and_comes_first():
    lack = 'spec.downsync[0].namespaces: namespaces "nonesuch" not found'
    empty = placement("z-empty", synced=2, healthy=2, lack=lack, selected=0)
    fine = placement("a-fine", synced=2, healthy=2)
    rows = [line.split() for line in shown(placements_view([fine, empty], NOW)).splitlines()]
    assert rows[0] == ["PLACEMENT", "OBJECTS", "DELIVERED", "WORKING", "UNREACHABLE", "WORST"]
    assert rows[1][:5] == ["z-empty", "0", "-", "-", "-"]
    assert rows[2] == ["a-fine", "3", "2/2", "2/2", "-"]
    one = shown(placement_view(empty, NOW))
    assert one.startswith("z-empty  no object is selected\n")
    assert lack in one


def test_what_is_kept_and_what_was_put_right_has_a_line_each():
    copies = [{"object": "persistentvolumeclaims/shop/data", "count": 2, "path": "/e/s1"}]
    repair = {"at_ms": NOW - 2 * MINUTE, "object": "deployments.apps/shop/web", "path": "/e/s1"}
    repair |= {"count": 3, "field": "spec.replicas", "manager": "kubectl-edit"}
    form = {"complete": True, "kept": 2, "kept_copies": copies, "repaired": 12, "repairs": [repair]}
    lines = list(trace_lines(form, NOW))
    last = "/e/s1 shop/deployments.apps/web spec.replicas by kubectl-edit 2m ago"
    assert lines == [
        "kept:      2 copies that nothing wants",
        "           shop/persistentvolumeclaims/data at /e/s1 and 1 more",
        "  see: leafcast get persistentvolumeclaims -n shop --kept --at /e/s1",
        f"repaired:  12 times, last: {last}",
    ]
    [deleted] = trace_lines({**form, "kept": 0, "repairs": [{**repair, "field": ""}]}, NOW)
    assert "which was deleted (by whom is not known)" in deleted
    assert list(trace_lines({}, NOW)) == []
