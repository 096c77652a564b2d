"""Relays at several tiers that were broken into: they change nothing, and are seen."""

from pathlib import Path

import pytest

from tests.nats.chaos_member import Space, spent, until
from tests.nats.chaos_tree import AWAY, SOON_STALE, ChaosTree, doctor

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(300)]

SITE, REGION = "/r1/s1", "/r2"
"""The liars: the last relay of four tiers, and the first one."""
HONEST = ("/r1", "/r2/s2")
BESIDE, BELOW_SITE, BELOW_REGION = "/r1/e0", f"{SITE}/e1", "/r2/s2/e2"
EDGES = (BESIDE, BELOW_SITE, BELOW_REGION)
LIED_TO = {SITE: BELOW_SITE, REGION: "/r2/s2"}
WAYS_TO_KEEP = ("Withheld", "StaleView")
WAYS = {"alter": "Forged", "forge": "UnknownKey", "redirect": "WrongKey"}


SOON_WITHHELD = {
    "relay.core.destination.withheld.WITHHELD_AFTER_SECONDS": 5.0,
    "relay.core.records.judge.REACH_SECONDS_MAX": 5.0,
    "relay.core.upstream.REACH_SECONDS_MAX": 5.0,
}
"""Times after which what does not come is said to be withheld."""


async def test_a_site_and_a_region_that_lie_are_not_believed_and_the_centre_says_so(tmp_path):
    """The region shows an old snapshot, too: who is below it sees that it is kept in the dark."""
    tree = ChaosTree(tmp_path, {**SOON_STALE, **SOON_WITHHELD})
    liars = Liars({path: tmp_path / f"lies-{path.replace('/', '-')}" for path in LIED_TO})
    try:
        before = await grown(tree, liars)
        for number, (way, reason) in enumerate(WAYS.items(), 1):
            await say(tree, liars, way, str(number))
            for path in LIED_TO.values():
                await until(
                    lambda path=path, reason=reason: noted(tree, path, reason), lambda: tree.told
                )
        await say(tree, liars, "replay", "replayed")
        # Where several are kept in the dark in one way, the first is named, with how many.
        wanted = {BELOW_SITE: ("Withheld", 1), LIED_TO[REGION]: ("StaleView", 2)}
        seconds = await until(lambda: kept_in_the_dark(tree, wanted), lambda: tree.told)
        print(f"\nseen at the centre {seconds:.1f} s after the last lie")
        deceived = await tree.look(EDGES[1:])
        assert deceived == {path: before[path] for path in deceived}
        told(await doctor(tree, {"leafcast.doctor.checks.SNAPSHOT_MS_MAX": 5_000}))

        liars.repent()
        await tree.put("shop", changed="true")
        after = await tree.exact(EDGES)
        assert spent(before, after) == {BESIDE: (5, 5), BELOW_SITE: (1, 1), BELOW_REGION: (1, 1)}
        await until(lambda: kept_in_the_dark(tree, {}), lambda: tree.told)
        for placement in ("shop", "other"):
            await tree.counted(placement, synced=3)
        assert await tree.look(EDGES) == after
    finally:
        await tree.close()


class Liars:
    """The files that say how each of them lies."""

    def __init__(self, files: dict[str, Path]) -> None:
        self.files = files

    def lie(self, way: str) -> None:
        for path, file in self.files.items():
            file.write_text(f"snapshot {way}" if path == REGION else way)

    def repent(self) -> None:
        for file in self.files.values():
            file.unlink()


async def grown(tree, liars: Liars) -> dict[str, Space]:
    """The tree, with all that is to be at its edges; what they hold."""
    await tree.start()
    await tree.place("shop")
    await tree.place("other")
    await tree.put("shop", kept="k", changed="0")
    await tree.put("other", o="o")
    for path in sorted((*HONEST, *LIED_TO)):
        lies = {"lies": str(liars.files[path])} if path in LIED_TO else {}
        await tree.join(path, relay=True, settings=lies)
    for path in EDGES:
        await tree.join(path)
    before = await tree.exact(EDGES)
    for placement in ("shop", "other"):
        await tree.counted(placement, synced=len(EDGES))
    return before


async def say(tree, liars: Liars, way: str, value: str) -> None:
    """Change an object while the liars lie: who is not below them has it, as it is."""
    liars.lie(way)
    await tree.put("shop", changed=value)
    await tree.holds(BESIDE, tree.meant())


def told(said: dict[str, str]) -> None:
    """Whether the doctor names those who were lied to, and nobody else."""
    for path in LIED_TO.values():
        assert f"{path} was sent " in said["Staleness"]
    assert f"{BELOW_REGION} was shown no snapshot for" in said["Staleness"]
    assert f"{BESIDE} " not in said["Staleness"]
    for path in LIED_TO.values():
        assert f"start the relays above {path} again" in said["Objects"]


async def noted(tree, path: str, reason: str) -> bool:
    """Whether a node noted that it was told such a lie."""
    try:
        answer = await tree._call("ask", {"path": path, "verb": "node"})
    except AWAY:
        return False
    return answer["noted"].get(reason, 0) > 0


async def kept_in_the_dark(tree, wanted: dict[str, tuple[str, int]]) -> bool:
    """Whether `status` says who is kept in the dark, how, and how many; and of nobody else."""
    form = (await tree.call("status", placement="shop"))["placements"][0]
    told = {it["path"]: (it["reason"].partition(":")[0], it["count"]) for it in form["exceptions"]}
    return {path: how for path, how in told.items() if how[0] in WAYS_TO_KEEP} == wanted
