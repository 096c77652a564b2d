"""Who may be let in: one token, one use, one path, until it expires; asking again is harmless."""

import pytest

from controllers.core.access.issued_tokens import (
    AGAIN_SECONDS_MIN,
    KEPT_MS,
    IssuedToken,
    IssuedTokens,
    TooManyTokens,
)
from schemas.enrolment.enrolment import DENIED, GRANTED, PENDING, REFUSED, JoinRequest
from schemas.records.roots import Roots
from schemas.values.identity import KeyId, NodePath, random_id

ROOTS = Roots({KeyId(random_id(b"r" * 16)): b"k" * 32})
NOW, DAY = 1_800_000_000_000, 86_400_000
STORE = "/region-1/store-7"


def handed(where=STORE, number=1, **changes) -> IssuedToken:
    form = {"made_ms": NOW, "expires_ms": NOW + DAY, **changes}
    return IssuedToken(bytes([number]) * 32, where, ROOTS, **form)


def asks(path=STORE, key="A", said="till") -> JoinRequest:
    return JoinRequest(NodePath.parse(path), "U" + key * 55, said)


def with_tokens(*ones: IssuedToken) -> IssuedTokens:
    admissions = IssuedTokens()
    for one in ones:
        admissions.issue(one, one.made_ms)
    admissions.assert_invariants()
    return admissions


def test_a_request_waits_until_it_is_decided_and_asks_the_same_again():
    one = handed()
    admissions = with_tokens(one)
    first = admissions.judge(one.token, asks(), NOW + 1)
    assert (first.state, first.changed) == (PENDING, True)
    again = admissions.judge(one.token, asks(), NOW + 2)
    assert (again.state, again.changed) == (PENDING, False)
    assert [it.path for _, it in admissions.waiting()] == [NodePath.parse(STORE)]
    admissions.decide(one.token, {NodePath.parse(STORE)}, GRANTED, NOW + 3)
    admissions.assert_invariants()
    assert admissions.judge(one.token, asks(), NOW + 4).state == GRANTED
    assert admissions.judge(one.token, asks(), NOW + 9 * DAY).state == GRANTED, "also much later"
    assert not admissions.waiting()


@pytest.mark.parametrize(
    ("decided", "undo"),
    [
        (None, f"else run `leafcast node deny {STORE}`"),
        (GRANTED, f"else run `leafcast node revoke {STORE}`"),
        (DENIED, "else make another"),
    ],
)
def test_a_token_that_was_used_is_no_use_to_another_key(decided, undo):
    one = handed()
    admissions = with_tokens(one)
    admissions.judge(one.token, asks(), NOW + 1)
    if decided:
        admissions.decide(one.token, {NodePath.parse(STORE)}, decided, NOW + 2)
    thief = admissions.judge(one.token, asks(key="B"), NOW + 3)
    assert thief.state == REFUSED
    assert "was used already, by till" in thief.reason
    assert undo in thief.remedy
    assert not thief.changed


def test_an_expired_token_is_refused_with_what_to_do_and_a_request_in_time_stays_good():
    one, asked = handed(), handed("/region-1/store-8", 2)
    admissions = with_tokens(one, asked)
    admissions.judge(asked.token, asks("/region-1/store-8"), NOW + DAY - 1)
    late = admissions.judge(one.token, asks(), NOW + DAY)
    assert late.state == REFUSED
    assert f"the token for {STORE} expired 0 s ago" in late.reason
    assert f"leafcast node add {STORE}" in late.remedy
    assert admissions.judge(asked.token, asks("/region-1/store-8"), NOW + 2 * DAY).state == PENDING


def test_a_token_is_for_its_path_alone():
    one = handed()
    admissions = with_tokens(one)
    wrong = admissions.judge(one.token, asks("/region-1/store-8"), NOW)
    assert (wrong.state, wrong.reason) == (
        REFUSED,
        f"the token is for {STORE}, not /region-1/store-8",
    )
    assert admissions.tokens[one.token] == one


def test_a_second_token_for_a_path_makes_the_first_void_but_not_who_came_with_it():
    first, second, third = (handed(number=number, made_ms=NOW + number) for number in (1, 2, 3))
    admissions = with_tokens(first)
    assert admissions.issue(second, NOW + 2) == [first.token]
    assert admissions.judge(first.token, asks(), NOW + 3).reason == "the token is void"
    admissions.judge(second.token, asks(), NOW + 3)
    admissions.decide(second.token, {NodePath.parse(STORE)}, GRANTED, NOW + 4)
    assert admissions.issue(third, NOW + 5) == []
    assert admissions.judge(second.token, asks(), NOW + 6).state == GRANTED
    admissions.assert_invariants()


def test_a_request_that_waits_goes_with_its_token():
    one = handed()
    admissions = with_tokens(one)
    admissions.judge(one.token, asks(), NOW)
    admissions.void(one.token, NOW + 1)
    assert admissions.waiting() == []
    assert admissions.judge(one.token, asks(), NOW + 2).state == REFUSED
    admissions.assert_invariants()


def test_a_token_for_several_is_good_for_so_many_paths_of_its_pattern():
    one = handed("/region-1/store-*", uses=2)
    admissions = with_tokens(one)
    for path in ("/region-1/store-1", "/region-1/store-2"):
        assert admissions.judge(one.token, asks(path), NOW).state == PENDING
    third = admissions.judge(one.token, asks("/region-1/store-3"), NOW)
    assert (third.state, "used up" in third.reason) == (REFUSED, True)
    for path in ("/region-1/shop-1", "/region-2/store-1", "/region-1/store-1/x", "/store-1"):
        assert "the token is for" in admissions.judge(one.token, asks(path), NOW).reason
    assert len(admissions.waiting()) == 2
    admissions.assert_invariants()


