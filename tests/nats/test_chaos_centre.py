"""The centre ends, moves, or loses what it knew: no edge loses a thing, no generation goes back."""

import shutil
import time

import pytest
import pytest_asyncio

from leafcast.backups.restoring import place_backup
from leafcast.data_dir import DataDir
from tests.nats.chaos_member import copy_folder, spent, until
from tests.nats.chaos_tree import chaos_tree, doctor

pytestmark = [
    pytest.mark.nats,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="module"),
]

REGION, EDGES = "/r1", ("/r1/e1", "/r1/e2")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tree(tmp_path_factory):
    async with chaos_tree(tmp_path_factory.mktemp("centre"), [REGION], EDGES) as grown:
        yield grown


@pytest_asyncio.fixture(loop_scope="module")
async def before(tree):
    """Two placements at all edges, and what these hold then."""
    await tree.clear(EDGES)
    await tree.place("shop")
    await tree.place("other")
    await tree.put("shop", a="1", b="2")
    await tree.put("other", c="3")
    seen = await tree.exact(EDGES)
    await tree.counted("shop", synced=2)
    await tree.counted("other", synced=2)
    return seen


async def known(tree) -> dict[str, int]:
    """The generations of all records that the region has from the centre, by key."""
    return await tree.members[REGION].generations()


async def goes_on(tree, before, generations: dict[str, int]) -> None:
    """Nothing was done twice; what is changed now is newer than all before, and arrives."""
    began = time.monotonic()
    await tree.put("shop", a="changed")
    after = await tree.exact(EDGES)
    for placement in ("shop", "other"):
        await tree.counted(placement, synced=2)
    print(f"\na change after it: exact and counted in {time.monotonic() - began:.2f} s")
    for path in EDGES:
        assert after[path].objects["b"] == before[path].objects["b"]
        assert after[path].objects["c"] == before[path].objects["c"]
    assert spent(before, after) == dict.fromkeys(EDGES, (1, 1))
    now = await known(tree)
    assert now.keys() >= generations.keys()
    assert all(now[key] >= generation for key, generation in generations.items())
    assert max(now.values()) > max(generations.values())


async def test_a_centre_that_starts_again_does_nothing_twice(tree, before):
    generations = await known(tree)
    tree.centre.kill()
    await tree.centre.ended()
    assert await tree.look(EDGES) == before
    tree.centre.start()
    await tree.serving()
    await goes_on(tree, before, generations)


async def test_the_centres_data_directory_can_be_moved(tree, before):
    generations = await known(tree)
    await tree.centre.stop()
    old = tree.centre.folder
    new = old.with_name(f"{old.name}-moved")
    old.rename(new)
    command = [word.replace(str(old), str(new)) for word in tree.centre.command]
    moved = tree.add("/", new, command)
    moved.start()
    await tree.serving()
    await goes_on(tree, before, generations)


async def test_a_centre_restored_from_its_objects_alone_loses_nothing(tree, before):
    """All that its relay kept is lost: the ledger, the mailboxes, what was reported."""
    generations = await known(tree)
    await tree.centre.stop()
    lost = tree.centre.node_folder / "jetstream" / "jetstream" / "RELAY"
    assert (lost / "streams" / "OWN").is_dir()
    shutil.rmtree(lost)
    tree.centre.start()
    await tree.serving()
    assert await tree.look(EDGES) == before
    await goes_on(tree, before, generations)


@pytest.mark.parametrize("way", ["its disk was rolled back", "it was restored from a backup"])
async def test_what_a_centre_forgot_stays_in_force_until_a_person_withdraws_it(tree, before, way):
    centre, earlier = tree.centre, tree.folder / f"earlier-{time.monotonic_ns()}"
    backup = "backup" in way
    if backup:
        await tree.call("backup", file=str(earlier))
    else:
        await centre.stop()
        copy_folder(centre.folder, earlier)
        centre.start()
        await tree.serving()
    await tree.place("extra")
    await tree.put("extra", forgotten="f")
    await tree.put("shop", a="forgotten, too")
    held = await tree.exact(EDGES)
    generations = await known(tree)
    await centre.stop()
    if backup:
        place_backup(earlier, DataDir(centre.folder), force=True)
    else:
        copy_folder(earlier, centre.folder)
    centre.start()
    await tree.serving()

    await until(lambda: orphaned(tree), lambda: tree.told)
    assert "leafcast orphans" in (await doctor(tree))["Staleness"]
    # Whoever has a newer version keeps it, and counts as pending.
    await tree.counted("shop", pending=2)
    assert await tree.look(EDGES) == held
    listed = (await tree.call("orphans"))["orphans"]
    assert {it["name"] for it in listed if it["kind"] == "delta"} == {"extra", "shop"}
    terms = {it["term"] for it in listed}
    for term in terms:
        await tree.call("withdraw", term=term)
    del tree.wanted["extra"]
    tree.wanted["shop"]["a"] = "1"
    last = await tree.exact(EDGES)
    assert spent(held, last) == dict.fromkeys(EDGES, (2, 2))
    await until(lambda: clear_of_orphans(tree), lambda: tree.told)
    left = await known(tree)
    await goes_on(tree, last, {key: generations[key] for key in generations.keys() & left.keys()})


async def orphaned(tree) -> bool:
    """Whether the placement that the centre forgot is listed, with a node that holds it."""
    listed = (await tree.call("orphans"))["orphans"]
    return any((it["kind"], it["name"]) == ("delta", "extra") for it in listed)


async def clear_of_orphans(tree) -> bool:
    return not (await tree.call("orphans"))["orphans"]
