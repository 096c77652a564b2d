"""A release goes down the tree into the folders of launchers, and who runs what comes up."""

import asyncio

import pytest
from msgspec.structs import replace

from leafcast.upgrades.fetching import ReleaseFetching
from leafcast.upgrades.release_folder import ReleaseFolder, wanted_by
from relay.core.events import RunningStated
from relay.core.release_waves import wave_of_edge, wave_of_relay
from relay.release_pieces import note_pieces
from schemas.content.blobs import open_value
from schemas.objects.selectors import LabelSelector, Requirement
from schemas.records.records import Profile, Source
from schemas.records.release_body import ReleaseWave
from schemas.releases.release_folder import LAUNCHER, LaunchNote, WantedRelease
from schemas.reports.running import Running, RunningCount
from schemas.values.identity import DestinationId, NodePath
from tests.leaping_time import LoopClock
from tests.unit.releases_world import (
    MANIFEST,
    PIECES,
    PLATFORM,
    LauncherLock,
    draft,
    release,
    sha256,
    signed_manifest,
    told,
    until_told,
    upgraded_tree,
)

pytestmark = pytest.mark.leaps

NODES = ["/emea", "/emea/s1", "/emea/s2"]
SECONDS = 60
ONLY_S1 = LabelSelector((Requirement("id", "In", ("emea-s1",)),))


async def issue(tree, body, blobs):
    (record,) = await tree.controllers.issuer.issue([draft(tree.keys.tree, body, blobs)])
    return record


async def test_a_node_that_a_wave_admits_has_the_release_whole_and_no_other_does(tmp_path):
    async with asyncio.timeout(SECONDS), upgraded_tree(tmp_path, NODES) as (tree, places):
        for path in NODES:
            places.launcher(path)
        await issue(tree, *release("9.0.0", ReleaseWave(1, selector=ONLY_S1)))
        for path in ("/emea", "/emea/s1"):
            await places.until_wanted(path, "9.0.0")
            folder = places.of(path)
            assert (folder / "manifests" / f"{sha256(MANIFEST)}.json").read_bytes() == MANIFEST
            here = {file.name: file.read_bytes() for file in (folder / "pieces").iterdir()}
            assert here == {sha256(PIECES[PLATFORM]): PIECES[PLATFORM]}
        # Those with the release say so a moment after they have it.
        mine = [("1.0.0", "", 0, state) for state in ("idle", "managed-elsewhere")]
        await until_told(
            tree, lambda said: [said.get(it) for it in mine] == [1, 1] and sum(said.values()) == 4
        )
        assert places.wanted("/emea/s2") is None


async def test_what_launchers_say_is_counted_at_the_centre_and_faults_are_named(tmp_path):
    async with asyncio.timeout(SECONDS), upgraded_tree(tmp_path, NODES) as (tree, places):
        for path in NODES:
            places.launcher(path)
        await issue(tree, *release("9.0.0", ReleaseWave(1)))
        for path in NODES:
            await places.until_wanted(path, "9.0.0")
        for path in ("/emea", "/emea/s1"):
            places.launcher(path, "9.0.0", manifest=sha256(MANIFEST))
        said = {"why": "it never joined", "manifest": sha256(MANIFEST)}
        places.launcher("/emea/s2", "1.0.0", "rolled-back", **said)
        await until_told(tree, lambda said: said.get(("9.0.0", "9.0.0", 1, "healthy")) == 2)
        await until_told(tree, lambda said: said.get(("1.0.0", "9.0.0", 1, "rolled-back")) == 1)
        (fault,) = tree.centre.node.running().faults
        assert (fault.path, fault.why) == ("/emea/s2", "it never joined")


async def test_a_node_says_what_it_runs_and_not_what_its_launcher_is_about_to_run(tmp_path):
    async with asyncio.timeout(SECONDS), upgraded_tree(tmp_path, ["/s1"]) as (tree, places):
        places.launcher("/s1")
        await issue(tree, *release("9.0.0", ReleaseWave(1)))
        await places.until_wanted("/s1", "9.0.0")
        about = {"manifest": sha256(MANIFEST), "program": "1.0.0"}
        places.launcher("/s1", "9.0.0", "starting", **about)
        said = await until_told(tree, lambda said: any(it[3] == "starting" for it in said))
        assert said[("1.0.0", "9.0.0", 1, "starting")] == 1
        places.launcher("/s1", "9.0.0", "starting", manifest=sha256(MANIFEST))
        await until_told(tree, lambda said: said.get(("9.0.0", "9.0.0", 1, "starting")))


async def test_who_has_no_launcher_or_pins_no_publisher_takes_nothing_and_is_counted_so(tmp_path):
    async with asyncio.timeout(SECONDS), upgraded_tree(tmp_path, NODES) as (tree, places):
        places.launcher("/emea/s1")
        (places.of("/emea/s1") / "pinned.json").unlink()
        await issue(tree, *release("9.0.0", ReleaseWave(1)))
        counted = await until_told(
            tree, lambda said: said.get(("1.0.0", "9.0.0", 1, "pins-no-publisher"))
        )
        assert counted[("1.0.0", "9.0.0", 1, "pins-no-publisher")] == 1
        await until_told(
            tree, lambda said: said.get(("1.0.0", "9.0.0", 1, "managed-elsewhere")) == 2
        )
        assert not any(places.wanted(path) for path in NODES)


