"""What was aborted or undone does not go out again by itself: object by object, come what may."""

from contextlib import asynccontextmanager

import pytest

from schemas.content.blobs import OBJECT_MAX_BYTES
from schemas.content.manifest import read_manifest, read_root
from schemas.values import codec
from tests.unit.centre_world import SHOP, Centre, config, config_key, location, placement, target
from tests.unit.test_rollout_controller import ROLLOUT, WAVES, answer, asking, gates, phase, rollout

pytestmark = pytest.mark.leaps

GOOD, BAD, BETTER = "1", "bad", "3"


@asynccontextmanager
async def steered(tmp_path, *objects, clause=None):
    """A shop with these objects, which a Rollout steers: they are revision 1."""
    centre = Centre(tmp_path)
    await centre.inventory.apply(target("s0", "/s0"), "user")
    await centre.inventory.apply(location("all"), "user")
    async with centre.running():
        await centre.apply(*objects, placement(clause=clause))
        await centre.relay.until(lambda relay: relay.delta("shop"))
        await centre.apply(rollout())
        await centre.until_status(ROLLOUT, phase("Complete"))
        yield centre


async def content(centre, gate):
    """What a gate gives, by object: the value of its key."""
    if gate.arm is None:
        return {}
    relay, key = centre.relay, centre.relay.delta("shop").source.key
    keys = relay.ring().keys(key)
    root = await relay.load(gate.arm)
    chunks = {it.address: await relay.load(it) for it in read_root(root).chunks}
    found = {}
    for entry in read_manifest(root, chunks, keys.keys).entries:
        stored = await relay.load(entry.reference)
        plain = keys.open(entry.reference.kind, stored) if entry.mark else stored
        data = codec.unpack(plain, OBJECT_MAX_BYTES).get("data", {})
        found[entry.name] = data.get("key", "")
    return found


async def until_newest(centre, **wanted):
    """Wait until the newest gate gives just this."""

    async def gives(relay):
        return relay.delta("shop") and await content(centre, gates(relay)[0]) == wanted

    await centre.relay.until(gives)


async def ask(centre, number, action, **said):
    """Ask it of the Rollout, and wait until it is handled."""
    await centre.apply(asking(id=number, action=action, **said))
    handled = await centre.until_status(
        ROLLOUT, lambda obj: (obj["status"].get("request") or {}).get("id") == number
    )
    assert handled["status"]["request"]["outcome"] == "Done", handled["status"]["request"]
    return handled["status"]


async def until_rejected(centre, count):
    """Wait until so many objects are said to be rejected; None: nothing is."""

    def says(obj):
        rejected = obj["status"].get("rejected")
        return rejected is None if count is None else (rejected or {}).get("objects") == count

    return (await centre.until_status(ROLLOUT, says))["status"]


async def go_through(centre):
    """Whatever is under way proves good."""
    for _ in WAVES:
        await answer(centre)
        number = centre.relay.delta("shop").generation

        def moved(obj, number=number):
            newer = centre.relay.delta("shop").generation > number
            return newer or obj["status"]["phase"] == "Complete"

        await centre.until_status(ROLLOUT, moved)
    await centre.until_status(ROLLOUT, phase("Complete"))


async def abort(centre, *bad, rejected=1):
    """A revision with these objects is begun, and aborted."""
    revision = (await centre.wds.get(ROLLOUT))["status"]["revision"]
    await centre.apply(*bad)
    await centre.until_status(ROLLOUT, lambda obj: obj["status"]["revision"] > revision)
    await ask(centre, f"abort{revision}", "abort")
    await centre.until_status(ROLLOUT, phase("Aborted"))
    return await until_rejected(centre, rejected)


async def test_an_aborted_object_stays_as_it_was_when_another_one_changes(tmp_path):
    async with steered(tmp_path, config("a"), config("b")) as centre:
        status = await abort(centre, config("a", value=BAD))
        assert status["rejected"]["names"] == ["shop/configmaps/a"]
        assert (status["rejected"]["reason"], status["rejected"]["revision"]) == ("Aborted", 2)
        await centre.apply(config("b", value="2"))
        await until_newest(centre, a=GOOD, b="2")
        await go_through(centre)
        await until_newest(centre, a=GOOD, b="2")
        await until_rejected(centre, 1)
        # Now it is another one.
        await centre.apply(config("a", value=BETTER))
        await until_newest(centre, a=BETTER, b="2")
        await until_rejected(centre, None)


async def test_a_centre_that_starts_again_lets_no_aborted_object_out(tmp_path):
    async with steered(tmp_path, config("a"), config("b")) as centre:
        await abort(centre, config("a", value=BAD))
    async with centre.running():
        await centre.apply(config("b", value="2"))
        await until_newest(centre, a=GOOD, b="2")
    async with centre.running():
        await until_rejected(centre, 1)
        await centre.apply(config("b", value="3"))
        await until_newest(centre, a=GOOD, b="3")