def test_what_is_decided_stays_so():
    one = handed()
    admissions = with_tokens(one)
    admissions.judge(one.token, asks(), NOW)
    admissions.decide(one.token, {NodePath.parse(STORE)}, DENIED, NOW + 1)
    admissions.decide(one.token, {NodePath.parse(STORE)}, GRANTED, NOW + 2)
    denied = admissions.judge(one.token, asks(), NOW + 3)
    assert (denied.state, denied.reason) == (DENIED, f"the request for {STORE} was denied")


def test_what_ended_long_ago_is_forgotten_and_nothing_that_waits():
    used, open_, waits = handed(), handed("/a/b", 2), handed("/a/c", 3)
    admissions = with_tokens(used, open_, waits)
    admissions.judge(used.token, asks(), NOW)
    admissions.decide(used.token, {NodePath.parse(STORE)}, GRANTED, NOW)
    admissions.judge(waits.token, asks("/a/c"), NOW)
    assert admissions.forget_old(NOW + KEPT_MS - 1) == []
    assert set(admissions.forget_old(NOW + KEPT_MS)) == {used.token}
    assert set(admissions.forget_old(NOW + DAY + KEPT_MS)) == {open_.token}
    assert admissions.forget_old(NOW + 100 * KEPT_MS) == []
    admissions.assert_invariants()


def test_there_is_an_end_to_tokens(monkeypatch):
    monkeypatch.setattr("controllers.core.access.issued_tokens.TOKENS_MAX", 2)
    admissions = with_tokens(handed("/a/b", 1), handed("/a/c", 2))
    with pytest.raises(TooManyTokens):
        admissions.issue(handed("/a/d", 3), NOW)


def test_there_is_an_end_to_requests_that_wait_and_the_next_one_is_told(monkeypatch):
    monkeypatch.setattr("controllers.core.access.issued_tokens.WAITING_MAX", 3)
    many, single = handed("/a/*", uses=500), handed("/b/c", 2)
    admissions = with_tokens(many, single)
    for number in range(3):
        assert admissions.judge(many.token, asks(f"/a/n{number}"), NOW).changed
    for one, path in ((many, "/a/n4"), (single, "/b/c")):
        full = admissions.judge(one.token, asks(path), NOW)
        assert (full.state, full.changed) == (PENDING, False)
        assert full.reason.startswith("3 others wait")
    assert not admissions.judge(many.token, asks("/a/n0"), NOW).reason, "who waits goes on waiting"
    admissions.decide(many.token, {NodePath.parse("/a/n0")}, DENIED, NOW + 1)
    assert admissions.judge(single.token, asks("/b/c"), NOW + 2).changed
    admissions.assert_invariants()


def test_the_more_wait_the_seldomer_each_asks():
    one = handed("/a/*", uses=500)
    admissions = with_tokens(one)
    assert admissions.again_seconds() == AGAIN_SECONDS_MIN
    for number in range(500):
        admissions.judge(one.token, asks(f"/a/n{number}"), NOW)
    assert admissions.again_seconds() == 10


def test_who_was_handed_a_token_and_is_no_node_yet_is_told_what_is_to_be_done():
    path = NodePath.parse(STORE)
    one, many = handed(), handed("/region-1/store-*", 2, uses=5)
    assert with_tokens().invited(path, NOW) == ""
    admissions = with_tokens(many, one)
    assert admissions.invited(path, NOW) == "leafcast join there with its token"
    assert admissions.invited(path, NOW + 2 * DAY) == ""
    assert admissions.invited(NodePath.parse("/region-1/shop"), NOW) == ""
    admissions.judge(one.token, asks(), NOW + 1)
    assert admissions.invited(path, NOW + 2 * DAY) == f"leafcast node approve {STORE}"


def test_what_is_meant_by_a_path_a_pattern_or_an_id_is_found_and_what_ended_is_not():
    one, many = handed(), handed("/region-1/store-*", 2, uses=5)
    admissions = with_tokens(one, many)
    assert admissions.named(STORE, NOW) == [one]
    admissions.judge(many.token, asks(), NOW)
    many = admissions.tokens[many.token]
    assert admissions.named(STORE, NOW) == [one, many]
    assert admissions.named(many.path_pattern, NOW) == admissions.named(many.token, NOW) == [many]
    assert admissions.named("/region-1/store-8", NOW) == []
    read = IssuedTokens(admissions.tokens.values())
    read.assert_invariants()
    assert read.named(STORE, NOW) == [one, many], "also those that were read"
    assert read.decide(many.token, {NodePath.parse(STORE)}, DENIED, NOW + 1) == [
        NodePath.parse(STORE)
    ]
    read.void(one.token, NOW + 1)
    assert read.named(STORE, NOW + 1) == []
    assert len(read.forget_old(NOW + DAY + KEPT_MS)) == 2
    read.assert_invariants()
    assert not read._by_path


def test_nothing_looks_through_all_tokens_for_one(monkeypatch):
    path = NodePath.parse("/a/n7")
    admissions = with_tokens(*(handed(f"/a/n{number}", number) for number in range(1, 100)))
    looked = []
    ended = IssuedToken.ended_ms
    monkeypatch.setattr(
        IssuedToken, "ended_ms", lambda self, now: looked.append(self) or ended(self, now)
    )
    asked = IssuedToken.request_at
    monkeypatch.setattr(
        IssuedToken, "request_at", lambda self, path: looked.append(self) or asked(self, path)
    )
    assert len(admissions.named(str(path), NOW)) == 1
    assert admissions.invited(path, NOW)
    assert len(looked) == 2
