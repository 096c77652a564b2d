"""Requests at the centre, with its clock in our hands: expiry, restarts, what is done as one."""

import asyncio
import base64
import zlib
from types import SimpleNamespace

import nkeys
import pytest

from controllers.issuing.nodes import NodeRefused
from leafcast.ask.api import ApiError
from leafcast.daemon.nodes.admission import JoinApproval
from leafcast.daemon.nodes.enrolment import Enrolment, EnrolmentFault, EnrolmentPlan
from leafcast.daemon.nodes.token_files import TokenFiles
from relay.adapters.clock import SystemClock
from relay.adapters.server.nkey_pairs import entrance_pair, new_user_nkey
from relay.ports import BusBroken
from schemas.enrolment.enrolment import (
    DENIED,
    GRANTED,
    PENDING,
    REFUSED,
    UNKNOWN_TOKEN,
    JoinRequest,
    NoAnswer,
    open_answer,
    sign_request,
)
from schemas.enrolment.tokens import read_token
from schemas.records.roots import Roots
from schemas.values.identity import KeyId, NodePath, TreeId, random_id
from schemas.values.wire import encode, replace

TREE = TreeId(random_id(b"t" * 16))
ROOTS = Roots({KeyId(random_id(b"r" * 16)): b"k" * 32})
STORE, DAY = "/region-1/store-7", 86_400
PARENT = {"leafUrls": ["tls://region:7422", "tls://other:7422"], "authorities": "-----PEM"}


class Hands:
    """A clock that stands until it is moved, and dice that never throw the same twice."""

    def __init__(self) -> None:
        self.ms, self.thrown = 1_800_000_000_000, 0

    def now(self):
        return SimpleNamespace(seconds=self.ms / 1000, wall_ms=self.ms)

    async def sleep(self, seconds: float) -> None:
        self.ms += int(seconds * 1000)
        await asyncio.sleep(0)

    def entropy(self, size: int) -> bytes:
        self.thrown += 1
        return self.thrown.to_bytes(size, "big")


class Place:
    """A tree whose nodes are in a dictionary; `let_ins` are the batches that were let in."""

    def __init__(self) -> None:
        self.nodes: dict[NodePath, str] = {}
        self.let_ins: list[set[NodePath]] = []
        self.broken = ""

    def tree_id(self):
        return TREE

    def roots(self):
        return ROOTS

    def holders(self):
        return {key: path for path, keys in self.nodes.items() for key in keys.split()}

    def has_key(self, path, nkey=""):
        keys = self.nodes.get(path, "").split()
        return nkey in keys if nkey else bool(keys)

    async def plan(self, wanted):
        plan = EnrolmentPlan(wanted)
        for at, one in enumerate(wanted):
            plan.parents[one.path.parent] = PARENT
            if self.has_key(one.path) and not one.replaces:
                error = ApiError("AlreadyExists", f"{one.path} exists", "say --replace")
                plan.faults.append(EnrolmentFault(at, error))
        return plan

    async def let_in(self, plan, nkeys):
        self.nodes |= nkeys
        self.let_ins.append(set(nkeys))
        if self.broken:
            raise BusBroken(self.broken)

    def known_of(self, path):
        return {"id": path.name}, {}

    async def parent(self, path):
        return PARENT


@pytest.fixture
def hands():
    return Hands()


@pytest.fixture
def place():
    return Place()


@pytest.fixture
def opened(hands, place, tmp_path):
    def open_() -> JoinApproval:
        """The centre's part, as a start finds it."""
        return JoinApproval(place, place, asyncio.Lock(), TokenFiles(tmp_path), hands, hands)

    return open_


async def token_for(admission, path=STORE, **more):
    added = await admission.add([{"path": path, "labels": {"env": "prod"}}], **more)
    assert not added["faults"]
    return read_token(added["added"][0]["token"])


def nkey(number: int) -> str:
    return new_user_nkey(bytes([number]) * 32)[1]


def check_free_nkey(point: bytes) -> str:
    """The nkey of any 32 bytes, checksum and all."""
    raw = bytes([nkeys.PREFIX_BYTE_USER]) + point
    return base64.b32encode(raw + nkeys.crc16(raw).to_bytes(2, "little")).decode()


async def said(admission, token, path=STORE, key=0):
    key = key or (1 if path == STORE else 10 + zlib.crc32(path.encode()) % 240)
    asked = JoinRequest(NodePath.parse(path), nkey(key), "till")
    request = sign_request(token, asked, bytes([key]) * 32)
    return open_answer(token, request, await admission.decide(encode(request)))