async def test_what_a_launcher_left_behind_that_runs_no_more_counts_for_nothing(tmp_path):
    async with asyncio.timeout(10 * SECONDS), upgraded_tree(tmp_path, NODES) as (tree, places):
        places.launcher("/emea/s1")
        await issue(tree, *release("9.0.0", ReleaseWave(1)))
        await places.until_wanted("/emea/s1", "9.0.0")
        await until_told(tree, lambda said: said.get(("1.0.0", "9.0.0", 1, "installing")))
        places.end_launcher("/emea/s1")
        counted = await until_told(
            tree, lambda said: said.get(("1.0.0", "9.0.0", 1, "managed-elsewhere")) == 3
        )
        assert ("1.0.0", "9.0.0", 1, "installing") not in counted
        # It comes back.
        places.launcher("/emea/s1", "9.0.0", manifest=sha256(MANIFEST))
        await until_told(tree, lambda said: said.get(("9.0.0", "9.0.0", 1, "healthy")))


async def test_a_release_that_is_taken_back_leaves_nodes_and_stores_as_they_are(tmp_path):
    async with asyncio.timeout(SECONDS), upgraded_tree(tmp_path, NODES) as (tree, places):
        places.launcher("/emea/s1")
        record = await issue(tree, *release("9.0.0", ReleaseWave(1)))
        await places.until_wanted("/emea/s1", "9.0.0")
        await tree.controllers.issuer.delete([record.source.key])
        for path in map(NodePath.parse, NODES):
            await tree.drivers[path].until(lambda node: node.release is None)
        assert places.wanted("/emea/s1") == "9.0.0"


@pytest.mark.parametrize("attached", [True, False])
async def test_a_child_that_tells_of_more_nodes_than_there_are_counts_for_none(tmp_path, attached):
    path = "/emea/s1" if attached else "/emea"
    async with asyncio.timeout(SECONDS), upgraded_tree(tmp_path, NODES[:2]) as (tree, places):
        await until_told(tree, lambda said: sum(said.values()) == 3)
        places.keepers[NodePath.parse(path)].cancel()
        driver = tree.drivers[NodePath.parse(path)]
        await driver.observe(RunningStated(Running((RunningCount("6.6.6", "", 0, "healthy", 9),))))
        counted = await until_told(tree, lambda said: sum(said.values()) < 3)
        assert not any(version == "6.6.6" for version, *_ in counted)
        assert sum(told(tree).values()) == (2 if attached else 1)


def test_a_relay_is_of_the_first_wave_that_admits_somebody_below_it(profile_of):
    waves = (ReleaseWave(1, selector=ONLY_S1), ReleaseWave(2))
    first, second = profile_of("/emea/s1"), profile_of("/apac/s2")
    assert [wave_of_edge(waves, it).number for it in (first, second)] == [1, 2]
    assert wave_of_relay(waves, NodePath.parse("/emea"), [first]).number == 1
    assert wave_of_relay(waves, NodePath.parse("/apac"), [second]).number == 2
    assert wave_of_relay(waves[:1], NodePath.parse("/apac"), [second]) is None
    relays_first = (ReleaseWave(1, relays=1, edges=False),)
    assert wave_of_edge(relays_first, first) is None
    assert wave_of_relay(relays_first, NodePath.parse("/emea"), []).number == 1
    assert wave_of_relay(relays_first, NodePath.parse("/emea/de"), []) is None


@pytest.fixture
def profile_of():
    def made(text):
        path = NodePath.parse(text)
        name = "-".join(path.names)
        source = Source("edge.kubestellar.io/SyncTarget", "inv", "", name)
        return Profile(source, 1, "", "", DestinationId(name), path, {"id": name}, {}, {})

    return made


@pytest.mark.parametrize("state", ["installing", "refused"])
async def test_files_that_are_gone_are_fetched_again_for_a_launcher_that_lacks_them(
    tmp_path, state
):
    async with asyncio.timeout(SECONDS), upgraded_tree(tmp_path, ["/s1"]) as (tree, places):
        places.launcher("/s1")
        await issue(tree, *release("9.0.0", ReleaseWave(1)))
        await places.until_wanted("/s1", "9.0.0")
        piece = places.of("/s1") / "pieces" / sha256(PIECES[PLATFORM])
        piece.unlink()
        places.launcher("/s1", "1.0.0", state, why="lacks", manifest=sha256(MANIFEST))
        while not piece.exists():
            await asyncio.sleep(0.02)
        assert piece.read_bytes() == PIECES[PLATFORM]


