"""A key is replaced step by step: wherever that ends, the node is reached, the next try goes on."""

import asyncio
from types import SimpleNamespace

import pytest

from leafcast.ask.api import ApiError
from leafcast.daemon.nodes.node_keys import NodeKeys
from relay.adapters.server.nkey_pairs import new_user_nkey
from relay.shell.asker import AskFailed
from schemas.records.asks import AskFault
from schemas.values.identity import NodePath

STORE = NodePath.parse("/region-1/store-7")


def nkey(number: int) -> str:
    return new_user_nkey(bytes([number]) * 32)[1]


NO_POINT = "UABAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAHWN"
"""Of two and zeros, which lie on no curve."""


class Ended(Exception):
    """The centre's program ended here."""


class Bed:
    """A node, what its record says, and a centre that ends at its n-th step."""

    tree = "t" * 26

    def __init__(self) -> None:
        self.record_keys, self.own, self.next = nkey(1), nkey(1), ""
        self.made, self.ends_at, self.steps = 1, 0, 0
        self.away = self.parent_away = False
        self.now_seconds = 0.0

    def _step(self) -> None:
        self.steps += 1
        if self.steps == self.ends_at:
            raise Ended

    def make(self):
        self.made += 1
        return nkey(self.made)

    async def issue(self, drafts):
        self._step()
        self.record_keys = drafts[0].record.nkey
        assert not self.record_keys or self.own in self.record_keys.split(), "else it is cut off"
        self._step()

    async def ask_signed(self, path, verb, arguments):
        assert (path, verb) == (STORE, "rekey")
        self._step()
        if self.away:
            raise AskFailed(AskFault("Unreachable", f"{path} cannot be reached", str(path)))
        if "make" in arguments and not self.next:
            self.next = self.make()
        said = {"nkey": self.own, "next": self.next if "make" in arguments else ""}
        if arguments.get("use") == self.next and self.next in self.record_keys.split():
            self.own, self.next = self.next, ""
        self._step()
        return said

    async def admitted(self, nkeys):
        self._step()
        return not self.parent_away

    async def unconfirmed(self, parent):
        assert parent == STORE.parent
        return ["m3"]

    def edges_at(self):
        return {str(STORE): "store"}

    def holders(self):
        return {nkey(8): NodePath.parse("/region-1/other")}

    def record(self, path):
        return SimpleNamespace(nkey=self.record_keys) if path == STORE else None

    def now(self):
        return SimpleNamespace(seconds=self.now_seconds)

    async def sleep(self, seconds):
        self.now_seconds += seconds

    def keys(self) -> NodeKeys:
        """The centre's part, as a start finds it."""
        tree = SimpleNamespace(issuer=lambda: self)
        return NodeKeys(tree, self, asyncio.Lock(), self, self)


async def test_a_key_is_replaced_and_the_old_one_is_void_then():
    bed = Bed()
    assert await bed.keys().rotate(str(STORE)) == {"nkey": nkey(2), "unconfirmed": ["m3"]}
    assert bed.record_keys == bed.own == nkey(2)


async def test_whatever_step_the_centre_ends_at_the_next_try_ends_with_one_key():
    whole = Bed()
    await whole.keys().rotate(str(STORE))
    for step in range(1, whole.steps + 1):
        bed = Bed()
        bed.ends_at = step
        with pytest.raises(Ended):
            await bed.keys().rotate(str(STORE))
        assert bed.own in bed.record_keys.split(), f"step {step}"
        bed.ends_at = 0
        await bed.keys().rotate(str(STORE))
        assert bed.record_keys == bed.own != nkey(1), f"step {step}"


async def test_of_a_node_that_is_away_nothing_changes():
    bed = Bed()
    bed.away = True
    with pytest.raises(ApiError, match="cannot be reached; its keys are as they were"):
        await bed.keys().rotate(str(STORE))
    assert bed.record_keys == nkey(1)


async def test_below_a_parent_that_is_away_the_old_key_stays_in_use():
    bed = Bed()
    bed.parent_away = True
    with pytest.raises(ApiError, match="goes on with its old key"):
        await bed.keys().rotate(str(STORE))
    assert bed.own == nkey(1)
    assert bed.own in bed.record_keys.split()


@pytest.mark.parametrize("named", [nkey(8), "", NO_POINT])
async def test_a_next_key_that_no_node_can_have_changes_nothing(named):
    bed = Bed()
    bed.make = lambda: named
    with pytest.raises(ApiError, match=r"names no key of its own|answers with no key"):
        await bed.keys().rotate(str(STORE))
    assert bed.record_keys == nkey(1)


async def test_a_node_with_a_key_that_is_not_its_own_is_not_helped_to_another():
    bed = Bed()
    bed.own = nkey(9)
    with pytest.raises(ApiError, match="a key that the tree does not know"):
        await bed.keys().rotate(str(STORE))
    assert bed.record_keys == nkey(1)


@pytest.mark.parametrize("parent_away", [False, True])
async def test_a_revoked_node_has_no_key_and_it_is_said_whether_its_parent_knows(parent_away):
    bed = Bed()
    bed.parent_away = parent_away
    answer = await bed.keys().revoke(str(STORE))
    assert answer == {
        "cut": not parent_away,
        "parent": "/region-1",
        "unconfirmed": ["m3"],
        "edge": True,
    }
    assert bed.record_keys == ""
    with pytest.raises(ApiError, match="is revoked; let it in again: leafcast node add"):
        await bed.keys().rotate(str(STORE))


@pytest.mark.parametrize("verb", ["rotate", "revoke"])
async def test_a_node_that_is_none_has_no_key(verb):
    with pytest.raises(ApiError, match="there is no such node"):
        await getattr(Bed().keys(), verb)("/region-1/nobody")