async def test_an_expired_token_is_refused_and_one_that_was_used_in_time_is_not(opened, hands):
    admission = opened()
    late, early = await token_for(admission), await token_for(admission, "/region-1/store-8")
    hands.ms += (DAY - 1) * 1000
    assert (await said(admission, early, "/region-1/store-8")).state == PENDING
    hands.ms += 1000
    refused = await said(admission, late)
    assert (refused.state, "expired 0 s ago" in refused.reason) == (REFUSED, True)
    hands.ms += 10 * DAY * 1000
    await admission.approve(["/region-1/store-8"])
    assert (await said(admission, early, "/region-1/store-8")).state == GRANTED


async def test_more_tokens_than_there_is_room_for_change_nothing(opened, monkeypatch):
    monkeypatch.setattr("controllers.core.access.issued_tokens.TOKENS_MAX", 2)
    admission = opened()
    first = await token_for(admission)
    nodes = [{"path": path, "labels": {}} for path in (STORE, "/region-1/store-8")]
    with pytest.raises(ApiError) as refused:
        await admission.add(nodes)
    assert refused.value.code == "TooMany"
    (left,) = (await admission.tokens())["tokens"]
    assert (left["id"], left["state"]) == (first.token_id, "open")
    assert (await said(admission, first)).state == PENDING


async def test_a_centre_that_starts_again_knows_tokens_requests_and_decisions(opened, place):
    token, denied = await token_for(opened()), await token_for(opened(), "/region-1/no")
    assert (await said(opened(), token)).state == PENDING
    await said(opened(), denied, "/region-1/no")
    await opened().deny(["/region-1/no"])
    assert [it["path"] for it in (await opened().requests())["requests"]] == [STORE]
    assert (await opened().approve([STORE]))["approved"] == [STORE]
    answer = await said(opened(), token)
    assert answer.grant.parents == tuple(PARENT["leafUrls"])
    assert answer.grant.authority == PARENT["authorities"].encode()
    assert answer.grant.roots == ROOTS
    assert (await said(opened(), denied, "/region-1/no")).state == DENIED
    assert place.let_ins == [{NodePath.parse(STORE)}]


async def test_a_centre_that_ends_as_it_lets_in_does_it_again_and_no_more(opened, place):
    admission = opened()
    token = await token_for(admission)
    await said(admission, token)
    place.broken = "its server ended"
    with pytest.raises(BusBroken):
        await admission.approve([STORE])
    place.broken = ""
    again = opened()
    assert (await said(again, token)).state == PENDING
    assert (await again.approve([STORE]))["approved"] == [STORE], "its own place is no fault"
    assert (await said(again, token)).state == GRANTED


async def test_who_was_let_in_and_replaced_since_gets_nothing_more(opened, place):
    admission = opened()
    token = await token_for(admission)
    await said(admission, token)
    await admission.approve([STORE])
    place.nodes[NodePath.parse(STORE)] = nkey(9)
    refused = await said(admission, token)
    assert refused.state == REFUSED
    assert "removed, revoked or replaced since" in refused.reason


async def test_those_named_are_let_in_all_or_none_and_of_all_those_that_can_be(opened, place):
    admission = opened()
    paths = [f"/region-1/n{n}" for n in range(3)]
    for path in paths:
        await said(admission, await token_for(admission, path), path)
    place.nodes[NodePath.parse(paths[1])] = nkey(8)
    with pytest.raises(ApiError, match="exists"):
        await admission.approve(paths)
    assert place.let_ins == []
    with pytest.raises(ApiError, match="nobody asks to be /region-1/n9"):
        await admission.approve([paths[0], "/region-1/n9"])
    assert place.let_ins == []
    told = await admission.approve([], everyone=True)
    assert told["approved"] == [paths[0], paths[2]]
    assert [fault["path"] for fault in told["faults"]] == [paths[1]]
    assert place.let_ins == [{NodePath.parse(paths[0]), NodePath.parse(paths[2])}]


async def test_of_several_that_ask_for_one_path_none_is_let_in_with_all_others(opened, place):
    admission = opened()
    tokens = [await token_for(admission, "/region-1/store-*", uses=2), await token_for(admission)]
    for key, token in enumerate(tokens, 1):
        await said(admission, token, key=key)
    other = "/region-1/n1"
    await said(admission, await token_for(admission, other), other)
    with pytest.raises(ApiError, match="2 ask to be /region-1/store-7, by different tokens"):
        await admission.approve([STORE, other])
    told = await admission.approve([], everyone=True)
    assert told["approved"] == [other]
    assert [(fault["path"], fault["reason"]) for fault in told["faults"]] == [(STORE, "Conflict")]
    assert place.let_ins == [{NodePath.parse(other)}]
    await admission.deny([tokens[0].token_id])
    assert (await admission.approve([], everyone=True))["approved"] == [STORE]
    assert place.nodes[NodePath.parse(STORE)] == nkey(2)


