"""Every ask has one end, whatever arrives: an answer, or why there is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.core.asks.answers import PAGE_BYTES_MAX, objects_answer, paged
from relay.core.asks.routing import (
    ANSWER_SECONDS,
    ASKS_MAX,
    CLOCK_TOLERANCE_MS,
    HOP_SECONDS,
    REMEMBERED_MAX,
    AnswerArrived,
    AnswerHere,
    AskArrived,
    AskRouter,
    LastHeard,
    PassAsk,
    SendAnswer,
)
from relay.core.instant import Instant
from schemas.records.asks import (
    RECEIPT,
    REDACTED,
    AnswerPart,
    AskFault,
    answer_parts,
    failure,
    receipt,
)
from schemas.records.records import API_ASK, AskRecord, Source, encode_payload
from schemas.records.signing import Signer
from schemas.values import codec
from schemas.values.identity import KeyId, NodePath, TreeId, random_id
from schemas.values.wire import decode, encode

SIGNER = Signer(TreeId("t" * 26), KeyId("k" * 26), b"s" * 32)
HERE = NodePath.parse("/emea")


def believing(envelope, record):
    return ""


def heard(child):
    return LastHeard(1000, silent=False) if child in ("s1", "s2") else None


def asked(number, path="/emea/s1"):
    ask = random_id(number.to_bytes(16, "big"))
    where = NodePath.parse(path)
    source = Source(API_ASK, SIGNER.tree, "", ask)
    record = AskRecord(source, 1, "", "", "node", where, 10_000, {})
    return ask, AskArrived("node", SIGNER.seal("ask", encode_payload(record)).encode())


def ends(effects, ask):
    parts = [decode(AnswerPart, e.data) for e in effects if isinstance(e, SendAnswer)]
    return [part for part in parts if part.ask == ask and part.last]


MOVES = st.lists(
    st.one_of(
        st.tuples(
            st.just("answer"), st.integers(0, 3), st.sampled_from(("s1", "s2")), st.booleans()
        ),
        st.tuples(st.just("receipt"), st.integers(0, 3), st.sampled_from(("s1", "s2"))),
        st.tuples(st.just("fault"), st.integers(0, 3), st.sampled_from(("s1", "s2"))),
        st.tuples(st.just("again"), st.integers(0, 3)),
        st.tuples(st.just("wait"), st.floats(0, 5)),
        st.tuples(st.just("noise"), st.binary(max_size=20)),
    ),
    max_size=30,
)


@given(MOVES)
def test_every_ask_ends_once_and_only_through_the_child_that_was_asked(moves):
    router, now = AskRouter(HERE, believing, heard), 0.0
    asks = [asked(number) for number in range(4)]
    effects = [e for _, arrived in asks for e in router.ask(arrived, Instant(now, 1000))]
    for move, *rest in moves:
        router.assert_invariants()
        instant = Instant(now, 1000)
        match move, rest:
            case "answer", (number, child, last):
                part = AnswerPart(asks[number][0], 1, last=last, data=child.encode())
                effects += router.answer(AnswerArrived(child, encode(part)), instant)
            case "receipt", (number, child):
                effects += router.answer(
                    AnswerArrived(child, encode(receipt(asks[number][0]))), instant
                )
            case "fault", (number, child):
                part = failure(asks[number][0], 1, AskFault("Why", "not", "/emea/s1"))
                effects += router.answer(AnswerArrived(child, encode(part)), instant)
            case "again", (number,):
                if not ends(effects, asks[number][0]):
                    assert router.ask(asks[number][1], instant) == ()
            case "wait", (seconds,):
                now += seconds
                effects += router.tick(Instant(now, 1000))
            case "noise", (data,):
                router.answer(AnswerArrived("s1", data), instant)
                router.ask(AskArrived("node", data), instant)
    effects += router.tick(Instant(now + ANSWER_SECONDS + HOP_SECONDS, 1000))
    assert router.deadline() is None
    for ask, _ in asks:
        assert len(ends(effects, ask)) == 1
    sent = [decode(AnswerPart, e.data) for e in effects if isinstance(e, SendAnswer)]
    assert all(part.data in (b"", b"s1") for part in sent)


def test_no_more_asks_are_under_way_than_the_bound():
    router, now = AskRouter(HERE, believing, heard), Instant(0.0, 1000)
    passed = [router.ask(asked(number)[1], now) for number in range(ASKS_MAX + 5)]
    assert sum(isinstance(e, PassAsk) for effects in passed for e in effects) == ASKS_MAX
    ask, arrived = asked(ASKS_MAX + 9)
    (end,) = ends(router.ask(arrived, now), ask)
    assert end.fault.reason == "Busy"


def test_a_child_that_says_receipts_and_nothing_else_is_given_up():
    router, (ask, arrived), second = AskRouter(HERE, believing, heard), asked(1), 0.0
    effects = [*router.ask(arrived, Instant(second, 1000))]
    while not ends(effects, ask):
        second += 1.0
        assert second <= ANSWER_SECONDS + 2 * HOP_SECONDS + 1
        said = AnswerArrived("s1", encode(receipt(ask)))
        effects += router.answer(said, Instant(second, 1000))
        effects += router.tick(Instant(second, 1000))
    assert ends(effects, ask)[0].fault.reason == "NoAnswer"


def test_a_child_that_keeps_all_asks_waiting_leaves_half_of_the_room_to_another():
    router, now = AskRouter(HERE, believing, heard), Instant(0.0, 1000)
    kept = [asked(number, "/emea/s1") for number in range(ASKS_MAX)]
    for _, arrived in kept:
        router.ask(arrived, now)
    for number in range(ASKS_MAX):
        ask, arrived = asked(ASKS_MAX + number, "/emea/s2")
        effects = router.ask(arrived, now)
        router.assert_invariants()
        passed = any(isinstance(effect, PassAsk) for effect in effects)
        assert passed == (number < ASKS_MAX // 2)
        # Of the other child the one that waits longest is told, and once.
        ended = kept[number][0] if passed else ask
        assert [end.fault.reason for end in ends(effects, ended)] == ["Busy"]
    assert len(router._underway) == ASKS_MAX


@pytest.mark.parametrize(
    ("path", "reason"),
    [("/emea/nobody", "NoSuchNode"), ("/emea/silent", "Unreachable"), ("/emea", "Busy")],
)
def test_nothing_is_given_up_for_an_ask_that_takes_no_place(path, reason):
    def heard_of(child):
        return LastHeard(1000, silent=True) if child == "silent" else heard(child)

    remembered = {str(number): 90_000 for number in range(REMEMBERED_MAX)}
    router, now = AskRouter(HERE, believing, heard_of, remembered=remembered), Instant(0.0, 1000)
    for number in range(ASKS_MAX):
        router.ask(asked(number, "/emea/s1")[1], now)
    ask, arrived = asked(ASKS_MAX, path)
    effects = router.ask(arrived, now)
    assert [end.fault.reason for end in ends(effects, ask)] == [reason]
    assert len(effects) == 1
    assert len(router._underway) == ASKS_MAX


def test_a_captured_ask_is_answered_once_however_often_it_is_said():
    router = AskRouter(HERE, believing, heard)
    ask, arrived = asked(1, "/emea")
    router.ask(arrived, Instant(0.0, 1000))
    assert ends(router.finish(ask, b"said"), ask)
    for second in range(1, 60):
        again = router.ask(arrived, Instant(float(second), 1000 + second * 1000))
        assert not any(isinstance(effect, SendAnswer | AnswerHere) for effect in again)
        assert router.finish(ask, b"again") == ()


def test_what_it_remembers_is_bounded_and_forgotten_only_when_expired():
    router = AskRouter(HERE, believing, heard)
    for number in range(REMEMBERED_MAX):
        ask, arrived = asked(number, "/emea")
        router.ask(arrived, Instant(0.0, 1000))
        router.finish(ask, b"")
    ask, arrived = asked(REMEMBERED_MAX, "/emea")
    (end,) = ends(router.ask(arrived, Instant(1.0, 2000)), ask)
    assert end.fault.reason == "Busy"
    router.assert_invariants()
    # All of them have expired, and are not taken again.
    later = Instant(100.0, 10_000 + CLOCK_TOLERANCE_MS + 1)
    first, captured = asked(0, "/emea")
    assert ends(router.ask(captured, later), first)[0].fault.reason == "Expired"


@given(st.integers(0, 3_000_000))
def test_an_answer_found_here_goes_up_in_parts_that_are_the_whole(size):
    router, now = AskRouter(HERE, believing, heard), Instant(0.0, 1000)
    ask, arrived = asked(1, "/emea")
    taken, here = router.ask(arrived, now)
    assert decode(AnswerPart, taken.data).number == RECEIPT
    assert isinstance(here, AnswerHere)
    data = bytes(size)
    sent = [decode(AnswerPart, effect.data) for effect in router.finish(ask, data)]
    assert sent == list(answer_parts(ask, data))
    assert b"".join(part.data for part in sent) == data
    assert [part.last for part in sent] == [False] * (len(sent) - 1) + [True]
    assert router.finish(ask, data) == ()


@given(st.lists(st.text(min_size=1, max_size=8), unique=True), st.integers(1, 5))
def test_pages_hold_every_entry_once_in_order(texts, limit):
    entries, seen, after = sorted(texts), [], ""
    while True:
        rest = [text for text in entries if text > after]
        page, after = paged(rest, limit, str, lambda text: {"name": text})
        assert len(page) <= limit
        seen += [item["name"] for item in page]
        if not after:
            break
    assert seen == entries


def test_a_page_is_bounded_in_bytes_and_holds_one_entry_at_least():
    page, after = paged(
        ["a", "b"], 10, str, lambda name: {"name": name, "text": "x" * PAGE_BYTES_MAX}
    )
    assert [item["name"] for item in page] == ["a"]
    assert after == "a"


def test_no_data_of_a_secret_is_in_an_answer():
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "s",
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": '{"data":{"p":"aHVzaA=="}}',
                "note": "kept",
            },
        },
        "data": {"p": "aHVzaA=="},
        "stringData": {"q": "hush"},
    }
    answer = objects_answer([secret], {})
    assert b"hush" not in codec.pack(answer)
    assert b"aHVzaA" not in codec.pack(answer)
    (shown,) = answer["objects"]
    assert shown["data"] == {"p": REDACTED}
    assert shown["metadata"]["annotations"] == {"note": "kept"}
    assert secret["data"] == {"p": "aHVzaA=="}
