"""Keys change in a tree of real processes: who was away follows, and no thief is believed."""

import json

import pytest

from tests.nats.chaos_member import until
from tests.nats.chaos_tree import AWAY, ChaosTree, chaos_tree

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(240)]

REGION, EDGES = "/r1", ("/r1/e1", "/r1/e2")
STAYS, AWAY_EDGE = EDGES


async def test_keys_change_while_an_edge_is_away_and_a_thief_is_not_believed(tmp_path):
    lies = tmp_path / "lies"
    async with chaos_tree(tmp_path) as tree:
        await tree.place("shop")
        await tree.put("shop", kept="k", changed="0")
        await tree.join(REGION, relay=True, settings={"lies": str(lies)})
        for path in EDGES:
            await tree.join(path)
        before = await tree.exact(EDGES)
        old = stolen(tree)

        away = tree.members[AWAY_EDGE]
        await away.stop()
        for what in ("root", "signing", "root"):
            assert (await tree.call("keys-change", what=what))["request"] is None
            await tree.call("keys-rotate-fleet")
        await tree.put("shop", changed="1")
        await tree.exact([STAYS])
        away.start()
        await tree.exact(EDGES)
        await all_follow(tree)

        # The key that is rotated away signs nothing more; neither does one that is revoked.
        await lied_to(tree, lies, old, "OutOfScope")
        thief = stolen(tree)
        await tree.call("keys-change", key=used(await tree.call("keys")))
        await tree.put("shop", changed="2")
        await tree.exact(EDGES)
        await all_follow(tree)
        await lied_to(tree, lies, thief, "RevokedKey")

        await tree.centre.restart()
        await tree.serving()
        await away.restart()
        await tree.put("shop", changed="3")
        after = await tree.exact(EDGES)
        for path in EDGES:
            assert after[path].objects["kept"] == before[path].objects["kept"], "it was touched"
        listed = await tree.call("keys")
        assert [it["records"] for it in listed["keys"] if it["state"] == "revoked"] == [0]
        assert [it["state"] for it in listed["keys"] if it["kind"] == "fleet"] == [
            "in use",
            "ended",
        ]
        assert listed["version"] == 3
        await tree.counted("shop", synced=2)


def stolen(tree: ChaosTree) -> str:
    """The signing key of the centre, as one who lies with it is told."""
    form = json.loads((tree.centre.folder / "keys" / "keys.json").read_text())
    key = form["signing"]
    return f"stolen:{form['tree']}:{key['key_id']}:{key['seed']}"


def used(listed: dict) -> str:
    found = [it for it in listed["keys"] if it["kind"] == "signing" and it["state"] == "in use"]
    return found[0]["id"]


async def all_follow(tree: ChaosTree) -> None:
    """Each node holds the keys that the centre's ledger has."""
    wanted = (await tree.centre.generations())["_keys"]
    for path in (REGION, *EDGES):
        member = tree.members[path]

        async def follows(member=member) -> bool:
            try:
                return (await member.generations()).get("_keys") == wanted
            except AWAY:
                return False

        await until(follows, lambda path=path: f"{path} does not follow the keys")


async def lied_to(tree: ChaosTree, lies, way: str, reason: str) -> None:
    """The region tells its edges what a thief signed; they refuse it, and keep what they have."""
    before = await tree.look(EDGES)
    lies.write_text(way)
    await tree.put("shop", changed=f"not {reason}")
    for path in EDGES:
        await until(lambda path=path: noted(tree, path, reason), lambda: tree.told)
    assert await tree.look(EDGES) == before
    lies.unlink()
    await tree.put("shop", changed=f"after {reason}")
    await tree.exact(EDGES)


async def noted(tree: ChaosTree, path: str, reason: str) -> bool:
    try:
        answer = await tree._call("ask", {"path": path, "verb": "node"})
    except AWAY:
        return False
    return answer["noted"].get(reason, 0) > 0
