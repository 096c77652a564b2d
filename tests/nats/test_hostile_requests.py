"""Requests to be let in that were captured, altered or made up, at entrances of real servers."""

import asyncio
from collections.abc import Sequence

import pytest

from leafcast.daemon.nodes.admission import JoinApproval
from leafcast.daemon.nodes.token_files import TokenFiles
from relay.adapters.server.nkey_pairs import new_user_nkey
from schemas.enrolment.enrolment import (
    DENIED,
    GRANTED,
    NO_WAY_UP,
    PENDING,
    REFUSED,
    UNKNOWN_TOKEN,
    UNREADABLE,
    JoinAnswer,
    JoinRequest,
    NoAnswer,
    SignedRequest,
    open_answer,
    plain_answer,
    seal_answer,
    sign_request,
)
from schemas.enrolment.tokens import Token, read_token
from schemas.values import codec
from schemas.values.identity import NodePath
from schemas.values.nkey_signing import nkey_signature
from schemas.values.refusals import RecordRefused
from schemas.values.wire import encode, replace
from tests.nats.conftest import until_answered
from tests.nats.raw_leaf import RawLeaf
from tests.nats.test_entrance import SEED, Hall, answered
from tests.nats.test_strangers import port_of
from tests.unit.test_admission_verbs import Hands, Place

pytestmark = [pytest.mark.nats, pytest.mark.timeout(180)]

STORE, EVIL = NodePath.parse("/ra/store-7"), NodePath.parse("/ra/evil")
KEY, EVIL_KEY = b"\1" * 32, b"\2" * 32
KEYS = 200
"""Below what an entrance takes in its five seconds."""


class RealHall(Hall):
    """A centre that decides as it does, over nodes that are in a dictionary."""

    def __init__(self, grove, folder) -> None:
        super().__init__(grove)
        self.place, self._hands, self._folder = Place(), Hands(), folder
        self.start_again()

    def start_again(self) -> None:
        """The centre's program ends, and starts with what it wrote down."""
        files, lock = TokenFiles(self._folder), asyncio.Lock()
        self.admission = JoinApproval(self.place, self.place, lock, files, self._hands, self._hands)

    async def decide(self, data: bytes) -> bytes:
        return await self.admission.decide(data)

    async def token(self, path: object, **more) -> Token:
        told = await self.admission.add([{"path": str(path), "labels": {}}], **more)
        return read_token(told["added"][0]["token"])

    async def asking(self) -> list[tuple[str, str]]:
        found = (await self.admission.requests())["requests"]
        return [(it["path"], it["nkey"]) for it in found]


@pytest.fixture
async def hall(grove, tmp_path):
    async with grove:
        made = RealHall(grove, tmp_path / "centre")
        try:
            yield made
        finally:
            await made.end()


def asked(token: Token, path: NodePath = STORE, key: bytes = KEY) -> SignedRequest:
    return sign_request(token, JoinRequest(path, new_user_nkey(key)[1]), key)


async def put(client, data: bytes) -> bytes:
    """What is answered to these bytes, once there is a way up."""
    while (said := await answered(client, data)) == plain_answer(NO_WAY_UP):
        await asyncio.sleep(0.1)
    return said


async def test_a_captured_request_changes_nothing_wherever_and_whenever_it_is_said(hall):
    centre = await hall.plant("/")
    entrances = [centre, await hall.plant("/ra", centre), await hall.plant("/rb", centre)]
    clients = [await hall.stranger(node, f"x{at}") for at, node in enumerate(entrances)]
    token, spare = await hall.token(STORE), await hall.token("/rb/other")
    request, nkey = asked(token), new_user_nkey(KEY)[1]

    async def states() -> set[str]:
        found = set()
        for client in clients:
            said = await put(client, encode(request))
            with pytest.raises(RecordRefused):
                open_answer(spare, request, said)
            found.add(open_answer(token, request, said).state)
        return found

    assert await states() == {PENDING}
    assert await hall.asking() == [(str(STORE), nkey)]
    for number in range(KEYS):
        other = asked(token, key=(number + 9).to_bytes(32, "big"))
        said = open_answer(token, other, await put(clients[number % 2], encode(other)))
        assert (said.state, "was used already" in said.reason) == (REFUSED, True)
    assert await hall.asking() == [(str(STORE), nkey)]
    await hall.admission.approve([str(STORE)])
    assert await states() == {GRANTED}
    hall.start_again()
    assert await states() == {GRANTED}
    assert hall.place.let_ins == [{STORE}]
    hall.place.nodes[STORE] = new_user_nkey(EVIL_KEY)[1]
    assert await states() == {REFUSED}, "its key is void since"
    del hall.place.nodes[STORE]
    assert await states() == {REFUSED}, "and the node was removed"

    token = await hall.token(STORE)
    request = asked(token)
    assert await states() == {PENDING}
    await hall.admission.deny([str(STORE)])
    hall.start_again()
    assert await states() == {DENIED}
    assert hall.place.let_ins == [{STORE}]
    assert await hall.asking() == []


