"""What lies in streams and buckets, and what servers answer: values, subjects, headers, JSON."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg

from relay.adapters.jetstream.connection import JetStreamRefused, checked, links_of
from relay.adapters.jetstream.delivery import place_of
from relay.adapters.jetstream.publish import sequence_of
from relay.adapters.jetstream.reconnecting_client import ReconnectingClient
from relay.adapters.jetstream.records import hops_of, mail_slot, own_record, reported
from relay.adapters.jetstream.stream_reader import Stored
from relay.adapters.jetstream.uplink import mailbox_info
from relay.adapters.server.nats_config import BadServerSettings, check_child, render
from relay.adapters.server.nkey_pairs import BadNkey
from relay.adapters.spaces import bucket_values
from relay.adapters.spaces.embedded_space import key_from, path_of
from relay.objects import stored_object
from relay.ports import BusBroken
from relay.space_errors import SpaceError
from schemas.content import blobs
from schemas.objects.objects import ObjectKey
from schemas.values import codec, subjects
from schemas.values.refusals import BadIdentity, CodecError
from tests.fuzz.inputs import fields, text_of
from tests.fuzz.target import Form, Target
from tests.unit import test_wire_golden as golden
from tests.unit.test_nats_config import SETTINGS

HEADERS = tuple(
    sorted(value for name, value in vars(subjects).items() if name.startswith("HEADER"))
)
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "namespace": "n"},
}
KEPT = {**POD, "metadata": {**POD["metadata"], "uid": "u"}}
STORED = stored_object.StoredObject(KEPT, {"m": {"metadata": {"labels": {"a": "b"}}}}, 7)


def stored(data: bytes) -> None:
    """An object at rest comes back, or is refused."""
    with suppress(CodecError):
        found = stored_object.decode(data)
        stored_object.labels_of(stored_object.at_revision(found, 0))


def admitted(data: bytes) -> None:
    """An object that someone applies to a space, twice: kept as JSON, or refused."""
    try:
        wish = codec.from_json(data)
    except CodecError:
        return
    if not isinstance(wish, dict):
        return
    with suppress(SpaceError):
        stored_object.admit(wish)
        at = ObjectKey("", "pods", "n", wish["metadata"]["name"])
        stored_object.check_uid(at, STORED, str(wish["metadata"].get("uid", "")))
        made = stored_object.applied(at, None, 0, wish, "m", uid="u", now_ms=7)
        stored_object.applied(at, STORED, 3, wish, "m", uid="u", now_ms=7)
        assert stored_object.decode(stored_object.encode(made)) == made


def server(data: bytes) -> None:
    """Of any names and addresses comes a configuration that keeps them in their places, or none."""
    said = [text_of(part) for part in data.split(b"\n")] + [""] * 4
    name, nkey, url, host = said[:4]
    nothing = render(replace(SETTINGS, children={}))
    with suppress(BadIdentity, BadNkey, BadServerSettings):
        check_child(SETTINGS, name, nkey)
    with suppress(BadIdentity, BadNkey, BadServerSettings):
        assert name in render(replace(SETTINGS, children={name: nkey}))
    with suppress(BadIdentity, BadNkey, BadServerSettings):
        link = replace(PARENT, urls=(url,))
        text = render(replace(SETTINGS, children={}, parent=link, host=host))
        assert text.count("\n") == nothing.count("\n")


def value(data: bytes) -> None:
    with suppress(SpaceError):
        assert len(bucket_values.unpack(data)) <= max(len(data), bucket_values.VALUE_MAX_BYTES)
    with suppress(SpaceError):
        parts = bucket_values.parts_named("objects.x", data)
        assert parts is None or len(list(parts.each())) < 100


def key(data: bytes) -> None:
    """Any name has a key that names it again, and only strangers' keys name nothing."""
    text = text_of(data)
    parts = text.split("\0")
    if len(parts) == 4 and text.isprintable():
        named = ObjectKey(*parts)
        assert key_from(path_of(named)) == named
    with suppress(SpaceError):
        key_from(text)


