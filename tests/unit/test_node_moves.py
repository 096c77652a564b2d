"""A node that moves: its names and records, and its folder."""

from dataclasses import replace

import pytest
from click.testing import CliRunner

from controllers.core.ledger.node_moves import left_nodes, move_fault, still_left
from leafcast.cli.commands.node import move
from leafcast.daemon.nodes.relocation import moved_objects, name_for
from leafcast.data_dir import DataDirUnusable
from leafcast.join.default_folder import (
    default_folder,
    folder_of_grant,
    folder_of_token,
    take_along,
)
from leafcast.join.folder import JoinedFolder, joined_folder
from leafcast.join.kept_grant import read_grant, write_grant
from relay.adapters.clock import SystemDice
from schemas.enrolment.tokens import Token
from schemas.records.moves import FORMER_MAX, MOVED_ANNOTATION, after_move, former_paths
from schemas.records.records import API_NODE, API_SYNC_TARGET, NodeRecord, Profile, Source
from schemas.records.snapshots import path_entry_key
from schemas.values import subjects, wire
from schemas.values.identity import NodePath
from tests.unit.test_kept_grant import GRANT

OLD, NEW, FAR = map(NodePath.parse, ("/r1/s1", "/r2/s1", "/r3/s1"))
TREE = "t" * 26


def profile(path, generation=1, former=(), *, name="r1-s1"):
    said = {MOVED_ANNOTATION: ",".join(map(str, former))} if former else {}
    source = Source(API_SYNC_TARGET, "space", "", name)
    return Profile(source, generation, "", "", "space-mb-1", path, {}, said, {})


def node(path):
    return NodeRecord(Source(API_NODE, TREE, "", str(path)), 1, "", "", path, "KEY")


def ledger(*records):
    return {record.source.key: record for record in records}


# What the centre says.


def test_former_places_are_kept_in_order_and_few():
    assert former_paths({}) == ()
    assert former_paths({MOVED_ANNOTATION: " /r1/s1, no path,/,/r2/s1"}) == (OLD, NEW)
    once = {MOVED_ANNOTATION: after_move({}, OLD, NEW)}
    twice = {MOVED_ANNOTATION: after_move(once, NEW, FAR)}
    assert former_paths(once) == (OLD,)
    assert former_paths(twice) == (OLD, NEW)
    assert former_paths({MOVED_ANNOTATION: after_move(twice, FAR, OLD)}) == (NEW, FAR)
    told, here = {}, NodePath.parse("/s")
    for n in range(2 * FORMER_MAX):
        there = NodePath.parse(f"/s{n}")
        told, here = {MOVED_ANNOTATION: after_move(told, here, there)}, there
    assert len(former_paths(told)) == FORMER_MAX


def test_a_node_leaves_its_place_together_with_the_destination_that_says_so():
    records = ledger(profile(OLD), node(OLD), node(NEW))
    moved = profile(NEW, former=(OLD,))
    assert left_nodes(records, TREE, [(OLD, moved)]) == [node(OLD).source.key]
    for old, news, held in (
        (OLD, profile(NEW), records),
        (OLD, profile(OLD, former=(OLD,)), records),
        (OLD, profile(NEW, former=(FAR,)), records),
        (NEW, moved, ledger(profile(NEW), node(OLD), node(NEW))),
        (OLD, moved, ledger(profile(OLD), node(OLD))),
        (OLD, moved, ledger(profile(OLD), node(NEW))),
        (OLD, moved, ledger(profile(OLD), node(OLD), node(NEW), node(OLD.child("below")))),
    ):
        assert left_nodes(held, TREE, [(old, news)]) == []


def test_a_node_is_still_left_unless_the_last_snapshot_lists_its_destination_where_it_is_alone():
    moved = profile(NEW, 5, former=(FAR, OLD))
    at = {path: path_entry_key(path, moved.source.key) for path in (OLD, FAR, NEW)}
    records, left = ledger(moved, node(OLD), node(NEW)), [node(OLD).source.key]
    for listed in ([at[OLD]], [at[OLD], at[NEW]], [at[FAR]], []):
        assert still_left(records, TREE, listed) == left
    assert still_left(records, TREE, [at[NEW]]) == []
    came_after = wire.replace(node(OLD), generation=6)
    assert still_left(ledger(moved, came_after, node(NEW)), TREE, [at[OLD]]) == []


