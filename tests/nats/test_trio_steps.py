"""A member ends before each step of a command: the next one ends it, and nothing is half."""

import signal
from itertools import count

import pytest

from tests.nats.chaos_member import until
from tests.nats.chaos_tree import AWAY, PRODUCTION
from tests.nats.trio_tree import TrioTree

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.long]

EDGE = "/edge"
KILLED_STEP = 2


class SteppedTree(TrioTree):
    """The tree; of whom is active the process ends before the step that is named."""

    def __init__(self, folder) -> None:
        self.countdown = folder / "ends"
        super().__init__(folder, {"ends": str(self.countdown)})

    async def ended_before(self, step: int, done) -> bool:
        """Have `done` come true while the active member ends before this step; whether it did."""
        first = await self.until_active()
        # All but one hand over, which is sooner: one is killed.
        number = signal.SIGKILL if step == KILLED_STEP else signal.SIGTERM
        self.countdown.write_text(f"{step} {int(number)}")
        below = [it for path, it in self.members.items() if path != "/"]
        said = {str(it.path): it.said[-2000:] for it in below}
        await until(done, lambda: f"step {step}: {self.told} {self.said()} {said}", 90)
        if self.countdown.exists():
            self.countdown.unlink()
            return False
        await self.centres[first].ended()
        self.centres[first].start()
        await until(lambda: self.stands_by(first), lambda: str(self.said()))
        return True

    def once(self, verb, **arguments):
        """What has the daemon do something, and whether it did; for `ended_before`."""

        async def done() -> bool:
            try:
                await self._call(verb, arguments)
            except AWAY:
                return False
            return True

        return done


@pytest.fixture
async def tree(tmp_path):
    made = SteppedTree(tmp_path)
    try:
        await made.start()
        yield made
    finally:
        made.countdown.unlink(missing_ok=True)
        await made.close()


async def test_a_takeover_between_steps_of_a_rotation_leaves_one_key_in_use(tree):
    await tree.join(EDGE)
    await tree.place("web")
    keys = set()
    for step in count(1):
        has_ended = await tree.ended_before(step, tree.once("node-rotate", path=EDGE))
        keys.add(tree.told["node-rotate"]["nkey"])
        await tree.put("web", **{f"o{step}": "v"})
        await tree.exact([EDGE])
        if not has_ended:
            break
    assert step > 5
    assert len(keys) == step


async def test_a_takeover_between_steps_of_letting_in_and_revoking_leaves_nothing_half(tree):
    """Of each edge that is let in the key is void afterwards, whatever step each ends before."""
    can_end = {"node-approve", "node-revoke"}
    for step in count(1):
        path = f"/n{step}"
        added = await tree.call("node-token-add", nodes=[{"path": path, "labels": PRODUCTION}])
        edge = tree.joined_with(path, tree.token_file(added["added"][0]))

        async def asks(path=path):
            return [it["path"] for it in (await tree.call("node-requests"))["requests"]] == [path]

        await until(asks, lambda edge=edge: edge.said)
        approve = tree.once("node-approve", paths=[path])

        async def is_let_in(edge=edge, approve=approve):
            # Where it was approved before the end, nobody asks any more.
            return "is in session" in edge.said or (await approve() and False)

        if not await tree.ended_before(step, is_let_in):
            can_end -= {"node-approve"}
        if not await tree.ended_before(step, tree.once("node-revoke", path=path)):
            can_end -= {"node-revoke"}
        # Once who ended is there again all confirm it.
        revoked = await tree.call("node-revoke", path=path)
        assert (revoked["cut"], revoked["unconfirmed"]) == (True, [])
        await until(
            lambda edge=edge: "does not know its key" in edge.said, lambda edge=edge: edge.said
        )
        listed = [it["path"] for it in (await tree.call("node-list"))["nodes"]]
        assert sorted(listed) == sorted(f"/n{it}" for it in range(1, step + 1))
        await edge.stop()
        if not can_end:
            break
    assert step > 3


async def test_a_takeover_between_steps_of_a_change_of_keys_ends_with_keys_that_edges_believe(tree):
    await tree.join(EDGE)
    await tree.place("web")
    for step in count(1):
        change = tree.once("keys-change", what="signing")
        has_ended = await tree.ended_before(step, change)
        await tree.put("web", **{f"o{step}": "v"})
        await tree.exact([EDGE])
        if not has_ended:
            break
    assert step > 1
