"""Whatever bytes come, from above, below or a file: a value or a typed refusal, in little room."""

import json
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leafcast.ask.remote import checked_answer
from leafcast.join.kept_grant import SIZE_MAX_BYTES, GrantUnreadable, KeptGrant, read_grant
from leafcast.show.sanitize import sanitize, sanitize_lines
from relay.adapters.jetstream.records import hops_of, mail_slot, own_record, reported
from relay.adapters.jetstream.stream_reader import Stored
from relay.adapters.server.nkey_pairs import new_user_nkey
from relay.adapters.spaces.bucket_values import VALUE_MAX_BYTES, parts_named
from relay.adapters.spaces.bucket_values import unpack as unpack_value
from relay.core.asks.routing import AnswerArrived, AskArrived, AskRouter
from relay.core.events import HelloArrived, LinkChanged, MailArrived, ReportArrived, Tick, Welcomed
from relay.core.instant import Instant
from relay.objects import stored_object
from relay.shell.asker import AskFailed
from relay.space_errors import SpaceError
from schemas.records.asks import AnswerPart, AskFault
from schemas.records.records import RECORDS, encode_payload
from schemas.records.roots import Roots
from schemas.reports.link import Welcome
from schemas.values import subjects
from schemas.values.identity import KeyId, NodePath, TreeId
from schemas.values.refusals import BadIdentity, CodecError
from schemas.values.wire import encode
from tests.property import wire_records as wire
from tests.property.examples import examples
from tests.property.test_wire_laws import any_bytes, packable, signer
from tests.unit.meeting import PATH, Meeting

