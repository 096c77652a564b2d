"""What lies in a folder of backups and in their files, and what is closed there, by anyone."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import zlib
from contextlib import suppress

from leafcast.backups.backup_folder import CATALOG, MARK, PIECES, VERIFIED, BackupFolder
from leafcast.backups.backup_index import (
    BackupIndex,
    IndexLine,
    StreamIndex,
    UsedSegment,
    open_index,
)
from leafcast.backups.backup_settings import (
    FILE,
    STANDING_FILE,
    BackupSettings,
    kept_settings,
    kept_standing,
)
from leafcast.backups.operator_keys import (
    PRIVATE,
    PUBLIC,
    OperatorKey,
    read_operator_key,
    read_operator_public,
)
from leafcast.backups.piecewise import _read_catalog
from leafcast.backups.refusals import BackupUnusable
from leafcast.backups.restoring import messages_of
from leafcast.backups.sealed_file import SealedWriter
from leafcast.backups.segments import Segment, StreamCatalog
from leafcast.backups.stored_messages import encode_message
from leafcast.backups.whole_file import MANIFEST, opened, read_backup, stream_messages
from leafcast.key_form import KeyFileRefused
from relay.adapters.jetstream.stream_reader import Stored
from relay.adapters.server.store_key import StoreKey
from schemas.content.operator_box import close_box, lock, public_half
from tests.fuzz.files import file, folder
from tests.fuzz.target import Form, Target

STORE_KEY = StoreKey("k" * 40)
KEY, SECRET = OperatorKey(b"k" * 32), b"s" * 32
OPERATOR = public_half(KEY.private)
SETTINGS = BackupSettings(900, 96, "/mnt", OPERATOR, SECRET)
LINE = IndexLine("tree", 1, 7, KEY.id, ("ab1",))
INDEX = BackupIndex({"relay/OWN": StreamIndex({}, 7, [UsedSegment("ab1", "", (1,))])}, {"a": b"b"})
MESSAGE = encode_message(Stored("lc._own.a", b"data", {"name": "value"}, 1, 7))
CATALOGED = {
    "key": SETTINGS.key,
    "streams": {"relay/OWN": StreamCatalog("then", [Segment("ab1", "", 9, (1,), (1,))]).form()},
}
SALT = bytes(16)


def closed(public: bytes, data: bytes) -> bytes:
    return close_box(SECRET, public, zlib.compress(data, 1))


def index(data: bytes) -> None:
    """The whole of an index file; and one of which anyone closed the inner part."""
    place, first = folder() / "any.backup", LINE.encoded()
    for whole in (data, first + closed(OPERATOR, data), first + data):
        with suppress(BackupUnusable):
            open_index(place, whole, KEY)


def piece(data: bytes) -> None:
    """A piece that was damaged, and one that says something else than messages."""
    kept = BackupFolder(folder() / "pieces of any")
    (kept.folder / PIECES).mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(data).hexdigest()
    stream = StreamIndex({}, 7, [UsedSegment("ab1", digest, (1,))])
    for whole in (data, closed(OPERATOR, data)):
        kept.put_piece("ab1", whole)
        with suppress(BackupUnusable):
            list(messages_of(kept, KEY, stream))


def catalog(data: bytes) -> None:
    kept = BackupFolder(folder())
    for whole in (data, closed(public_half(SECRET), data)):
        (kept.folder / CATALOG).write_bytes(whole)
        _read_catalog(kept, SETTINGS)
    (kept.folder / CATALOG).unlink()


def sealed(data: bytes) -> bytes:
    """As what waits beside an encrypted store."""
    file = io.BytesIO()
    writer = SealedWriter(file, STORE_KEY)
    writer.write(data)
    writer.finish()
    return file.getvalue()


def sealed_file(data: bytes) -> None:
    waiting = folder() / "restore.tar"
    waiting.write_bytes(data)
    with suppress(BackupUnusable), opened(waiting, STORE_KEY) as tar:
        read_backup(waiting, tar)


def whole_file(data: bytes) -> None:
    """A stream in a tar of form 2."""
    name = "relay/OWN"
    form = {"format": 2, "tree": "tree", "timeMs": 7, "streams": {name: {}}}
    with io.BytesIO() as whole:
        with tarfile.open(fileobj=whole, mode="w") as tar:
            for said, content in (
                (MANIFEST, json.dumps(form).encode()),
                ("keys/keys.json", b"{}"),
                (f"streams/{name}", data),
            ):
                info = tarfile.TarInfo(said)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
        whole.seek(0)
        with tarfile.open(fileobj=whole, mode="r") as tar, suppress(BackupUnusable):
            read_backup(folder() / "any.tar", tar)
            list(stream_messages(folder() / "any.tar", tar, name))


TARGETS = {
    "backup index": Target(
        index,
        lambda: [LINE.encoded(), zlib.decompress(INDEX.encoded(LINE.encoded()))],
        Form.JSON,
    ),
    "backup piece": Target(piece, lambda: [MESSAGE, MESSAGE * 2]),
    "backup catalog": Target(catalog, lambda: [json.dumps(CATALOGED).encode()], Form.JSON),
    "sealed backup": Target(sealed_file, lambda: [sealed(b""), sealed(bytes(10_240))]),
    "backup stream": Target(whole_file, lambda: [len(MESSAGE).to_bytes(4, "big") + MESSAGE]),
    "backup folder": file(
        MARK,
        lambda at: BackupFolder(at).check("tree"),
        BackupUnusable,
        {"format": 1, "tree": "tree"},
    ),
    "backup verified": file(
        VERIFIED, lambda at: BackupFolder(at).verified(), (), {"timeMs": 1, "seconds": 2.5}
    ),
    "backup settings": file(
        FILE,
        kept_settings,
        BackupUnusable,
        {
            "seconds": 1,
            "keep": 2,
            "to": "/mnt",
            "public": OPERATOR.hex(),
            "secret": SECRET.hex(),
        },
    ),
    "backup standing": file(STANDING_FILE, kept_standing, (), {"made_ms": 1}),
    "backup key": file(
        "operator.key",
        lambda at: read_operator_key(at / "operator.key", lambda: "horse"),
        KeyFileRefused,
        {"kind": PRIVATE, "key_id": KEY.id, "private": KEY.private.hex()},
        {
            "kind": PRIVATE,
            "key_id": KEY.id,
            "salt": SALT.hex(),
            "locked": lock("horse", SALT, KEY.private).hex(),
        },
    ),
    "public backup key": file(
        "operator.pub",
        lambda at: read_operator_public(at / "operator.pub"),
        KeyFileRefused,
        {"kind": PUBLIC, "key_id": KEY.id, "public": OPERATOR.hex()},
    ),
}