async def test_who_denies_a_pattern_denies_its_whole_token(opened):
    admission, pattern = opened(), "/region-1/shop-*"
    token = await token_for(admission, pattern, uses=3)
    paths = [f"/region-1/shop-{n}" for n in range(2)]
    for path in paths:
        await said(admission, token, path)
    assert await admission.deny([pattern]) == {"denied": paths, "void": [token.token_id]}
    assert (await said(admission, token, "/region-1/shop-7")).state == REFUSED


async def test_a_token_is_written_once_however_many_paths_of_it_are_decided(opened):
    admission, written = opened(), []
    token = await token_for(admission, "/region-1/shop-*", uses=9)
    paths = [f"/region-1/shop-{n}" for n in range(8)]
    for path in paths:
        await said(admission, token, path)
    keep = admission._files.keep

    def noting(ones):
        written.extend(one.token for one in ones)
        keep(ones)

    admission._files.keep = noting
    assert await admission.deny(paths[:4]) == {"denied": paths[:4], "void": []}
    assert written == [token.token_id]
    assert (await admission.approve(paths[4:]))["approved"] == paths[4:]
    assert written == [token.token_id] * 2
    assert not (await opened().requests())["requests"]


async def test_many_that_are_approved_in_advance_are_let_in_as_one(opened, place):
    admission = opened()
    paths = [f"/region-1/n{n}" for n in range(20)]
    tokens = [await token_for(admission, path, sure=True) for path in paths]
    running = asyncio.create_task(admission.run())
    try:
        answers = await asyncio.gather(
            *(said(admission, token, path) for token, path in zip(tokens, paths, strict=True))
        )
    finally:
        running.cancel()
    assert {answer.state for answer in answers} == {GRANTED}
    assert place.let_ins == [{NodePath.parse(path) for path in paths}]


async def test_a_token_that_this_run_never_handed_out_is_unknown(opened):
    admission = opened()
    token = await token_for(admission)
    stranger = await token_for(opened(), "/region-1/store-9")
    await admission.deny([STORE])
    assert (await said(admission, token)).state == REFUSED
    with pytest.raises(NoAnswer) as none:
        await said(admission, stranger)
    assert none.value.word == UNKNOWN_TOKEN


async def test_a_request_with_a_key_that_no_server_takes_is_refused_and_not_remembered(opened):
    admission = opened()
    token = await token_for(admission)
    mistyped = nkey(1)[:-1] + ("A" if nkey(1)[-1] != "A" else "B")
    request = sign_request(token, JoinRequest(NodePath.parse(STORE), mistyped), b"\1" * 32)
    answer = open_answer(token, request, await admission.decide(encode(request)))
    assert (answer.state, "checksum" in answer.reason) == (REFUSED, True)
    assert (await said(admission, token)).state == PENDING


NO_POINT = check_free_nkey(b"\x02" + b"\0" * 31)
SMALL_ORDER = check_free_nkey(b"\x01" + b"\0" * 31)


@pytest.mark.parametrize("foreign", [nkey(2), NO_POINT, SMALL_ORDER])
async def test_a_request_with_a_key_that_its_maker_has_not_is_refused_and_not_remembered(
    opened, foreign
):
    admission = opened()
    token = await token_for(admission)
    asked = JoinRequest(NodePath.parse(STORE), foreign)
    for request in (
        sign_request(token, asked, b"\1" * 32),
        replace(sign_request(token, asked, b"\1" * 32), proof=b""),
        replace(sign_request(token, asked, b"\1" * 32), proof=b"\0" * 64),
    ):
        answer = open_answer(token, request, await admission.decide(encode(request)))
        assert (answer.state, "does not show" in answer.reason) == (REFUSED, True)
    assert (await said(admission, token)).state == PENDING


async def test_nobody_is_let_in_by_a_key_that_another_node_has(opened, place):
    """A server of which two accounts have one key takes no configuration any more."""
    admission, other = opened(), "/region-1/store-8"
    tokens = [await token_for(admission, path) for path in (STORE, other)]
    for token, path in zip(tokens, (STORE, other), strict=True):
        assert (await said(admission, token, path, key=1)).state == PENDING
    with pytest.raises(NodeRefused, match=f"its key is the one of {STORE}"):
        await admission.approve([STORE, other])
    await admission.approve([STORE])
    with pytest.raises(NodeRefused, match=f"its key is the one of {STORE}; deny it"):
        await admission.approve([other])
    assert list(place.nodes) == [NodePath.parse(STORE)]


