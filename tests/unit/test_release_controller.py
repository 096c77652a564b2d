"""A LeafcastRelease goes out from the centre by waves; a bad one stops at the first."""

import asyncio
from pathlib import Path

from controllers.workloads import release_controller
from leafcast.centre.pinned_publisher import PinnedPublisher
from relay.core.events import Tick
from relay.core.link.session import SILENT_AFTER_SECONDS
from relay.release_pieces import noted_pieces
from schemas.objects.objects import ObjectKey
from schemas.values.identity import NodePath
from tests.awaiting import until_object
from tests.launched import KEY, ROOT_KEY, ROOTS, STRANGER, Arrived
from tests.memory_tree import MANAGER
from tests.publishing import root_after, wish
from tests.unit.releases_world import (
    PIECES,
    PLATFORM,
    Places,
    leafcast_release,
    sha256,
    signed_manifest,
    upgraded_tree,
)

NODES = ["/emea", "/emea/s1", "/emea/s2"]
SECONDS = 60
WAVES = (
    {"name": "canary", "selector": {"matchLabels": {"id": "emea-s1"}}},
    {"name": "rest", "percent": 100},
)


def key(version):
    return ObjectKey("leafcast.io", "leafcastreleases", "", version)


def put_pieces(tree, folder: Path):
    (folder / "pieces").mkdir(parents=True)
    for data in PIECES.values():
        (folder / "pieces" / sha256(data)).write_bytes(data)
    tree.controllers.releases.folder = folder


def phase(wanted):
    return lambda obj: (obj.get("status") or {}).get("phase") == wanted


def says(message):
    return lambda obj: (obj.get("status") or {}).get("message") == message


def healthy(places, path, version):
    manifest = sha256(signed_manifest(version).encode())
    places.launcher(path, version, manifest=manifest)


async def test_a_good_release_reaches_relays_and_edges_wave_by_wave_and_is_complete(tmp_path):
    async with asyncio.timeout(SECONDS), upgraded_tree(tmp_path, NODES) as (tree, places):
        put_pieces(tree, tmp_path / "centre")
        for path in NODES:
            places.launcher(path)
        await tree.workloads.apply(leafcast_release("9.0.0", *WAVES), MANAGER)
        await places.until_wanted("/emea", "9.0.0")
        assert not places.wanted("/emea/s1"), "an edge before the relay above it"
        healthy(places, "/emea", "9.0.0")
        await places.until_wanted("/emea/s1", "9.0.0")
        assert not places.wanted("/emea/s2"), "the rest before the canary"
        healthy(places, "/emea/s1", "9.0.0")
        await places.until_wanted("/emea/s2", "9.0.0")
        healthy(places, "/emea/s2", "9.0.0")
        obj = await until_object(tree.workloads, key("9.0.0"), phase("Complete"))
        waves = {it["name"]: (it["members"], it["healthy"]) for it in obj["status"]["waves"]}
        assert waves == {"canary": (2, 2), "rest": (1, 1)}
        await tree.workloads.delete(key("9.0.0"))
        await tree.drivers[NodePath.parse("/emea/s1")].until(lambda node: node.release is None)
        assert places.wanted("/emea/s1") == "9.0.0"


async def fail_at_the_canary(tree, places, folder):
    """Let 9.0.0 out, which the first edge takes back; what its launcher says, and the object."""
    put_pieces(tree, folder)
    for path in NODES:
        places.launcher(path)
    await tree.workloads.apply(leafcast_release("9.0.0", *WAVES), MANAGER)
    await places.until_wanted("/emea", "9.0.0")
    healthy(places, "/emea", "9.0.0")
    await places.until_wanted("/emea/s1", "9.0.0")
    said = {"why": "it never joined", "manifest": sha256(signed_manifest("9.0.0").encode())}
    places.launcher("/emea/s1", "1.0.0", "rolled-back", **said)
    return said, await until_object(tree.workloads, key("9.0.0"), phase("Failed"))


