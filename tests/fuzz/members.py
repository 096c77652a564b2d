"""What machines say that are to be members of a node, and what is written down of that."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from nacl.secret import SecretBox

from leafcast.centre.copying import FILE as COPYING
from leafcast.centre.copying import Copying, CopyingUnusable, kept_copying
from leafcast.join.joining_member import KeptMemberRequest, read_member_note
from leafcast.members.former_runs import FILE as RUNS
from leafcast.members.former_runs import RUNS_MAX, FormerRuns
from leafcast.members.founding import LeafCertificate, founded, read_founding
from leafcast.members.membership import FILE as MEMBERSHIP
from leafcast.members.membership import (
    Machine,
    MembershipDamaged,
    Succession,
    kept_membership,
    read_membership,
)
from leafcast.members.replacing import ReplacementWish, read_wish
from leafcast.members.seats import FILE as SEATS
from leafcast.members.seats import MemberSeat, MemberSeats, SeatsDamaged, judged, seats_text
from relay.adapters.clock import SystemDice
from relay.adapters.server.nats_config import AccountSeeds
from schemas.enrolment.enrolment import GRANTED, PENDING, VERSION, NoAnswer, SealedAnswer
from schemas.enrolment.member_requests import (
    MemberAnswer,
    MemberRequest,
    open_member_answer,
    read_member_request,
    sign_member_request,
)
from schemas.enrolment.tokens import Token, answer_key
from schemas.values.refusals import RecordRefused
from schemas.values.wire import encode
from tests.fuzz.files import file
from tests.fuzz.target import Form, Target
from tests.property.test_hostile_bytes import GRANT, PATH

TOKEN = Token(b"s" * 16, GRANT.tree, b"p" * 16, PATH, member=True)
REQUEST = MemberRequest(PATH, b"k" * 32, "1.0", 7, "127.0.0.1", 1, 2, 3, "till")
ASKED = sign_member_request(TOKEN, REQUEST)
SEAT = MemberSeat(PATH, "m2", TOKEN.public, 9, REQUEST, b"sealed")
ANSWERS = (
    MemberAnswer(PENDING, ASKED.digest, "why", "what to do", 7),
    MemberAnswer(GRANTED, ASKED.digest, settings=b"sealed"),
)


def request(data: bytes) -> None:
    with suppress(RecordRefused):
        asked = read_member_request(data)
        assert read_member_request(encode(asked)) == asked
        assert judged(SEAT, asked, "1.0", 8).reason


def answer(data: bytes) -> None:
    """What the holder of the token seals."""
    sealed = bytes(SecretBox(answer_key(TOKEN.public)).encrypt(data, b"n" * 24))
    with suppress(RecordRefused, NoAnswer):
        open_member_answer(TOKEN, ASKED, encode(SealedAnswer(VERSION, sealed)))


def founding(data: bytes) -> None:
    with suppress(ValueError, TypeError):
        read_founding(data)


def foundings() -> list[bytes]:
    machines = {f"m{number}": REQUEST for number in (1, 2, 3)}
    seeds, shown = AccountSeeds("a", "b", "c", "d"), LeafCertificate("PEM", "key", "PEM")
    return [
        it.encoded()
        for with_shown in (None, shown)
        for it in founded(GRANT.tree, PATH, machines, with_shown, seeds, SystemDice(), 7).values()
    ]


def note(at: Path) -> None:
    read_member_note(at / "member-request.json")


def former_runs(at: Path) -> None:
    assert len(FormerRuns(at).begin("run")) <= RUNS_MAX


def membership(at: Path) -> None:
    change = kept_membership(at)
    if change is not None:
        assert read_membership(change.text().encode()) == change


def changed() -> str:
    machine = Machine("m.example", 6222, ("tls://m.example:7422",), "", "6b" * 32, "PEM", "key")
    machines = dict.fromkeys(("m1", "m3", "m4"), machine)
    shown = LeafCertificate("PEM", "key", "PEM")
    return Succession(1, 2, "m2", "m4", machines, "PEM", "PEM", ("m2",), shown).text()


def wish(data: bytes) -> None:
    """What a node is asked; its arguments are texts."""
    with suppress(ValueError, RecordRefused):
        asked = read_wish({"lost": "m2", "name": "m4", "request": data.decode(errors="replace")})
        assert read_wish(asked.arguments()) == asked


TARGETS = {
    "member_request": Target(request, lambda: [encode(REQUEST)], Form.MSGPACK),
    "member_answer": Target(answer, lambda: [encode(it) for it in ANSWERS], Form.MSGPACK),
    "member_founding": Target(founding, foundings, Form.JSON),
    "member_seats": file(SEATS, MemberSeats, SeatsDamaged, seats_text([SEAT])),
    "membership": file(MEMBERSHIP, membership, MembershipDamaged, changed()),
    "member_wish": Target(
        wish,
        lambda: [ReplacementWish("m2", "m4", REQUEST).arguments()["request"].encode()],
        Form.BYTES,
    ),
    "member_copying": file(COPYING, kept_copying, CopyingUnusable, asdict(Copying("m1"))),
    "member_runs": file(RUNS, former_runs, (), {"lock": "boot 1 2", "runs": ["run"]}),
    "member_note": file(
        "member-request.json",
        note,
        (),
        json.dumps(asdict(KeptMemberRequest(TOKEN.token_id, "00" * 32, 1, 2, 3))),
    ),
}
