"""What one backup in a folder says: in clear what it needs there, closed for an operator the rest.

The clear line names the tree, the time, the key and the pieces, so that who keeps the folder in
order needs no key. The closed part says which line it belongs to.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leafcast.backups.operator_keys import OperatorKey
from leafcast.backups.refusals import COPY_AGAIN, NO_BACKUP, BackupDamaged, BackupUnusable
from leafcast.backups.stored_messages import runs_of, sequences_of
from schemas.content.operator_box import close_box, open_box
from schemas.content.sealing import NotOpened
from schemas.values.codec import from_json

FORMAT = 1
KIND = "leafcast backup"
LINE_BYTES_MAX, INDEX_BYTES_MAX = 64 * 1024 * 1024, 1024 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class IndexLine:
    """What everybody sees of a backup."""

    tree: str
    # Counted by the folder; the highest is the newest, whatever the clocks said.
    number: int
    # Milliseconds since 1970.
    time_ms: int
    key: str
    pieces: tuple[str, ...]

    def encoded(self) -> bytes:
        """The first line of the file."""
        form = {
            "kind": KIND,
            "format": FORMAT,
            "tree": self.tree,
            "number": self.number,
            "timeMs": self.time_ms,
            "key": self.key,
            "pieces": list(self.pieces),
        }
        return json.dumps(form).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class UsedSegment:
    """A piece of a stream, and which messages in it count."""

    piece: str
    # SHA-256 of what is in it, in hex.
    digest: str
    alive: Sequence[int]


@dataclass(frozen=True, slots=True)
class StreamIndex:
    """A stream as a backup has it."""

    config: Mapping[str, Any]
    last: int
    segments: Sequence[UsedSegment]


@dataclass(frozen=True, slots=True)
class BackupIndex:
    """What a backup holds: streams by account and name, and small files by name."""

    streams: Mapping[str, StreamIndex]
    files: Mapping[str, bytes]
    # Whether no stream took anything while the others were read.
    one_moment: bool = True

    @property
    def pieces(self) -> tuple[str, ...]:
        """The pieces that it needs, each once."""
        pieces = (it.piece for stream in self.streams.values() for it in stream.segments)
        return tuple(sorted(set(pieces)))

    def encoded(self, line: bytes) -> bytes:
        """What is to be closed, together with the line that stands before it."""
        form = {
            "line": hashlib.sha256(line).hexdigest(),
            "streams": {name: _stream_form(it) for name, it in self.streams.items()},
            "files": {name: base64.b64encode(it).decode() for name, it in self.files.items()},
            "oneMoment": self.one_moment,
        }
        return zlib.compress(json.dumps(form).encode(), 6)


def close_index(index: BackupIndex, line: IndexLine, secret: bytes, public: bytes) -> bytes:
    """The whole file of a backup."""
    first = line.encoded()
    return first + close_box(secret, public, index.encoded(first))


def read_line(file: Path, data: bytes) -> IndexLine:
    """What everybody sees of a backup; `data` begins as the file does. Raises BackupUnusable."""
    first = data.partition(b"\n")[0]
    try:
        form = from_json(first)
        if form["kind"] != KIND:
            raise ValueError("another kind")  # noqa: TRY301 - one answer to all of them
        if form["format"] != FORMAT:
            reason = f"it has format {form['format']!r}, and this program reads {FORMAT}"
            raise BackupUnusable(file, reason, "use the version of leafcast that wrote it")
        pieces = tuple(map(_piece, form["pieces"]))
        numbers = int(form["number"]), int(form["timeMs"])
        return IndexLine(str(form["tree"]), *numbers, str(form["key"]), pieces)
    except (KeyError, ValueError, TypeError) as error:
        raise BackupUnusable(file, "it is no backup, or its begin is damaged", NO_BACKUP) from error


def open_index(file: Path, data: bytes, key: OperatorKey) -> tuple[IndexLine, BackupIndex]:
    """What a whole file says; raises BackupUnusable."""
    line, first = read_line(file, data), data.partition(b"\n")[0] + b"\n"
    if line.key != key.id:
        reason = f"it is closed for key {line.key}, and this is key {key.id}"
        raise BackupUnusable(file, reason, f"name the file of key {line.key}")
    try:
        plain = _inflated(open_box(key.private, data[len(first) :]))
        form = from_json(plain)
        if form["line"] != hashlib.sha256(first).hexdigest():
            raise ValueError("another line")  # noqa: TRY301 - one answer to all of them
        streams = {str(name): _stream(it) for name, it in form["streams"].items()}
        files = {str(name): base64.b64decode(it) for name, it in form["files"].items()}
    except (NotOpened, KeyError, ValueError, TypeError, AttributeError, zlib.error) as error:
        raise BackupDamaged(file, "it is damaged, or cut off", COPY_AGAIN) from error
    return line, BackupIndex(streams, files, form.get("oneMoment") is not False)


def _inflated(data: bytes) -> bytes:
    inflating = zlib.decompressobj()
    plain = inflating.decompress(data, INDEX_BYTES_MAX)
    if not inflating.eof:
        raise ValueError("it opens to more than an index has")
    return plain


def _piece(name: object) -> str:
    said = str(name)
    if not said.isalnum():
        raise ValueError(f"{said!r} is no piece")
    return said


def _stream_form(stream: StreamIndex) -> dict[str, Any]:
    segments = [[it.piece, it.digest, runs_of(it.alive)] for it in stream.segments]
    return {"config": dict(stream.config), "last": stream.last, "segments": segments}


def _stream(form: Mapping[str, Any]) -> StreamIndex:
    segments = [
        UsedSegment(_piece(piece), str(digest), tuple(sequences_of(runs)))
        for piece, digest, runs in form["segments"]
    ]
    return StreamIndex(dict(form["config"]), int(form["last"]), segments)
