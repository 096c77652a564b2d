"""Who may be a member of a node, by what its machine says; and what is kept of it."""

from dataclasses import replace

import pytest

from leafcast.centre.copying import Copying
from leafcast.members.seats import ASKS_MS, MemberSeat, MemberSeats, judged, seat_names
from schemas.enrolment.enrolment import NoAnswer, plain_answer, read_request, seal_answer
from schemas.enrolment.member_requests import (
    MemberAnswer,
    MemberRequest,
    open_member_answer,
    read_member_request,
    sign_member_request,
)
from schemas.enrolment.tokens import Token, TokenRefused, read_token
from schemas.values.identity import NodePath, TreeId
from schemas.values.refusals import RecordRefused
from schemas.values.wire import encode
from schemas.values.wire import replace as with_fields

CENTRE, RELAY = NodePath(), NodePath.parse("/emea")
TREE = TreeId("a" * 26)
TOKEN = Token(b"s" * 16, TREE, b"p" * 16, CENTRE, member=True)
ASKED = MemberRequest(CENTRE, b"k" * 32, "1.0", 50_000, "127.0.0.1", 1, 2, 3, "till")
SEAT = MemberSeat(CENTRE, "m2", TOKEN.public, 60_000)


def test_a_token_for_a_member_says_so_and_may_name_the_centre():
    assert read_token(TOKEN.text) == TOKEN
    with pytest.raises(TokenRefused, match="names the centre"):
        read_token(TOKEN.text.replace("lcm1", "lc1"))


def test_only_the_holder_of_the_token_asks_and_hears_the_answer():
    request = read_request(encode(sign_member_request(TOKEN, ASKED)))
    assert request.is_by(TREE, TOKEN.public)
    assert not request.is_by(TreeId("b" * 26), TOKEN.public)
    assert read_member_request(request.payload) == ASKED
    answer = MemberAnswer("pending", request.digest, "why")
    assert (
        open_member_answer(TOKEN, request, seal_answer(TOKEN.public, answer, b"n" * 24)) == answer
    )
    other = replace(TOKEN, secret=b"t" * 16)
    with pytest.raises(RecordRefused):
        open_member_answer(other, request, seal_answer(TOKEN.public, answer, b"n" * 24))
    with pytest.raises(NoAnswer):
        open_member_answer(TOKEN, request, plain_answer("UnknownToken"))


def test_who_fits_waits_for_a_person():
    verdict = judged(SEAT, ASKED, "1.0", 50_000)
    assert not verdict.refused
    assert "leafcast node grow /" in verdict.reason


@pytest.mark.parametrize(
    ("seat", "changed", "now_ms", "says", "remedy"),
    [
        (SEAT, {"path": RELAY}, 50_000, "for a member of /, and not of /emea", "for /emea"),
        (SEAT, {"release": "2.0"}, 50_000, "leafcast 2.0, and the centre 1.0", "install"),
        (SEAT, {"now_ms": 3_650_000}, 50_000, "3600 s ahead of the centre's", "NTP"),
        (SEAT, {"now_ms": 0}, 50_000, "50 s behind the centre's", "NTP"),
        (SEAT, {}, 60_001, "expired", "--member"),
        (replace(SEAT, replaces="m1", asked=ASKED), {}, 60_001, "expired", "node replace"),
        (
            replace(SEAT, asked=ASKED),
            {"key": b"o" * 32},
            50_000,
            "another machine (till)",
            "--member",
        ),
    ],
)
def test_who_does_not_fit_is_told_why_and_what_to_do(seat, changed, now_ms, says, remedy):
    verdict = judged(seat, with_fields(ASKED, **changed), "1.0", now_ms)
    assert verdict.refused
    assert says in verdict.reason
    assert remedy in verdict.remedy


def test_seats_are_found_again_and_a_fourth_machine_finds_none(tmp_path):
    seats = MemberSeats(tmp_path)
    for name, secret in zip(seat_names(CENTRE), (b"2", b"3"), strict=True):
        assert seats.free_name(CENTRE, seat_names(CENTRE)) == name
        public = replace(TOKEN, secret=secret * 16).public
        seats.put(replace(SEAT, name=name, public=public, asked=ASKED))
    again = MemberSeats(tmp_path)
    assert again.of(CENTRE) == seats.of(CENTRE)
    assert again.free_name(CENTRE, seat_names(CENTRE)) == ""
    assert again.free_name(RELAY, seat_names(RELAY)) == "m1"
    again.forget(CENTRE)
    assert MemberSeats(tmp_path).of(CENTRE) == ()


def test_a_token_is_void_only_once_there_is_one_for_each_machine(tmp_path):
    seats, names = MemberSeats(tmp_path), seat_names(CENTRE)
    given = []
    for until_ms in (1, 2, 3):
        given.append(seats.free_name(CENTRE, names))
        seats.put(replace(SEAT, name=given[-1], until_ms=until_ms))
    assert given == ["m2", "m3", "m2"]


def test_who_is_to_replace_a_member_waits_for_its_node_and_is_found_again(tmp_path):
    seat = replace(SEAT, name="m4", replaces="m2")
    seats = MemberSeats(tmp_path)
    seats.put(seat, SEAT)
    seats.hear(seat, 50_000)
    assert seats.replacing(50_000) == []
    assert "in the place of m2" in judged(seat, ASKED, "1.0", 50_000).reason
    asked = replace(seat, asked=ASKED)
    seats.put(asked, replace(SEAT, asked=ASKED))
    seats.wait(asked, "m3 has not caught up")
    assert seats.why(asked) == "m3 has not caught up"
    assert seats.why(SEAT) == ""
    found = MemberSeats(tmp_path)
    # A machine that asks no more takes nobody's place, who may long be back.
    assert found.replacing(50_000) == []
    assert found.is_asking(asked)
    found.hear(asked, 50_000)
    assert found.replacing(59_999) == [asked]
    assert found.replacing(50_000 + ASKS_MS) == []
    seats.put(replace(asked, settings=b"sealed"))
    assert not seats.is_asking(asked)
    assert seats.replacing(50_001) == []
    late = judged(seat, with_fields(ASKED, now_ms=60_001), "1.0", 60_001)
    assert late.refused
    assert "leafcast node replace" in late.remedy


def test_only_who_copies_may_be_active_and_no_other_one_once_a_node_runs_alone():
    assert Copying("m1").why_not("m1") == ""
    assert "m1 copies" in Copying("m1").why_not("m2")
    assert "remove its data directory" in Copying("m1", alone=True).why_not("m3")