async def test_a_bad_release_stops_at_the_canary_and_says_where_and_why(tmp_path):
    async with asyncio.timeout(SECONDS), upgraded_tree(tmp_path, NODES) as (tree, places):
        said, obj = await fail_at_the_canary(tree, places, tmp_path / "centre")
        assert obj["status"]["failures"] == ["/emea/s1: rolled-back: it never joined"]
        assert not places.wanted("/emea/s2")
        # A second one waits; nobody takes two at once.
        await tree.workloads.apply(leafcast_release("9.1.0", *WAVES), MANAGER)
        way = "9.0.0 failed, and holds it: leafcast upgrade abort 9.0.0"
        await until_object(tree.workloads, key("9.1.0"), says(way))
        await tree.workloads.apply(leafcast_release("9.0.0", *WAVES, attempt=1), MANAGER)
        while places.attempt("/emea/s1") != 1:
            await asyncio.sleep(0.02)
        # What it said of the try before is no answer to this one.
        await until_object(tree.workloads, key("9.0.0"), phase("Progressing"))
        places.launcher("/emea/s1", "9.0.0", **{**said, "attempt": 1})
        await places.until_wanted("/emea/s2", "9.0.0")
        assert places.attempt("/emea") == 0, "who runs it has nothing to try"


async def test_the_centre_takes_a_release_first_and_keeps_the_pieces_of_others(tmp_path):
    async with asyncio.timeout(SECONDS), upgraded_tree(tmp_path, ["/s1"]) as (tree, places):
        centre = places.of("/")
        put_pieces(tree, centre)
        (centre / "pieces" / "of-another").write_bytes(b"")
        for path in ("/", "/s1"):
            places.launcher(path)
        await tree.workloads.apply(leafcast_release("9.0.0"), MANAGER)
        await places.until_wanted("/", "9.0.0")
        assert not places.wanted("/s1"), "an edge before the centre"
        said = {"why": "it ended", "manifest": sha256(signed_manifest("9.0.0").encode())}
        places.launcher("/", "1.0.0", "rolled-back", **said)
        obj = await until_object(tree.workloads, key("9.0.0"), phase("Failed"))
        assert obj["status"]["centre"] == "rolled-back: it ended"
        assert obj["status"]["failures"] == ["/: rolled-back: it ended"]
        assert not places.wanted("/s1")
        await tree.workloads.apply(leafcast_release("9.0.0", attempt=1), MANAGER)
        while places.attempt("/") != 1:
            await asyncio.sleep(0.02)
        places.launcher("/", "9.0.0", **{**said, "attempt": 1})
        await places.until_wanted("/s1", "9.0.0")
        healthy(places, "/s1", "9.0.0")
        obj = await until_object(tree.workloads, key("9.0.0"), phase("Complete"))
        assert obj["status"]["centre"] == "healthy"
        assert (centre / "pieces" / "of-another").exists()


