"""The centre brings machines to the nodes whose lost members they are to replace."""

import asyncio
from types import SimpleNamespace

import pytest

from leafcast.daemon.nodes.member_replacement import MemberReplacement
from leafcast.data_dir import DataDir
from leafcast.members.seats import MemberSeat, MemberSeats, judged
from leafcast.node.credentials.certificates import IssuedCertificates
from leafcast.node.member_change import NOT_LOST
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.tls.authority import (
    Authority,
    RequestRefused,
    new_key,
    requested_names,
    signing_request,
)
from relay.shell.asker import AskFailed
from schemas.enrolment.member_requests import MemberRequest
from schemas.enrolment.tokens import Token
from schemas.records.asks import AskFault
from schemas.values.identity import NodePath, TreeId

EMEA, APAC = NodePath.parse("/emea"), NodePath.parse("/apac")
TREE = TreeId("t" * 26)


class Hurried(SystemClock):
    async def sleep(self, seconds):
        del seconds
        await asyncio.sleep(0)


class Centre:
    """A centre whose nodes answer as they are told."""

    def __init__(self, folder):
        self.clock, self.answers = Hurried(), {}
        self.nodes, self.unheard = {EMEA, APAC}, asyncio.Event()
        self.seats = MemberSeats(folder)
        centre = SimpleNamespace(tree_id=lambda: TREE)
        enrolling = SimpleNamespace(record=lambda path: path if path in self.nodes else None)
        asks = SimpleNamespace(ask_signed=self.ask)
        self.replacement = MemberReplacement(
            centre, DataDir(folder), enrolling, asks, self.seats, self.clock, SystemDice()
        )

    def now_ms(self):
        return self.clock.now().wall_ms

    def asked(self, path, host="m4.example"):
        """A machine asked to be a member of a node."""
        token = Token(str(path).encode().ljust(16)[:16], TREE, b"p" * 16, path, member=True)
        listens = (f"tls://{host}:7522",)
        asked = MemberRequest(
            path, b"k" * 32, "1.0", self.now_ms(), host, 6222, 1, 2, listens=listens
        )
        seat = MemberSeat(path, "m4", token.public, self.now_ms() + 60_000, asked, replaces="m2")
        self.seats.put(seat)
        self.seats.hear(seat, self.now_ms())
        return seat

    async def ask(self, path, verb, arguments):
        del verb, arguments
        answer = self.answers.get(path)
        if answer is None:
            await self.unheard.wait()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def run_until(self, holds):
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            running = group.create_task(self.replacement.run())
            while not holds():
                await asyncio.sleep(0)
            running.cancel()


@pytest.fixture
def centre(tmp_path):
    return Centre(tmp_path)


async def test_a_node_that_does_not_answer_holds_up_no_other_one(centre):
    silent, told = centre.asked(APAC), centre.asked(EMEA)
    centre.answers[EMEA] = {"settings": b"sealed".hex()}
    await centre.run_until(lambda: not centre.seats.is_asking(told))
    assert [it.settings for it in centre.seats.of(EMEA)] == [b"sealed"]
    assert centre.seats.is_asking(silent)


async def test_a_full_disk_holds_up_one_machine_and_ends_nothing(centre, monkeypatch):
    seat, put = centre.asked(EMEA), centre.seats.put

    def full(*seats):
        monkeypatch.setattr(centre.seats, "put", put)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(centre.seats, "put", full)
    centre.answers[EMEA] = {"settings": b"sealed".hex()}
    await centre.run_until(lambda: not centre.seats.is_asking(seat))
    assert "No space left" in centre.seats.why(seat)


@pytest.mark.parametrize("is_removed", [False, True])
async def test_a_token_is_void_once_the_lost_member_is_back_or_its_node_is_none(centre, is_removed):
    seat = centre.asked(EMEA)
    if is_removed:
        centre.nodes.remove(EMEA)
    centre.answers[EMEA] = AskFailed(AskFault(NOT_LOST, "m2 runs, and is heard", "/emea"))
    await centre.run_until(lambda: centre.seats.of(EMEA) == ())
    assert centre.seats.by_token(Token(b"/emea".ljust(16), TREE, b"p" * 16, EMEA).token_id) is None
    assert not centre.seats.is_asking(seat)


async def test_a_machine_waits_while_its_node_is_not_ready_for_it(centre):
    seat = centre.asked(EMEA)
    centre.answers[EMEA] = AskFailed(AskFault("Conflict", "m3 has not caught up", "/emea"))
    await centre.run_until(lambda: centre.seats.why(seat) == "m3 has not caught up")
    assert centre.seats.is_asking(seat)


async def test_a_token_is_good_for_as_long_as_a_change_that_began_takes(centre):
    seat = centre.asked(EMEA)
    centre.answers[EMEA] = {"waits": "m4 comes in the place of m2"}
    await centre.run_until(lambda: centre.seats.of(EMEA)[0].until_ms > seat.until_ms)
    (renewed,) = centre.seats.of(EMEA)
    assert centre.seats.replacing(centre.now_ms()) == [renewed]
    late = judged(renewed, seat.asked, "1.0", seat.asked.now_ms)
    assert not late.refused


def issued(folder, *names):
    authority = Authority.make("tree", SystemClock().now().wall_ms)
    made = authority.issue(signing_request(new_key(), list(names)), SystemClock().now().wall_ms)
    found = IssuedCertificates(folder)
    (folder / "tls").mkdir()
    found.keep(EMEA, names, made, authority.certificate)


def test_it_signs_for_hosts_of_members_and_of_the_machine_alone_and_keeps_the_former(
    centre, tmp_path
):
    issued(tmp_path, "m1.example", "m2.example", "m3.example", "127.0.0.1")
    seat = centre.asked(EMEA)
    names = ["m1.example", "m3.example", "m4.example", "127.0.0.1"]
    made, _ = centre.replacement._signed(seat, signing_request(new_key(), names))
    assert "BEGIN CERTIFICATE" in made
    # A renewal before the change is done would be for too few of them.
    assert set(IssuedCertificates(tmp_path).names_of(EMEA)) == {*names, "m2.example"}
    other = signing_request(new_key(), [*names, "bank.example"])
    assert requested_names(other)
    with pytest.raises(RequestRefused, match=r"bank\.example"):
        centre.replacement._signed(seat, other)