async def test_a_file_that_comes_wrong_again_and_again_is_refused_until_it_is_retried(tmp_path):
    body, blobs = release("9.0.0", ReleaseWave(1))
    of = {it.address: open_value(it, blobs[it.address], blobs) for it in body.content}
    fetching = ReleaseFetching(ReleaseFolder(tmp_path), PLATFORM, LoopClock())
    loaded = []

    async def load(reference):
        loaded.append(reference)
        return of[reference.address]

    async def fetched(wanted, looks):
        """How often its manifest was had, by somebody who looks each minute."""
        loaded.clear()
        for _ in range(looks):
            await fetching.fetch(wanted, load)
            await asyncio.sleep(61)
        return loaded.count(wanted.content[1])

    wrong = "0" * 64
    piece, other = body.pieces
    altered = replace(body, pieces=(replace(piece, sha256=wrong), other))
    assert await fetched(altered, 3) == 3
    assert fetching.refused == ""
    assert await fetched(altered, 5) == 1
    said = f"piece {wrong[:12]} has another hash than its record names, 4 times; have it fetched"
    assert fetching.refused == f"{said} anew: leafcast upgrade retry 9.0.0, at the centre"
    again = replace(altered, attempt=1)
    await fetching.fetch(again, load)
    assert fetching.refused == ""
    of[body.content[0].address] = b"another"
    assert await fetched(replace(body, manifest=wrong), 9) == 0
    assert fetching.refused.startswith("its manifest is another than the one that was chosen, 4")
    of[body.content[0].address] = MANIFEST
    await fetching.fetch(body, load)
    assert (fetching.refused, ReleaseFolder(tmp_path).wanted()) == ("", wanted_by(body))


async def test_room_is_needed_for_what_is_not_here_yet(tmp_path, monkeypatch):
    pieces = {PLATFORM: b"wheel" * 1_000_000, "linux-arm64": b"none"}
    body, blobs = release("9.0.0", ReleaseWave(1), pieces=pieces)
    body = replace(body, pieces=tuple(replace(it, platforms=(PLATFORM,)) for it in body.pieces))
    monkeypatch.setattr("leafcast.upgrades.release_folder.free_bytes", lambda _place: 9_999_999)

    async def load(reference):
        return open_value(reference, blobs[reference.address], blobs)

    fetching = ReleaseFetching(ReleaseFolder(tmp_path), PLATFORM, LoopClock())
    await fetching.fetch(body, load)
    said = f"9 MB are free at {tmp_path}, and 11 MB are needed to fetch it: make room"
    assert fetching.refused == f"it cannot be kept: {said}"
    large, _ = body.pieces
    (tmp_path / "pieces" / large.sha256).write_bytes(pieces[PLATFORM])
    fetching.rest()
    await fetching.fetch(body, load)
    assert (fetching.refused, ReleaseFolder(tmp_path).wanted()) == ("", wanted_by(body))


def test_a_piece_is_as_large_as_what_is_fetched_of_it():
    body, _ = release("9.0.0", ReleaseWave(1))
    for at in range(2):
        for size in (1, body.pieces[at].size + 1):
            pieces = [*body.pieces]
            pieces[at] = replace(pieces[at], size=size)
            with pytest.raises(ValueError, match="is not as large as its stretches"):
                replace(body, pieces=tuple(pieces))


def test_the_next_release_leaves_the_launcher_what_it_installs_now(tmp_path):
    folder = ReleaseFolder(tmp_path)
    data = signed_manifest("9.0.0").encode()
    for name in ("manifests", "pieces"):
        (tmp_path / name).mkdir()
    for each in (*PIECES.values(), b"of another"):
        (tmp_path / "pieces" / sha256(each)).write_bytes(each)
    (tmp_path / "manifests" / f"{sha256(data)}.json").write_bytes(data)
    folder.want(WantedRelease("9.0.0", sha256(data)))
    following, _ = release("9.1.0", pieces={PLATFORM: b"wheel of the next" * 1000})
    folder.begin(following)
    assert {it.read_bytes() for it in (tmp_path / "pieces").iterdir()} == {*PIECES.values()}
    (tmp_path / LAUNCHER).write_text(LaunchNote("9.0.0", manifest=sha256(data)).text)
    lock = LauncherLock(tmp_path)
    folder.begin(following)
    lock.close()
    assert [*(tmp_path / "pieces").iterdir()] == []
    assert [it.read_bytes() for it in (tmp_path / "manifests").iterdir()] == [data]


def test_a_machine_of_the_centre_keeps_what_releases_name_and_lets_former_ones_go(tmp_path):
    folder, strange = ReleaseFolder(tmp_path, is_source=True), b"given for a release to come"
    data = signed_manifest("8.0.0").encode()
    for name in ("manifests", "pieces"):
        (tmp_path / name).mkdir()
    for each in (*PIECES.values(), strange):
        (tmp_path / "pieces" / sha256(each)).write_bytes(each)
    (tmp_path / "manifests" / f"{sha256(data)}.json").write_bytes(data)
    named, _ = PIECES.values()
    note_pieces(tmp_path, [sha256(named)])
    following, _ = release("9.1.0", pieces={PLATFORM: b"wheel of the next" * 1000})
    folder.begin(following)
    assert {it.read_bytes() for it in (tmp_path / "pieces").iterdir()} == {named, strange}
    assert [*(tmp_path / "manifests").iterdir()] == []