async def test_a_relay_on_the_way_of_a_request_puts_nothing_of_its_own_in_its_place(hall):
    centre = await hall.plant("/")
    region = await hall.grove.plant("/ra", centre)
    up = await hall.grove.connect(region, region.seeds.uplink)
    await until_answered(up, "lc.ra._enrol")
    token, own, many = [
        await hall.token(STORE),
        await hall.token(EVIL),
        await hall.token("/ra/*", uses=9),
    ]
    request, mine = asked(token), asked(own, EVIL, EVIL_KEY)
    swapped = asked(token, key=EVIL_KEY)
    signed_by = {it.token_id: asked(it) for it in (own, many)}
    altered = {
        "another key": replace(request, payload=swapped.payload),
        "another key, shown to be its": replace(swapped, signature=request.signature),
        "signed with its own token": replace(request, signature=mine.signature),
        "of its own token": replace(request, token=own.token_id),
        "no proof": replace(request, proof=b""),
        "the proof of another": replace(request, proof=mine.proof),
        "its own token's signature, not the proof": replace(
            signed_by[own.token_id], proof=request.proof
        ),
        "the same by a token for several": replace(signed_by[many.token_id], proof=request.proof),
        "cut": replace(request, signature=request.signature[:-1]),
        "longer": replace(request, payload=request.payload + b"\0"),
    }
    for way, data in altered.items():
        said = (await up.request("lc.ra._enrol", encode(data), timeout=20)).data
        assert ended(said, data, (token, own, many)) in (REFUSED, UNKNOWN_TOKEN), way
        assert await hall.asking() == [], way

    # What it says in the place of the centre is not taken for its word.
    theirs = (await up.request("lc.ra._enrol", encode(mine), timeout=20)).data
    granted = JoinAnswer(PENDING, request.digest, "wait for ever")
    for said in (
        theirs,
        seal_answer(own.public, granted, b"n" * 24),
        seal_answer(token.public, JoinAnswer(DENIED, mine.digest), b"n" * 24),
        plain_answer(UNKNOWN_TOKEN),
        b"",
        b"\x93" * 1_000,
        b"\0" * 60_000,
    ):
        with pytest.raises((NoAnswer, RecordRefused)):
            open_answer(token, request, said)
    honest = (await up.request("lc.ra._enrol", encode(request), timeout=20)).data
    assert open_answer(token, request, honest).state == PENDING


def ended(said: bytes, request: SignedRequest, tokens: Sequence[Token]) -> str:
    """What was answered, to whomever of these it was sealed for."""
    (token,) = (it for it in tokens if it.token_id == request.token)
    try:
        return open_answer(token, request, said).state
    except NoAnswer as none:
        return none.word


def spelled(token: Token, payload: bytes) -> bytes:
    """A request with these bytes as its payload, well signed in each way."""
    named = f"\0{token.tree}\0{token.token_id}\0".encode() + payload
    signature = token.key.sign(b"leafcast/enrol/1" + named).signature
    proof = nkey_signature(KEY, b"leafcast/enrol-key/1" + named)
    return encode(SignedRequest(1, token.token_id, payload, signature, proof))


async def test_requests_with_odd_names_nested_or_long_are_refused_and_told_so(hall):
    centre = await hall.plant("/")
    client = await hall.stranger(centre, "x")
    token, nkey = await hall.token("/ra/*", uses=9), new_user_nkey(KEY)[1]
    good = codec.pack([str(STORE), nkey, "till", b""])
    odd = [
        *(codec.pack([str(STORE), nkey, name, b""]) for name in ODD_NAMES),
        *(codec.pack([path, nkey, "till", b""]) for path in ODD_PATHS),
        *(codec.pack([str(STORE), key, "till", b""]) for key in (f"{nkey}\n", nkey[:-1], "", "U")),
        codec.pack([str(STORE), nkey, "till", b"c" * 4097]),
        codec.pack([str(STORE), nkey]) + b"\0",
        good[:-1],
        b"\x91" * 5_000,
        b"\x81\xa1a" * 2_000 + b"\xc0",
        b"\xdd\xff\xff\xff\xff",
        b"",
    ]
    for payload in odd:
        data = spelled(token, payload)
        answer = open_answer(
            token, SignedRequest(1, token.token_id, payload, b""), await put(client, data)
        )
        assert answer.state == REFUSED, payload[:80]
        assert answer.reason.isprintable(), "what is odd is not said again as it is"
        assert await hall.asking() == [], payload[:80]
    for junk in (b"\x91" * 8_000, b"\x95" + b"\xc0" * 9_000, bytes(1_000_000), b"{}"):
        assert await put(client, junk) == plain_answer(UNREADABLE)
    said = await put(client, spelled(token, good))
    assert open_answer(token, SignedRequest(1, token.token_id, good, b""), said).state == PENDING


async def test_who_comes_in_with_the_key_of_an_entrance_alone_may_listen_to_hardly_anything(hall):
    """Each link is told of the subscriptions of all others, so many cost their square."""
    centre = await hall.plant("/")
    honest, token = await hall.stranger(centre, "x"), await hall.token(STORE)
    links = [RawLeaf() for _ in range(LINKS)]
    try:
        for number, link in enumerate(links):
            await link.open(port_of(centre.server.leaf_url), SEED, {"server_id": f"E{number}"})
            for inbox in range(LISTENED):
                link.listen(f"_INBOX.{number}.{inbox}")
            await link.taken_in()
            assert b"maximum subscriptions exceeded" in link.heard
        told = {line for line in links[0].heard.split(b"\r\n") if line.startswith(b"LS+ _INBOX.")}
        assert len(told) < 10 * LINKS
        said = await put(honest, encode(asked(token)))
        assert open_answer(token, asked(token), said).state == PENDING
    finally:
        for link in links:
            link.close()


LINKS, LISTENED = 20, 200
ODD_NAMES = ("a\nnode /ra/evil approved", "\x1b[2Jx", "a\u202eb", "a\rb", "a" * 65, "\u2028")
ODD_PATHS = (
    "/",
    "",
    "/ra",
    "/rb/other",
    "/ra/a/b",
    "/ra/../x",
    "/ra/a\nb",
    "/ra/A",
    "/ra/*",
    "ra/x",
)