async def test_a_relay_that_is_away_on_its_trial_is_told_with_when_it_was_heard_last(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(release_controller, "SILENT_SECONDS", 0.05)
    async with asyncio.timeout(SECONDS), upgraded_tree(tmp_path, NODES) as (tree, places):
        put_pieces(tree, tmp_path / "centre")
        for path in NODES:
            places.launcher(path)
        await tree.workloads.apply(leafcast_release("9.0.0", *WAVES), MANAGER)
        await places.until_wanted("/emea", "9.0.0")
        manifest = sha256(signed_manifest("9.0.0").encode())
        places.launcher("/emea", "1.0.0", "starting", manifest=manifest)
        await until_object(
            tree.workloads, key("9.0.0"), lambda obj: "(1 starting)" in str(obj.get("status"))
        )
        await tree.stop(NodePath.parse("/emea"))
        tree.clock.ahead += SILENT_AFTER_SECONDS
        await tree.centre.observe(Tick())
        await until_object(
            tree.workloads,
            key("9.0.0"),
            lambda obj: "/emea (1 starting; last heard 20" in str(obj.get("status")),
        )


async def test_a_release_whose_pieces_are_not_at_the_centre_or_that_lies_says_so(tmp_path):
    async with asyncio.timeout(SECONDS), upgraded_tree(tmp_path, NODES[:1]) as (tree, _places):
        await tree.workloads.apply(leafcast_release("9.0.0"), MANAGER)
        obj = await until_object(tree.workloads, key("9.0.0"), phase("Waiting"))
        assert "--pieces" in obj["status"]["message"]
        other = leafcast_release("9.2.0", manifest=signed_manifest("9.1.0"))
        await tree.workloads.apply(other, MANAGER)
        obj = await until_object(tree.workloads, key("9.2.0"), phase("Refused"))
        assert "it is of 9.1.0, and spec.version is 9.2.0" in obj["status"]["message"]


async def test_a_release_that_says_another_size_than_a_piece_has_goes_nowhere(tmp_path):
    async with asyncio.timeout(SECONDS), upgraded_tree(tmp_path, NODES[:1]) as (tree, _places):
        put_pieces(tree, tmp_path / "centre")
        size = len(PIECES[PLATFORM])
        short = signed_manifest("9.0.0").replace(f'"length": {size}', '"length": 1')
        await tree.workloads.apply(leafcast_release("9.0.0", manifest=short), MANAGER)
        obj = await until_object(tree.workloads, key("9.0.0"), phase("Waiting"))
        assert "is not what the manifest names as leafcast-9.0.0" in obj["status"]["message"]


async def test_a_complete_release_goes_out_again_when_it_is_asked_for_and_only_then(tmp_path):
    async with asyncio.timeout(SECONDS), upgraded_tree(tmp_path, ["/s1"]) as (tree, places):
        put_pieces(tree, tmp_path / "centre")
        places.launcher("/s1")
        await tree.workloads.apply(leafcast_release("9.1.0"), MANAGER)
        await places.until_wanted("/s1", "9.1.0")
        healthy(places, "/s1", "9.1.0")
        await until_object(tree.workloads, key("9.1.0"), phase("Complete"))
        await tree.workloads.apply(leafcast_release("9.0.0"), MANAGER)
        said = await until_object(tree.workloads, key("9.0.0"), phase("Waiting"))
        assert "9.1.0 went out, which is newer" in said["status"]["message"]
        await tree.workloads.apply(leafcast_release("9.0.0", attempt=1), MANAGER)
        await places.until_wanted("/s1", "9.0.0")
        manifest = sha256(signed_manifest("9.0.0").encode())
        places.launcher("/s1", "9.0.0", manifest=manifest, attempt=1)
        said = await until_object(tree.workloads, key("9.0.0"), phase("Complete"))
        assert said["status"]["attempt"] == 1
        pieces = tmp_path / "centre" / "pieces"
        assert len([*pieces.iterdir()]) == len(PIECES)
        for version in ("9.0.0", "9.1.0"):
            await tree.workloads.delete(key(version))
        while [*pieces.iterdir()]:
            await asyncio.sleep(0.02)


async def test_pieces_of_a_release_that_was_deleted_meanwhile_go_once_the_centre_is_back(tmp_path):
    async with asyncio.timeout(SECONDS), upgraded_tree(tmp_path, ["/s1"]) as (tree, _places):
        folder = tmp_path / "centre"
        put_pieces(tree, folder)
        other, strange = b"another wheel", "f" * 64
        (folder / "pieces" / sha256(other)).write_bytes(other)
        (folder / "pieces" / strange).write_bytes(b"given for a release to come")
        await tree.workloads.apply(leafcast_release("9.0.0"), MANAGER)
        await until_object(tree.workloads, key("9.0.0"), phase("Progressing"))
        manifest = signed_manifest("9.1.0", {PLATFORM: other})
        await tree.workloads.apply(leafcast_release("9.1.0", manifest=manifest), MANAGER)
        while sha256(other) not in noted_pieces(folder):
            await asyncio.sleep(0.02)
        await tree.stop_controllers()
        for version in ("9.0.0", "9.1.0"):
            await tree.workloads.delete(key(version))
        await tree.control(tree.group)
        tree.controllers.releases.folder = folder
        while (folder / "pieces" / sha256(other)).exists():
            await asyncio.sleep(0.02)
        # The tree goes on with 9.0.0; of the other one nobody knows what it is for.
        left = {file.name for file in (folder / "pieces").iterdir()}
        assert left == {strange, *map(sha256, PIECES.values())}
        while noted_pieces(folder) != left - {strange}:
            await asyncio.sleep(0.02)


async def test_pieces_that_come_after_their_release_are_noted_too(tmp_path):
    async with asyncio.timeout(SECONDS), upgraded_tree(tmp_path, ["/s1"]) as (tree, _places):
        folder = tmp_path / "centre"
        tree.controllers.releases.folder = folder
        # The second is looked at once all was done about the first.
        for version in ("9.1.0", "9.0.0"):
            await tree.workloads.apply(leafcast_release(version), MANAGER)
            await until_object(tree.workloads, key(version), phase("Waiting"))
        put_pieces(tree, folder)
        await tree.workloads.apply(leafcast_release("9.1.0", attempt=1), MANAGER)
        while noted_pieces(folder) != {*map(sha256, PIECES.values())}:
            await asyncio.sleep(0.02)


async def test_a_release_whose_wire_nobody_reads_is_refused_and_keeps_no_other_waiting(tmp_path):
    async with asyncio.timeout(SECONDS), upgraded_tree(tmp_path, ["/s1"]) as (tree, places):
        put_pieces(tree, tmp_path / "centre")
        places.launcher("/s1")
        steering = tree.controllers.releases
        far = signed_manifest("9.2.0", wire=(3, 3))
        await tree.workloads.apply(leafcast_release("9.2.0", manifest=far), MANAGER)
        said = await until_object(tree.workloads, key("9.2.0"), phase("Refused"))
        assert "go through a release first that speaks wire 2 to 3" in said["status"]["message"]
        assert "it speaks wire 3" in steering.planned("9.2.0", "", "/")["refused"]
        assert steering.planned("9.9.9", "", "/") == {}
        newer = signed_manifest("9.3.0", wire=(2, 3))
        assert steering.planned("9.3.0", newer, "/")["goes"] == "first"
        assert "let it out for the whole tree" in steering.planned("9.3.0", newer, "/a")["refused"]
        await tree.workloads.apply(leafcast_release("9.1.0"), MANAGER)
        await places.until_wanted("/s1", "9.1.0")


async def test_what_the_pinned_publisher_did_not_sign_is_refused_before_a_piece_goes_out(tmp_path):
    async with asyncio.timeout(SECONDS), upgraded_tree(tmp_path, ["/s1"]) as (tree, places):
        places.launcher("/s1")
        data_dir = tmp_path / "centre"
        data_dir.mkdir()
        made = Arrived(data_dir)
        steering = tree.controllers.releases
        steering.folder = made.folder.folder
        steering.why_not_signed = PinnedPublisher(data_dir).why_not

        def manifest(version, *keys, **more):
            return made.folder.manifest(made.release(version, keys=keys, **more).manifest).decode()

        unsigned = manifest("9.2.0", STRANGER)
        await tree.workloads.apply(leafcast_release("9.2.0", manifest=unsigned), MANAGER)
        obj = await until_object(tree.workloads, key("9.2.0"), phase("Refused"))
        said = "spec.manifest: release: 0 of the 1 signatures that the publisher's root 1 asks for"
        assert obj["status"]["message"].startswith(said)
        assert obj["status"]["message"].endswith("have the holders of its keys sign it")
        assert tree.centre.node.release is None
        # It holds no other one up; that of another publisher is none of this tree's either.
        signed = manifest("9.1.0", KEY)
        await tree.workloads.apply(leafcast_release("9.1.0", manifest=signed), MANAGER)
        await tree.centre.until(lambda node: node.release is not None)
        own = root_after(None, wish([STRANGER], 1, [STRANGER]), STRANGER)
        other = manifest("9.3.0", STRANGER, roots=own)
        await tree.workloads.apply(leafcast_release("9.3.0", manifest=other), MANAGER)
        obj = await until_object(tree.workloads, key("9.3.0"), phase("Refused"))
        assert "the publisher whom this centre pins does not stand for it" in str(obj["status"])
        # What is in force stays so if its object brings another manifest, until that is signed.
        in_force = tree.centre.node.release.release.manifest
        altered = manifest("9.1.0", STRANGER, upgrades_from="0.0.9")
        await tree.workloads.apply(leafcast_release("9.1.0", manifest=altered), MANAGER)
        await until_object(tree.workloads, key("9.1.0"), phase("Refused"))
        assert tree.centre.node.release.release.manifest == in_force
        again = manifest("9.1.0", KEY, upgrades_from="0.0.9")
        await tree.workloads.apply(leafcast_release("9.1.0", manifest=again), MANAGER)
        await tree.centre.until(
            lambda node: node.release.release.manifest == sha256(again.encode())
        )
        await until_object(tree.workloads, key("9.1.0"), phase("Progressing"))


def test_a_centre_without_a_pin_judges_nothing_and_one_whose_pin_is_damaged_lets_nothing_out(
    tmp_path,
):
    asked, data = PinnedPublisher(tmp_path), signed_manifest("9.0.0").encode()
    assert asked.why_not(data) == ""
    made = Arrived(tmp_path)
    good = made.folder.manifest(made.release("9.0.0").manifest)
    assert (asked.why_not(good), bool(asked.why_not(data))) == ("", True)
    # The pin is followed as it changes, also within one second.
    made.folder.pinned.write_text("{}")
    assert "it lacks a signed part" in asked.why_not(good)
    made.folder.pinned.write_bytes(ROOTS.data)
    assert asked.why_not(good) == ""
    made.folder.pinned.unlink()
    assert asked.why_not(data) == ""


def test_what_newer_keys_stand_for_no_more_is_nothing_to_go_back_to(tmp_path):
    asked, made = PinnedPublisher(tmp_path), Arrived(tmp_path)
    made.folder.pinned.unlink()

    def manifest(version, **more):
        return made.folder.manifest(made.release(version, **more).manifest)

    former = manifest("9.0.0")
    moved = root_after(ROOTS, wish(releases=[STRANGER]), ROOT_KEY)
    newer = manifest("9.2.0", keys=[STRANGER], roots=moved)
    raised = root_after(ROOTS, wish(lowest="9.1.0"), ROOT_KEY)
    assert asked.why_not_back(former, {"9.0.0": former}) == ""
    said = asked.why_not_back(former, {"9.0.0": former, "9.2.0": newer})
    assert "the publisher whose 9.2.0 nodes run does not stand for it" in said
    said = asked.why_not_back(former, {"9.3.0": manifest("9.3.0", roots=raised)})
    assert "9.0.0 is below 9.1.0" in said
    assert asked.why_not(former) == ""
    # By whom the centre pins, too.
    made.folder.pinned.write_bytes(moved.data)
    assert "whom this centre pins" in asked.why_not_back(former, {})


async def test_what_a_crash_left_of_a_piece_goes_when_the_centre_starts(tmp_path):
    pieces = Places(tmp_path / "places").of("/") / "pieces"
    pieces.mkdir(parents=True)
    (pieces / f"{'e' * 64}.new").write_bytes(b"half of")
    whole = pieces / ("f" * 64)
    whole.write_bytes(b"given for a release to come")
    async with asyncio.timeout(SECONDS), upgraded_tree(tmp_path, ["/s1"]):
        while [*pieces.iterdir()] != [whole]:
            await asyncio.sleep(0.02)


async def test_a_release_that_is_deleted_goes_out_no_further_though_others_are_there(tmp_path):
    async with asyncio.timeout(SECONDS), upgraded_tree(tmp_path, NODES) as (tree, places):
        put_pieces(tree, tmp_path / "centre")
        for path in NODES:
            places.launcher(path)
        await tree.workloads.apply(leafcast_release("9.1.0", aborted=True), MANAGER)
        await until_object(tree.workloads, key("9.1.0"), phase("Aborted"))
        await tree.workloads.apply(leafcast_release("9.0.0", *WAVES), MANAGER)
        await places.until_wanted("/emea", "9.0.0")
        await tree.workloads.delete(key("9.0.0"))
        await tree.drivers[NodePath.parse("/emea/s2")].until(lambda node: node.release is None)
        assert not places.wanted("/emea/s1")
