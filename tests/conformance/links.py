"""Vectors of the link: what nodes say of themselves, digests of mailboxes, and who is how."""

from __future__ import annotations

import hashlib

from relay.core.link.digest import MailDigest
from relay.core.link.reader import READING, Reading, ReadingEvent
from relay.core.link.session import (
    PRESENCE,
    SESSION,
    Presence,
    PresenceEvent,
    SessionEvent,
    SessionState,
)
from relay.core.records.accepted import Version
from schemas.records.records import Source, slot_term
from schemas.reports.link import Cursor, Hello, Progress, Repair, Welcome, copies_as_of, greeting
from schemas.values import codec
from schemas.values.identity import MailKey
from schemas.values.refusals import RecordRefused
from schemas.values.wire import decode, encode
from tests.conformance.forms import Case, Json, fields_of

ABOUT = (
    "Bytes of a Hello, Welcome, Progress or Cursor (`kind`, `message`) and their fields; the mail "
    "digest of slots under a snapshot (`digest`), and of all of them (`held`); the states that "
    "follow from events (`machine`)."
)
KEYS = [
    Source("edge.kubestellar.io/EdgePlacement", "wds", "", name).key
    for name in ("shop", "web", "db")
]
GIVEN: dict[str, Json] = {"now_ms": 1_700_000_000_000}
KINDS = {"hello": Hello, "welcome": Welcome, "progress": Progress, "cursor": Cursor}
MACHINES: dict[str, tuple[Json, Json, Json]] = {
    "session": (SESSION, SessionState, SessionEvent),
    "presence": (PRESENCE, Presence, PresenceEvent),
    "reading": (READING, Reading, ReadingEvent),
}
HELLO = Hello(
    run="run-1",
    home="home-1",
    parent_run="inc-1",
    sequence=12,
    digest=bytes(range(16)),
    snapshot=9,
    wants=(KEYS[0],),
    levels=1,
    refused=2,
    orphaned=3,
    copies=2,
    through=12,
    reports=bytes(16),
    newest=10,
)
WELCOME = Welcome("inc-1", "run-1", 12, b"signed", Repair.REREAD)


def message(name: str, rule: str, kind: str, said: object, verdict: str) -> Case:
    data = said if isinstance(said, bytes) else encode(said)
    return Case(name, rule, {"kind": kind, "message": data.hex()}, {"verdict": verdict})


def cases() -> list[Case]:
    """All vectors, in the order of the file."""
    return [*_messages(), *_digests(), *_machines()]


def _messages() -> list[Case]:
    hello, welcome = (
        codec.unpack(encode(HELLO), lists=True),
        codec.unpack(encode(WELCOME), lists=True),
    )
    return [
        message("a hello", "S1", "hello", HELLO, "read"),
        message("a hello of six fields", "E4", "hello", codec.pack(hello[:6]), "read"),
        message("a hello of five fields", "E4", "hello", codec.pack(hello[:5]), "refused"),
        message("a hello with a field more", "E4", "hello", codec.pack([*hello, "later"]), "read"),
        message(
            "a farewell", "S7", "hello", Hello("r", "h", "i", 1, b"", 0, farewell=True), "read"
        ),
        message(
            "a hello whose digest is a text",
            "E4",
            "hello",
            codec.pack([*hello[:4], "d" * 16, *hello[5:]]),
            "refused",
        ),
        message(
            "a hello of a sequence below 0",
            "E6",
            "hello",
            codec.pack([*hello[:3], -1, *hello[4:]]),
            "refused",
        ),
        message("a welcome that asks to read", "S4", "welcome", WELCOME, "read"),
        message("a welcome without repair", "E4", "welcome", codec.pack(welcome[:4]), "read"),
        message("a welcome with a field more", "E4", "welcome", codec.pack([*welcome, []]), "read"),
        message("a welcome that nobody asked for", "S7", "welcome", greeting("inc-1"), "read"),
        message("a progress", "U1", "progress", Progress("run-1", "inc-1", 12, bytes(16)), "read"),
        message(
            "a progress with the mail digest",
            "U6",
            "progress",
            Progress("r", "i", 12, bytes(16), bytes(16), 9),
            "read",
        ),
        message("a cursor", "R1", "cursor", Cursor("inc-1", 12, 10, 6, 9, has_memory=True), "read"),
        message("no msgpack", "E1", "hello", b"\xc1", "refused"),
        message("a map", "E1", "hello", codec.pack({}), "refused"),
    ]