def message(data: bytes) -> None:
    """A message of a stream, by its subject and headers."""
    found = fields(data, str, tuple, bytes)
    if found is None or not all(isinstance(said, str) for said in found[1]):
        return
    told = dict(zip(HEADERS, found[1], strict=False))
    told = {name: said for name, said in told.items() if said}
    kept = Stored(found[0], found[2], told, 1)
    with suppress(BadIdentity):
        own_record(kept)
    mail_slot(kept)
    reported(kept)
    hops_of(told)
    place_of(found[0])


def answer(data: bytes) -> None:
    """What a server answers: the node's own, or its parent's, which may be anyone's."""
    said = Msg(Client(), data=data)
    with suppress(JetStreamRefused):
        checked("up.info", said)
    with suppress(JetStreamRefused):
        delivered, left, _ = mailbox_info(said)
        assert delivered >= 0 <= left
    with suppress(BusBroken):
        assert sequence_of("lc.emea._stat.k", said) >= 0
    with suppress(JetStreamRefused):
        assert links_of(said) >= 0


def messages() -> list[bytes]:
    told = {
        subjects.HEADER_GENERATION: "7",
        subjects.HEADER_HASH: "00" * 32,
        subjects.HEADER_HAS_BODY: "1",
        subjects.HEADER_TRACE: "t",
        subjects.HEADER_ORIGIN: "3",
        subjects.HEADER_HOPS: "1,2",
        subjects.HEADER_INCARNATION: "inc",
        subjects.HEADER_SEQUENCE: "9",
    }
    said = [told[name] for name in HEADERS]
    at = (
        subjects.mail(golden.HERE, golden.KEY),
        subjects.own(golden.HERE, "_cursor"),
        subjects.node_self(golden.HERE),
        subjects.stat(golden.HERE, "_progress"),
        "$JS.ACK.lc.hash.MAIL.ea.1.2.3.4.5.x",
        "$JS.ACK.MAIL.ea.1.2.3.4.5",
    )
    return [codec.pack([subject, said, b"data"]) for subject in at]


WISHES = (
    {**POD, "spec": {"a": [{"name": "c", "x": 1}]}},
    {**POD, "metadata": {**POD["metadata"], "resourceVersion": "3", "uid": "u"}},
)
assert SETTINGS.parent is not None
PARENT = SETTINGS.parent
SERVER = (*next(iter(SETTINGS.children.items())), "nats://127.0.0.1:20003", "127.0.0.1")
KEYS = ("apps\0deployments\0n\0a.b_c", path_of(ObjectKey("", "configmaps", "shop", "ü.x")))
ANSWERS = (
    b'{"stream":"STAT","seq":7}',
    b'{"seq": 7}',
    b'{"error":{"code":400,"err_code":10071,"description":"wrong"}}',
    b'{"delivered":{"consumer_seq":3,"stream_seq":4},"num_pending":2}',
    b'{"leafnodes":1}',
)


def headers(data: bytes) -> None:
    """Read as the library reads them, where a name can be written at all."""
    ours, theirs = (kind._parse_header_lines(data) for kind in (ReconnectingClient, Client))
    read, meant = (
        {name: value for name, value in found.items() if name.isprintable() and name}
        for found in (ours, theirs)
    )
    assert read == meant


TARGETS = {
    "headers": Target(headers, lambda: [b"\r\n".join(it.encode() + b": a b" for it in HEADERS)]),
    "stored": Target(stored, lambda: [stored_object.encode(STORED)], Form.MSGPACK),
    "admitted": Target(admitted, lambda: [json.dumps(it).encode() for it in WISHES], Form.JSON),
    "server": Target(server, lambda: ["\n".join(SERVER).encode()], bytes_max=4096),
    "value": Target(
        value,
        lambda: [
            blobs.compress(b"x"),
            blobs.compress(b"x" * 2000),
            bucket_values.Parts("k", "t", 3).named(),
        ],
    ),
    "key": Target(key, lambda: [it.encode() for it in KEYS], bytes_max=4096),
    "message": Target(message, messages, Form.MSGPACK),
    "answer": Target(answer, lambda: ANSWERS, Form.JSON),
}