async def test_once_the_centre_says_what_goes_out_nothing_is_rejected(tmp_path):
    async with steered(tmp_path, config("a"), config("b")) as centre:
        await abort(centre, config("a", value=BAD))
        await centre.apply(config("a", value=GOOD))
        status = await until_rejected(centre, None)
        assert "wish" not in status or not status["wish"]
        await centre.until_status(ROLLOUT, phase("Complete"))
        await centre.apply(config("a", value=BAD))
        await until_newest(centre, a=BAD, b="1")


async def test_what_an_aborted_revision_added_is_not_there_and_what_it_removed_still_is(tmp_path):
    async with steered(tmp_path, config("a"), config("b")) as centre:
        await centre.wds.delete(config_key("b"))
        await abort(centre, config("c"), rejected=2)
        await centre.apply(config("a", value="2"))
        await until_newest(centre, a="2", b="1")
        await ask(centre, "again", "retry")
        await until_newest(centre, a="2", c="1")
        await until_rejected(centre, None)


async def test_of_two_aborted_objects_the_one_that_changes_goes_out_alone(tmp_path):
    async with steered(tmp_path, config("a"), config("b")) as centre:
        await abort(centre, config("a", value=BAD), rejected=1)
        await abort(centre, config("b", value=BAD), rejected=2)
        await until_newest(centre, a=GOOD, b=GOOD)
        await centre.apply(config("b", value=BETTER))
        await until_newest(centre, a=GOOD, b=BETTER)
        await until_rejected(centre, 1)


async def test_what_was_undone_stays_undone_when_another_object_changes(tmp_path):
    async with steered(tmp_path, config("a"), config("b")) as centre:
        for value in ("2", "3"):
            await centre.apply(config("a", value=value))
            await until_newest(centre, a=value, b="1")
            await go_through(centre)
        await ask(centre, "1", "undo", revision=1, now=True)
        status = await until_rejected(centre, 1)
        assert (status["rejected"]["reason"], status["rejected"]["revision"]) == ("Undone", 3)
        await centre.apply(config("b", value="2"))
        await until_newest(centre, a="1", b="2")
        await go_through(centre)
        await ask(centre, "2", "undo", revision=2, now=True)
        await until_rejected(centre, 2)
        await centre.apply(config("c"))
        await until_newest(centre, a="2", b="1", c="1")


async def test_an_undo_that_is_aborted_leaves_what_there_was(tmp_path):
    async with steered(tmp_path, config("a")) as centre:
        await centre.apply(config("a", value="2"))
        await until_newest(centre, a="2")
        await go_through(centre)
        await ask(centre, "1", "undo", revision=1)
        await until_newest(centre, a="1")
        await ask(centre, "2", "abort")
        await until_newest(centre, a="2")
        await centre.until_status(ROLLOUT, phase("Complete"))
        await until_rejected(centre, None)


async def test_retry_lets_out_what_was_aborted_by_its_waves(tmp_path):
    async with steered(tmp_path, config("a"), config("b")) as centre:
        await abort(centre, config("a", value=BAD))
        await ask(centre, "again", "retry")
        await until_newest(centre, a=BAD, b="1")
        status = (await centre.until_status(ROLLOUT, phase("Progressing")))["status"]
        assert (status["revision"], status["wave"]) == (3, 1)
        assert [gate.below for gate in gates(centre.relay)] == [1000, 10000]


async def test_retry_of_what_is_not_rejected_is_refused(tmp_path):
    async with steered(tmp_path, config("a")) as centre:
        await centre.apply(asking(id="1", action="retry"))
        obj = await centre.until_status(ROLLOUT, lambda obj: obj["status"].get("request"))
        assert obj["status"]["request"]["outcome"] == "Refused"


async def test_a_wave_that_fails_and_aborts_by_itself_leaves_the_same_behind(tmp_path):
    failing = {"onFailure": "abort", "failures": {"maximum": 0}}
    async with steered(tmp_path, config("a"), config("b")) as centre:
        await centre.apply(rollout(**failing))
        await centre.apply(config("a", value=BAD))
        await until_newest(centre, a=BAD, b="1")
        await answer(centre, "degraded")
        await centre.until_status(ROLLOUT, phase("Aborted"))
        await until_rejected(centre, 1)
        await centre.apply(config("b", value="2"))
        await until_newest(centre, a=GOOD, b="2")