FEW = settings(
    max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
said_by_children = {
    **wire.unsigned,
    AnswerPart: st.builds(
        AnswerPart,
        wire.texts,
        wire.numbers,
        st.booleans(),
        st.binary(max_size=9),
        st.none() | st.builds(AskFault, wire.texts, wire.texts, wire.texts, wire.numbers),
    ),
}
well_formed = st.one_of(*said_by_children.values(), wire.reports, wire.later_parts).map(encode)
from_below = any_bytes | well_formed
slots = (
    wire.mail_keys
    | st.sampled_from(["_progress", "_snapshot", "_keys", "_cursor", "", "*", ">", "a.b"])
    | wire.texts
)
sealed = st.one_of(
    *(
        wire.records[kind].map(lambda record, kind=kind: signer.seal(kind, encode_payload(record)))
        for kind in sorted(RECORDS)
    )
).map(lambda envelope: envelope.encode())
from_above = any_bytes | sealed


@given(st.lists(st.tuples(st.booleans(), slots, from_below), max_size=12))
@FEW
def test_whatever_a_child_says_its_parent_goes_on(said):
    meeting = Meeting()
    for is_report, slot, data in said:
        event = ReportArrived("emea", slot, data) if is_report else HelloArrived("emea", data)
        meeting.centre_hears(event)
    meeting.now += 100
    meeting.centre_hears(Tick())
    assert set(meeting.centre.children()) == {"emea"}


@given(
    st.lists(
        st.tuples(st.integers(0, 20), slots, from_above, said_by_children[Welcome]),
        max_size=10,
    )
)
@FEW
def test_whatever_a_parent_says_its_child_goes_on_and_holds_nothing_unsigned(said):
    meeting = Meeting()
    child = meeting.join("one", "here")
    for sequence, key, data, session in said:
        meeting.tell(child, MailArrived(sequence, key, data, 0))
        meeting.tell(child, Welcomed(session))
        meeting.tell(child, LinkChanged(up=True))
        child.assert_invariants()
    assert all(held.kind == "keys" for held in child.records.values())


def disbelief(envelope, record):
    raise AssertionError("judged without need")


@given(st.lists(any_bytes | said_by_children[AnswerPart].map(encode), max_size=6))
@FEW
def test_any_bytes_are_an_ask_or_an_answer_or_are_noted(listed):
    router = AskRouter(NodePath(), disbelief, lambda _child: None)
    for data in listed:
        router.answer(AnswerArrived("s1", data), Instant(0.0, 0))
        router.ask(AskArrived("get", data), Instant(0.0, 0))
    assert router.deadline() is None


GRANT = KeptGrant(
    tree=TreeId("t" * 26),
    path=PATH,
    relay=False,
    parents=("nats://127.0.0.1:1",),
    seed=new_user_nkey(bytes(32))[0],
    roots=Roots({KeyId("k" * 26): bytes(32)}),
)
odd_json = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
).map(lambda value: json.dumps(value).encode())
BOMBS = {
    "arrays": b"[" * SIZE_MAX_BYTES,
    "maps": b'{"a":' * (SIZE_MAX_BYTES // 5),
    "number": b"1" * 5000,
    "infinity": b"1e999",
    "no text": b"\xff\xfe",
    "too long": b" " * (SIZE_MAX_BYTES + 1),
}


@given(odd_json | st.binary(max_size=64))
@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_file_is_a_grant_or_is_refused_with_a_remedy(tmp_path: Path, data):
    file = tmp_path / "any.json"
    file.write_bytes(data)
    with pytest.raises(GrantUnreadable) as refused:
        read_grant(file)
    assert refused.value.remedy


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_file_made_to_hurt_is_refused_as_a_grant(tmp_path, bomb):
    file = tmp_path / "bomb.json"
    file.write_bytes(BOMBS[bomb])
    with pytest.raises(GrantUnreadable):
        read_grant(file)


@pytest.mark.parametrize("field", json.loads(GRANT.to_text()))
@pytest.mark.parametrize(
    "value", ["1e999", "null", "[]", '{"a": [1]}', '"../x"', "-1", '"\\ud800"']
)
def test_a_grant_with_any_field_changed_is_refused(tmp_path, field, value):
    file = tmp_path / "changed.json"
    form = json.loads(GRANT.to_text())
    if value == json.dumps(form[field]):
        return
    form[field] = "@"
    file.write_text(json.dumps(form).replace('"@"', value))
    with pytest.raises(GrantUnreadable):
        read_grant(file)


@given(any_bytes)
@FEW
def test_any_bytes_of_a_space_are_an_object_or_are_refused(data):
    with suppress(CodecError):
        stored_object.decode(data)
    for form in (b"", b"\0", b"\1", b"\2"):
        with suppress(SpaceError):
            unpack_value(form + data)
        with suppress(SpaceError):
            parts_named("objects.x", form + data)


def test_a_zstd_bomb_in_a_bucket_is_refused_before_it_is_opened():
    bomb = b"\1" + zstandard.ZstdCompressor().compress(bytes(4 * VALUE_MAX_BYTES))
    tracemalloc.start()
    try:
        with pytest.raises(SpaceError):
            unpack_value(bomb)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


headers = st.dictionaries(
    st.sampled_from([name for name in vars(subjects) if name.startswith("HEADER")]).map(
        lambda name: getattr(subjects, name)
    ),
    st.text(max_size=12) | st.sampled_from(["9" * 5000, "-1", "١٢", "1,2,3", "zz"]),
)


@given(st.text(max_size=30) | st.just(subjects.mail(PATH, "_keys")), headers, any_bytes)
@FEW
def test_any_message_of_a_stream_is_read_or_is_refused(subject, told, data):
    stored = Stored(subject, data, told, 1)
    with suppress(BadIdentity):
        own_record(stored)
    mail_slot(stored)
    reported(stored)
    hops_of(told)


@given(packable)
@FEW
def test_any_answer_of_a_node_is_read_or_is_a_fault(answer):
    with suppress(AskFailed):
        assert isinstance(checked_answer(PATH, answer)["children"], dict)


@pytest.mark.parametrize(
    "name",
    ["..", ".", "", "*", ">", "a.b", "a b", "A", "_mail", "a\n", "ä", "a" * 64, "-a", "a-", "\0"],
)
def test_a_name_that_would_leave_its_subtree_is_no_name(name):
    with pytest.raises(BadIdentity):
        PATH.child(name)
    with pytest.raises(BadIdentity):
        NodePath.parse(f"/emea/{name}") if name else NodePath.parse("/emea//s1")
    with pytest.raises(BadIdentity):
        subjects.mail(NodePath(("emea", name)), "_keys")


def test_what_a_child_says_cannot_steer_a_terminal():
    said = "a\x1b[2Jb\x9b31mc\x07\r\n\td\u202e"
    assert sanitize_lines(said) == "a[2Jb31mc\n\td"
    assert sanitize(said) == r"a[2Jb31mc\r\n\td"