@pytest.mark.parametrize(
    ("old", "new", "of", "said"),
    [
        ("/", "/r2/s1", "/", "the centre is no child"),
        ("/r1/s1", "/", "/", "the centre is no child"),
        ("/r1/s8", "/r2/s1", "/r1/s8", "there is no such node"),
        ("/r1/s1", "/r1/s1", "/r1/s1", "it hangs there already"),
        ("/r1/s1", "/r1/s1/deeper", "/r1/s1", "no node hangs below itself"),
        ("/r1", "/r2/r1", "/r1", "there are nodes below it (/r1/s1), and only a leaf can move"),
        ("/r1/s1", "/r2", "/r2", "there is such a node already"),
        ("/r1/s1", "/r3/s1", "/r3/s1", "its parent /r3 is no node"),
    ],
)
def test_a_move_without_sense_names_the_node_the_reason_and_the_remedy(old, new, of, said):
    records = ledger(node(NodePath.parse("/r1")), node(OLD), node(NodePath.parse("/r2")))
    fault = move_fault(records, TREE, NodePath.parse(old), NodePath.parse(new))
    assert fault is not None
    assert str(fault[0]) == of
    assert said in fault[1]
    assert fault[2]


def test_a_leaf_moves_below_any_node_and_below_the_centre():
    records = ledger(node(NodePath.parse("/r1")), node(OLD), node(NodePath.parse("/r2")))
    for new in (NEW, NodePath.parse("/s1"), NodePath.parse("/r1/s2")):
        assert move_fault(records, TREE, OLD, new) is None


def test_a_name_outlives_a_move_and_another_takes_the_next():
    assert name_for(OLD, {}) == "r1-s1"
    assert name_for(OLD, {"r1-s1": str(OLD)}) == "r1-s1"
    assert name_for(OLD, {"r1-s1": ""}) == "r1-s1"
    assert name_for(NEW, {"r1-s1": str(NEW)}) == "r1-s1"
    assert name_for(OLD, {"r1-s1": str(NEW)}) == "r1-s1-2"
    assert name_for(OLD, {"r1-s1": str(NEW), "r1-s1-2": str(OLD)}) == "r1-s1-2"


def test_only_place_and_region_change_unless_other_labels_are_given():
    labels = {"id": "r1-s1", "region": "r1", "env": "prod"}
    metadata = {"name": "r1-s1", "labels": labels}
    target = {
        "kind": "SyncTarget",
        "metadata": {**metadata, "annotations": {"leafcast.io/path": "/r1/s1", "note": "x"}},
    }
    location = {"kind": "Location", "metadata": metadata, "spec": {"instanceSelector": {}}}
    first, second = moved_objects(target, location, NEW, {})
    assert first["metadata"]["labels"] == second["metadata"]["labels"]
    assert first["metadata"]["labels"] == {**labels, "region": "r2"}
    told = {"leafcast.io/path": "/r2/s1", MOVED_ANNOTATION: "/r1/s1"}
    assert first["metadata"]["annotations"] == told
    assert second["spec"] == location["spec"]
    labels["region"] = "north"
    (alone,) = moved_objects(target, None, NEW, {"env": "test", "id": "mine"})
    assert alone["metadata"]["labels"] == {"id": "r1-s1", "region": "north", "env": "test"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["/", "/new"], "'/' is the centre"),
        (["/r1/s1", "/New"], "is not a node path"),
        (["/r1/s1"], "Missing argument 'NEW_PATH'"),
        (["/r1/s1", "/new", "-o", "/nowhere/x.json"], "there is no folder /nowhere"),
        (["/r1/s1", "/new", "--labels", "env"], "write key=value"),
        (["/r1/s1", "/new", "--valid", "soon"], "is not a duration; write it as in 60s"),
    ],
)
def test_what_is_typed_wrong_is_said_before_anything_is_asked(arguments, said):
    done = CliRunner().invoke(move, arguments)
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())


# The folder it takes along.

MOVED = replace(GRANT, path=NodePath.parse("/apac/store-9"))
HERE = GRANT.path
GIVEN = replace(MOVED, former=(HERE,))


def use(folder, grant):
    return joined_folder(folder, grant, SystemDice())


@pytest.fixture
def folder(tmp_path):
    """A folder in which a node ran at its first place."""
    with use(tmp_path / "node", GRANT) as place:
        replace(place, admitted=True).keep()
        place.node_folder.mkdir()
        (place.node_folder / "ports.json").write_text("{}")
    return tmp_path / "node"


def test_a_folder_follows_its_node_and_is_not_given_back_to_its_old_place(folder):
    with use(folder, GIVEN) as place:
        assert (place.path, place.former, place.arriving) == (GIVEN.path, (HERE,), (HERE,))
        assert not place.admitted
        assert (place.node_folder / "ports.json").exists()
        assert read_grant(folder / "bundle.json") == GIVEN
    assert not (folder / HERE.domain).exists()
    with (
        pytest.raises(DataDirUnusable, match=f"moved from {HERE} to {GIVEN.path}"),
        use(folder, GRANT),
    ):
        pass