async def test_of_a_first_revision_that_was_aborted_all_goes_out_once_it_is_mended(tmp_path):
    centre = Centre(tmp_path)
    await centre.inventory.apply(target("s0", "/s0"), "user")
    await centre.inventory.apply(location("all"), "user")
    async with centre.running() as controllers:
        await controllers.caught_up()
        await centre.apply(rollout())
        await centre.apply(config("a", value=BAD), config("b"), placement())
        await until_newest(centre, a=BAD, b="1")
        await ask(centre, "1", "abort")
        await until_newest(centre)
        await until_rejected(centre, 2)
        await centre.apply(config("a", value=GOOD))
        await until_newest(centre, a=GOOD, b="1")
        await until_rejected(centre, None)


async def test_what_goes_out_takes_the_namespace_along_that_it_needs(tmp_path):
    clause = {"resources": ["configmaps", "namespaces"], "objectNames": ["new", "a", "b"]}
    async with steered(tmp_path, config("a"), clause={"apiGroup": "", **clause}) as centre:
        await abort(centre, config("b", namespace="new"), rejected=2)
        await centre.apply(config("a", namespace="new", value="2"))
        # The name is that of both.
        await centre.relay.until(lambda relay: len(gates(relay)) == 2)
        found = await content(centre, gates(centre.relay)[0])
        assert set(found) == {"a", "new"}


async def test_a_deleted_rollout_lets_no_aborted_object_out(tmp_path):
    async with steered(tmp_path, config("a"), config("b")) as centre:
        await abort(centre, config("a", value=BAD))
        await centre.wds.delete(ROLLOUT)
        await centre.apply(config("b", value="2"))
        await until_newest(centre, a=GOOD, b="2")
    async with centre.running():
        await centre.apply(config("b", value="3"))
        await until_newest(centre, a=GOOD, b="3")
        # A new one takes it up as it is.
        await centre.apply(rollout())
        await centre.until_status(ROLLOUT, phase("Complete"))
        await until_rejected(centre, 1)
        await centre.apply(config("a", value=BETTER))
        await until_newest(centre, a=BETTER, b="3")


async def test_a_person_lets_out_what_a_deleted_rollout_rejected(tmp_path):
    async with steered(tmp_path, config("a"), config("b")) as centre:
        await abort(centre, config("a", value=BAD))
    async with centre.running() as controllers:
        await controllers.caught_up()
        await centre.wds.delete(ROLLOUT)
        await centre.relay.until(lambda relay: relay.delta("shop").rollout_since == 0)
        # Nor does it go out as its waves let go of it.
        released = placement()
        released["metadata"]["annotations"] = {"leafcast.io/release-rollout": "true"}
        await centre.apply(released, config("b", value="2"))
        await until_newest(centre, a=GOOD, b="2")
        controllers.translator.release("shop")
        await until_newest(centre, a=BAD, b="2")
        await centre.relay.until(lambda relay: not relay.rejections())


@pytest.mark.parametrize("lost", ["status", "ledger"])
async def test_what_is_rejected_outlives_the_status_or_the_ledger(tmp_path, lost):
    async with steered(tmp_path, config("a"), config("b")) as centre:
        await abort(centre, config("a", value=BAD))
    if lost == "status":
        await centre.wds.set_status(ROLLOUT, {})
    else:
        centre.relay.records.clear()
        centre.relay.rejected.clear()
        centre.relay.former.clear()
    async with centre.running():
        await until_newest(centre, a=GOOD, b="1")
        await until_rejected(centre, 1)
        await centre.apply(config("b", value="2"))
        await until_newest(centre, a=GOOD, b="2")


async def test_under_another_key_the_same_object_is_rejected_still(tmp_path):
    async with steered(tmp_path, config("a"), config("b")) as centre:
        await abort(centre, config("a", value=BAD))
    async with centre.running() as controllers:
        await controllers.caught_up()
        await controllers.rotate_fleet(centre.dice)
        controllers.translator.rotate_key("shop")
        await controllers.translator.caught_up()
        await centre.apply(config("b", value="2"))
        await until_newest(centre, a=GOOD, b="2")
        await until_rejected(centre, 1)


async def test_what_cannot_be_read_any_more_lets_nothing_out(tmp_path):
    async with steered(tmp_path, config("a"), config("b")) as centre:
        status = await abort(centre, config("a", value=BAD))
    del centre.relay.blobs[status["wish"]]
    async with centre.running() as controllers:
        await centre.apply(config("b", value="2"))
        await controllers.caught_up()
        await until_newest(centre, a=GOOD, b="1")
        await ask(centre, "again", "retry")
        await until_newest(centre, a=BAD, b="2")


async def test_a_placement_that_is_deleted_and_comes_again_rejects_nothing(tmp_path):
    async with steered(tmp_path, config("a")) as centre:
        await abort(centre, config("a", value=BAD))
        await centre.wds.delete(SHOP)
        await centre.until_status(ROLLOUT, phase("Waiting"))
        await centre.apply(placement())
        await until_newest(centre, a=BAD)
        assert centre.relay.rejections() == {}
