"""A node's next key: written down before anybody hears of it, used only once a link was opened."""

import asyncio
from types import SimpleNamespace

import pytest

from leafcast.node.credentials.own_key import FILE, OPENED_SECONDS, OwnKey
from relay.adapters.server.nkey_pairs import new_user_nkey, public_nkey

FIRST = new_user_nkey(b"1" * 32)[0]
OPENED, REFUSED = "Leafnode connection created", "Leafnode Error 'Authorization Violation'"


class Clock:
    seconds = 0.0

    def now(self):
        return SimpleNamespace(seconds=self.seconds)

    async def sleep(self, seconds):
        self.seconds += seconds
        await asyncio.sleep(0)

    def entropy(self, size):
        return b"2" * size


class Server:
    """Linked with whatever key the parent takes."""

    def __init__(self, *good: str) -> None:
        self.good, self.log, self.linked = good, [OPENED], []

    async def link_with(self, seed):
        self.linked.append(seed)
        self.log.append("Leafnode connection closed")
        self.log.append(OPENED if seed in self.good else REFUSED)


@pytest.fixture
def made(tmp_path):
    kept = [FIRST]

    def make() -> OwnKey:
        """As a start finds it."""
        clock = Clock()
        return OwnKey(tmp_path, kept[-1], kept.append, clock, clock)

    return SimpleNamespace(key=make, kept=kept, file=tmp_path / FILE)


async def test_the_next_key_is_the_same_until_it_is_used_whatever_ends_between(made):
    first = made.key().make_next()
    assert made.key().make_next() == first != public_nkey(FIRST)
    assert made.key().nkey == public_nkey(FIRST)
    key, server = made.key(), Server(FIRST)
    server.good = (*server.good, key._next())
    assert await key.use(first, server)
    assert key.nkey == first == public_nkey(made.kept[-1])
    assert not made.file.exists()
    assert await made.key().use(first, server), "again is harmless"
    assert len(server.linked) == 1


async def test_a_key_that_the_parent_does_not_take_is_not_used(made):
    key, server = made.key(), Server(FIRST)
    new = key.make_next()
    assert not await key.use(new, server)
    assert server.linked[-1] == FIRST
    assert made.kept == [FIRST]
    assert key.nkey == public_nkey(FIRST)
    assert made.key().make_next() == new, "it may be used later"
    assert key._clock.seconds >= OPENED_SECONDS


async def test_a_key_that_was_never_made_here_is_not_used(made):
    key, server = made.key(), Server(FIRST)
    assert not await key.use(new_user_nkey(b"9" * 32)[1], server)
    key.make_next()
    assert not await key.use(new_user_nkey(b"9" * 32)[1], server)
    assert server.linked == []


async def test_a_file_that_is_damaged_is_as_none(made):
    made.file.write_text("{")
    assert made.key()._next() == ""
    assert made.key().make_next()


async def test_a_start_between_writing_down_and_forgetting_goes_on_with_the_new_key(made):
    key, server = made.key(), Server(FIRST)
    new = key.make_next()
    seed = key._next()
    made.kept.append(seed)  # It ended here: the file of the next key is there still.
    again = made.key()
    assert again.nkey == new
    assert again._next() == ""
    assert await again.use(new, server)