def test_what_did_not_arrive_is_gone_on_with_at_the_next_start_also_elsewhere(folder):
    with use(folder, GIVEN) as place:
        home = place.home
    # Killed before its folder had the new name, and before its streams were carried over.
    place.node_folder.rename(folder / HERE.domain)
    with use(folder, GIVEN) as again:
        assert (again.arriving, again.home) == ((HERE,), home)
        assert (again.node_folder / "ports.json").exists()
    third = replace(GIVEN, path=FAR, former=(HERE, GIVEN.path))
    with use(folder, third) as farther:
        assert farther.arriving == farther.former == (HERE, GIVEN.path)
        assert (farther.node_folder / "ports.json").exists()
        replace(farther, arriving=()).keep()
    with use(folder, third) as settled:
        assert (settled.arriving, settled.former) == ((), (HERE, GIVEN.path))


def test_only_the_folder_of_the_node_that_moved_is_taken_along(folder):
    stranger = replace(GIVEN, former=(FAR,))
    with (
        pytest.raises(DataDirUnusable, match=f"leafcast node move {HERE} {GIVEN.path}"),
        use(folder, stranger),
    ):
        pass


def test_without_a_name_the_folder_is_found_that_the_node_has(tmp_path, monkeypatch):
    monkeypatch.setenv("LEAFCAST_DATA_DIR", str(tmp_path))
    token = Token(b"s" * 16, GIVEN.tree, b"p" * 16, GIVEN.path)
    granted = replace(GIVEN, token=token.token_id)
    first, asked_in = default_folder(GRANT.tree, HERE), default_folder(GIVEN.tree, GIVEN.path)
    assert folder_of_token(token, GIVEN.path) == folder_of_grant(GIVEN) == asked_in
    first.parent.mkdir()
    with use(first, GRANT):
        pass
    assert folder_of_grant(GIVEN) == first
    # It asks in a folder of its new place, and goes on in the one that it has.
    assert folder_of_token(token, GIVEN.path) == asked_in
    asked_in.mkdir()
    write_grant(asked_in / "bundle.json", granted)
    assert folder_of_token(token, GIVEN.path) == asked_in
    with use(first, GRANT), pytest.raises(DataDirUnusable, match="another process uses it"):
        take_along(asked_in, granted)
    assert take_along(asked_in, granted) == first
    assert not asked_in.exists()
    assert read_grant(first / "bundle.json") == granted
    for _ in range(2):
        assert folder_of_token(token, GIVEN.path) == folder_of_grant(granted) == first
        with use(first, granted):
            pass
    assert folder_of_grant(replace(granted, former=())) == asked_in


def test_who_was_not_moved_begins_where_it_asked(tmp_path, monkeypatch):
    monkeypatch.setenv("LEAFCAST_DATA_DIR", str(tmp_path))
    asked_in = default_folder(GIVEN.tree, GIVEN.path)
    assert take_along(asked_in, GIVEN) == asked_in
    with use(asked_in.parent.parent / "other", GRANT):
        pass
    assert take_along(asked_in, GIVEN) == asked_in


def test_the_folder_of_a_node_that_came_to_a_path_which_was_left_is_not_taken(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("LEAFCAST_DATA_DIR", str(tmp_path))
    asked_in, others = default_folder(GIVEN.tree, GIVEN.path), default_folder(GRANT.tree, HERE)
    asked_in.mkdir(parents=True)
    came = replace(GRANT, labels={"id": "emea-store-9-2"})
    with use(others, came):
        pass
    assert take_along(asked_in, GIVEN) == folder_of_grant(GIVEN) == asked_in
    with (
        pytest.raises(DataDirUnusable, match=f"the edge emea-store-9-2 at {HERE}"),
        use(others, GIVEN),
    ):
        pass
    assert read_grant(others / "bundle.json") == came
    # Nobody knows of a grant that is damaged.
    (others / "bundle.json").write_text("{")
    assert take_along(asked_in, GIVEN) == others


def test_a_folder_of_an_earlier_program_is_read(tmp_path):
    form = '{"format": 1, "tree": "%s", "path": "%s", "home": "h", "admitted": true}'
    (tmp_path / "node").mkdir()
    (tmp_path / "node" / "joined.json").write_text(form % (GRANT.tree, HERE))
    with use(tmp_path / "node", GRANT) as place:
        assert isinstance(place, JoinedFolder)
        assert (place.home, place.admitted, place.former) == ("h", True, ())


def test_what_a_node_keeps_for_itself_is_what_it_takes_along():
    assert set(subjects.kept_for_itself(OLD)) == {"BLOB", "OWN", "DONE"}
