"""A relay that withholds newer snapshots is seen by those below it, and takes nothing away."""

import pytest

from schemas.records.signing import decode_envelope
from schemas.records.snapshots import read_snapshot
from schemas.values.identity import SNAPSHOT_KEY
from tests.nats.chaos_member import Member, copy_folder, spent, until
from tests.nats.chaos_tree import SOON_STALE, chaos_tree, doctor

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(300)]

HONEST, LYING = "/r1", "/r2"
OLD_VIEW = "its parent has shown it no newer snapshot"


async def test_an_edge_whose_relay_withholds_newer_snapshots_says_so_to_the_centre(tmp_path):
    """It shows the first one for ever; what it withholds takes nothing away."""
    lies = tmp_path / "lies"
    lies.write_text("snapshot")
    async with chaos_tree(tmp_path, settings=SOON_STALE) as tree:
        await tree.place("shop")
        await tree.put("shop", kept="k")
        await tree.join(HONEST, relay=True)
        await tree.join(LYING, relay=True, settings={"lies": str(lies)})
        edges = [f"{HONEST}/e1", f"{LYING}/e2"]
        for path in edges:
            await tree.join(path)
        before = await tree.exact(edges)
        seconds = await until(lambda: seen(tree, {edges[1]}), lambda: tree.told)
        print(f"\nnoticed {seconds:.1f} s later")
        assert await tree.look(edges) == before
        lies.unlink()
        await until(lambda: seen(tree, set()), lambda: tree.told)
        assert await tree.look(edges) == before


async def test_a_relay_that_shows_an_old_snapshot_is_noticed_and_changes_nothing(tmp_path):
    """It hands on all else: what is new since is taken, what is gone since stays gone."""
    edges, lies = [f"{HONEST}/e1", f"{LYING}/e2"], tmp_path / "lies"
    async with chaos_tree(tmp_path, settings=SOON_STALE) as tree:
        await tree.place("shop")
        await tree.place("gone")
        await tree.put("shop", kept="k", changed="1")
        await tree.put("gone", g="g")
        await tree.join(HONEST, relay=True)
        liar = await tree.join(LYING, relay=True, settings={"lies": str(lies)})
        for path in edges:
            await tree.join(path)
        deceived = tree.members[edges[1]]
        await tree.exact(edges)
        first = await snapshot_below(liar, "e2")
        await tree.withdraw("gone")
        await tree.put("shop", changed="2")
        await tree.exact(edges)

        lies.write_text("snapshot")
        await tree.place("late")
        await tree.put("late", oflate="l")
        before = await tree.exact(edges)
        seconds = await until(lambda: seen(tree, {edges[1]}), lambda: tree.told)
        print(f"\nnoticed {seconds:.1f} s later")
        assert await snapshot_below(liar, "e2") < (await liar.generations())[SNAPSHOT_KEY]
        assert first < (await deceived.generations())[SNAPSHOT_KEY]
        assert await tree.look(edges) == before
        said = await doctor(tree, {"leafcast.doctor.checks.SNAPSHOT_MS_MAX": 5_000})
        assert f"{edges[1]} was shown no snapshot for" in said["Staleness"]
        assert "StaleView" in said["Objects"]
        assert "do not trust" in said["Objects"]
        told = (await tree.call("events"))["events"]
        assert any("StaleView" in event["message"] for event in told)

        # Who starts again below it acts on nothing that the old one says.
        sessions = deceived.said.count("in session")
        await deceived.restart()
        await until(lambda: deceived.said.count("in session") > sessions, lambda: deceived.said)
        await tree.put("shop", changed="3")
        changed = await tree.exact(edges)
        assert spent(before, changed) == dict.fromkeys(edges, (1, 1))
        await until(lambda: seen(tree, {edges[1]}), lambda: tree.told)

        lies.unlink()
        await until(lambda: seen(tree, set()), lambda: tree.told)
        for placement in ("shop", "late"):
            await tree.counted(placement, synced=2)
        assert await tree.look(edges) == changed


async def test_an_edge_below_a_relay_restored_from_an_old_backup_keeps_the_newer_and_says_so(
    tmp_path,
):
    """Its parent is out of reach, so all that it can show is a snapshot and mail of before."""
    edge = f"{HONEST}/e1"
    async with chaos_tree(tmp_path, settings=SOON_STALE) as tree:
        await tree.place("shop")
        await tree.put("shop", kept="k", changed="1", dropped="d")
        region = await tree.join(HONEST, relay=True, wired=True)
        await tree.join(edge)
        await tree.exact([edge])
        await tree.counted("shop", synced=1)
        await region.stop()
        copy_folder(region.folder, tmp_path / "backup")
        region.start()
        await tree.put("shop", changed="2")
        await tree.drop("shop", "dropped")
        before = await tree.exact([edge])
        await tree.counted("shop", synced=1)
        await region.stop()
        region.wire.cut()
        copy_folder(tmp_path / "backup", region.folder)
        told, former = tree.members[edge], len(tree.members[edge].said)
        region.start()
        # Its parent takes no report on what it knows only an older version of: it is said here.
        seconds = await until(lambda: OLD_VIEW in told.said[former:], lambda: told.said)
        print(f"\nsaid {seconds:.1f} s later")
        assert await tree.look([edge]) == before
        # Also who starts again below it goes on with what it knew.
        await tree.members[edge].restart()
        assert await tree.exact([edge]) == before
        region.wire.mend()
        await until(lambda: seen(tree, set()), lambda: tree.told)
        await tree.counted("shop", synced=1)
        assert await tree.look([edge]) == before


async def seen(tree, paths: set[str]) -> bool:
    form = (await tree.call("status", placement="shop"))["placements"][0]
    stale = {said["path"] for said in form["exceptions"] if "StaleView" in said["reason"]}
    return stale == paths


async def snapshot_below(relay: Member, child: str) -> int:
    """The generation of the snapshot that lies in a child's mailbox."""
    subject = f"{relay.path.child(child).prefix}._mail.{SNAPSHOT_KEY}"
    async with relay.client("relay") as client:
        said = await client.jetstream().get_last_msg("MAIL", subject)
    return read_snapshot(decode_envelope(said.data).payload).generation