async def test_a_request_of_the_largest_size_is_kept_as_short_as_any_other(opened, tmp_path):
    """All that came with a token is in one file, which each new request of it writes anew."""
    admission, where = opened(), "/region-1/store-7"
    token = await token_for(admission, "/region-1/store-*", uses=2)
    asked = JoinRequest(NodePath.parse(where), nkey(1), "h" * 64, b"c" * 4096)
    request = encode(sign_request(token, asked, b"\1" * 32))
    assert len(await admission.decide(request)) < len(request)
    (file,) = (tmp_path / "tokens").iterdir()
    short = len(file.read_bytes())
    assert [it["path"] for it in (await opened().requests())["requests"]] == [where]
    await said(admission, token, "/region-1/store-8")
    assert len(file.read_bytes()) - short < 400


async def test_a_damaged_file_voids_its_token_and_no_other(opened, tmp_path):
    first, second = await token_for(opened()), await token_for(opened(), "/region-1/store-8")
    file = tmp_path / "tokens" / f"{first.token_id}.json"
    file.write_text(file.read_text()[:-40])
    with pytest.raises(NoAnswer):
        await said(opened(), first)
    assert (await said(opened(), second, "/region-1/store-8")).state == PENDING


async def test_nothing_that_the_centre_keeps_or_lists_holds_a_token(opened, tmp_path):
    admission = opened()
    token = await token_for(admission)
    await said(admission, token)
    kept = b"".join(file.read_bytes() for file in (tmp_path / "tokens").iterdir())
    listed = str(await admission.tokens()) + str(await admission.requests())
    for secret in (token.text, token.secret.hex()):
        assert secret not in listed
        assert secret.encode() not in kept
    assert all(file.stat().st_mode & 0o077 == 0 for file in (tmp_path / "tokens").iterdir())


async def test_the_doctor_is_told_of_tokens_that_nobody_used_yet(opened, hands):
    admission = opened()
    used = await token_for(admission)
    await token_for(admission, "/region-1/store-8")
    await said(admission, used)
    (one,) = admission.expiries()
    assert one.what == "the token for /region-1/store-8"
    assert (one.since_ms, one.until_ms) == (hands.ms, hands.ms + DAY * 1000)
    hands.ms = one.until_ms
    assert admission.expiries() == []


async def test_what_cannot_be_granted_in_advance_holds_up_no_other(opened, place, monkeypatch):
    monkeypatch.setattr("leafcast.daemon.nodes.admission.GRANTED_AT_ONCE", 2)
    admission = opened()
    paths = [f"/region-1/n{n}" for n in range(6)]
    tokens = [await token_for(admission, path, sure=True) for path in paths]
    place.nodes |= {NodePath.parse(path): nkey(9) for path in paths[:3]}
    running = asyncio.create_task(admission.run())
    try:
        asking = [said(admission, it, path) for it, path in zip(tokens, paths, strict=True)]
        await asyncio.gather(*asking[3:])
        states = [(await it).state for it in asking[:1]]
    finally:
        running.cancel()
        for one in asking[1:3]:
            one.close()
    assert states == [PENDING]
    assert set().union(*place.let_ins) == {NodePath.parse(path) for path in paths[3:]}


async def test_one_whose_parent_is_no_node_any_more_waits_and_ends_nothing(opened, place, hands):
    admission = opened()
    token = await token_for(admission)
    await said(admission, token)
    await admission.approve([STORE])

    async def gone(path):
        raise NodeRefused(path, "its parent /region-1 is no node", "add /region-1 first")

    place.parent = gone
    answer = await said(admission, token)
    assert (answer.state, "is no node" in answer.reason) == (PENDING, True)
    place.parent = Place().parent
    assert (await said(admission, token)).state == GRANTED


async def test_a_space_that_fails_meanwhile_is_tried_again(opened, place):
    admission = opened()
    token = await token_for(admission, sure=True)
    place.broken = "its server ended"
    running = asyncio.create_task(admission.run())
    try:
        asking = asyncio.create_task(said(admission, token))
        while not place.let_ins:
            await asyncio.sleep(0.01)
        place.broken = ""
        assert (await asking).state == GRANTED
    finally:
        running.cancel()
    assert len(place.let_ins) >= 2


def test_the_key_of_the_entrances_is_no_nodes_own():
    """Whoever holds a token knows it, and could show that he has it."""
    tree = SimpleNamespace(
        tree_id=lambda: TREE, issuer=lambda: SimpleNamespace(records={}, tree=TREE)
    )
    enrolling = Enrolment(tree, None, None, SystemClock(), None)
    assert enrolling.holders() == {entrance_pair(TREE)[1]: NodePath()}