def _digests() -> list[Case]:
    def slot(key: str, generation: int, payload: bytes = b"payload") -> Json:
        return {"key": key, "generation": generation, "payload": payload.hex()}

    one, two, three = slot(KEYS[0], 7), slot(KEYS[1], 8), slot(KEYS[2], 12)
    listed = [
        ("nothing", [], 10, []),
        ("one slot", [one], 10, []),
        ("two slots", [one, two], 10, []),
        ("two slots the other way round", [two, one], 10, []),
        ("what is above the snapshot is left out", [one, two, three], 10, []),
        ("under a newer snapshot it counts", [one, two, three], 12, []),
        ("what is outdated or orphaned is left out", [one, two], 10, [KEYS[1]]),
        ("before any snapshot nothing counts", [one, two], 0, []),
        ("another payload of one generation", [slot(KEYS[0], 7, b"other")], 10, []),
    ]
    return [
        Case(
            f"mail digest: {name}",
            "S9",
            {"digest": {"slots": slots, "snapshot": snapshot, "left_out": out}},
        )
        for name, slots, snapshot, out in listed
    ]


def _machines() -> list[Case]:
    listed = [
        (
            "a child is welcomed, and its parent starts again",
            "session",
            "UNLINKED",
            "LINKED WELCOME PARENT_RESTARTED WELCOME UNLINKED",
        ),
        ("a child is stopped, and asks again", "session", "UNLINKED", "LINKED STOP STOP WELCOME"),
        (
            "a child comes, catches up, is silent and returns",
            "presence",
            "NEVER_JOINED",
            "NEW_RUN HEARD CAUGHT_UP SILENCE HEARD CAUGHT_UP",
        ),
        (
            "a child leaves, and a late word changes nothing",
            "presence",
            "IN_STEP",
            "FAREWELL HEARD NEW_RUN",
        ),
        ("a child falls behind", "presence", "IN_STEP", "FELL_BEHIND CAUGHT_UP HEARD"),
        (
            "a mailbox is read on, then anew",
            "reading",
            "NONE",
            "RESUME AT_END AT_END REREAD REREAD AT_END LINK_LOST",
        ),
    ]
    return [
        Case(name, "S1", {"machine": machine, "state": state, "events": events.split()})
        for name, machine, state, events in listed
    ]


def answer(given: Json) -> Json:
    """What our program makes of one case."""
    if "digest" in given:
        return _digest(given["digest"])
    if "machine" in given:
        table, states, events = MACHINES[given["machine"]]
        state, went = states[given["state"]], []
        for event in given["events"]:
            state = table[state, events[event]]
            went.append(state.name)
        return {"states": went}
    try:
        said = decode(KINDS[given["kind"]], bytes.fromhex(given["message"]))
    except RecordRefused:
        return {"verdict": "refused"}
    shown = {"verdict": "read", "fields": fields_of(said)}
    if isinstance(said, Hello):
        progress = said.progress
        shown["progress"] = None if progress is None else fields_of(progress)
        shown["copies_as_of_ms"] = copies_as_of(said.copies, given["now_ms"])
    return shown


def _digest(said: Json) -> Json:
    digest, versions = MailDigest(), {}
    for slot in said["slots"]:
        key = MailKey(slot["key"])
        hashed = hashlib.sha256(bytes.fromhex(slot["payload"])).digest()
        term = slot_term(key, slot["generation"], hashed)
        versions[key] = Version(slot["generation"], term, full=True)
        digest.add(key, versions[key])
    out = [MailKey(key) for key in said["left_out"]]
    digest.advance(said["snapshot"], [(key, versions[key]) for key in out])
    return {"digest": digest.value.hex(), "held": digest.of_all.hex()}
