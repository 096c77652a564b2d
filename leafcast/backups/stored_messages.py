"""Messages of streams as bytes, one behind the other; and what they come to, as a digest."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable, Iterator, Mapping

from relay.adapters.jetstream.publish import kept_headers
from relay.adapters.jetstream.stream_reader import Stored
from schemas.values.codec import from_json

RUN_MAX = 100_000_000
"""Of messages that follow each other: more than a stream keeps."""
_HEAD = struct.Struct(">QQHII")
"""Sequence, time in ms since 1970, and how long subject, headers and data are."""


class MessagesDamaged(ValueError):
    """Bytes that are no messages."""


def encode_message(message: Stored) -> bytes:
    """One message, with all that a stream keeps of it."""
    subject, headers = message.subject.encode(), _headers(message.headers)
    sizes = len(subject), len(headers), len(message.data)
    head = _HEAD.pack(message.sequence, message.time_ms, *sizes)
    return b"".join((head, subject, headers, message.data))


def decode_messages(data: bytes) -> Iterator[Stored]:
    """The messages in the order in which they were encoded; raises MessagesDamaged."""
    at = 0
    while at < len(data):
        try:
            sequence, time_ms, *sizes = _HEAD.unpack_from(data, at)
            at += _HEAD.size
            parts = []
            for size in sizes:
                parts.append(data[at : at + size])
                at += size
            if at > len(data):
                raise MessagesDamaged("it ends within a message")
            headers = from_json(parts[1]) if parts[1] else {}
            subject = parts[0].decode()
        except (struct.error, ValueError) as error:
            raise MessagesDamaged(f"it holds what is no message ({error})") from error
        if not isinstance(headers, dict):
            raise MessagesDamaged("it holds headers that are none")
        said = {str(name): str(value) for name, value in headers.items()}
        yield Stored(subject, parts[2], said, sequence, time_ms)


class MessagesDigest:
    """What messages come to, whatever their places in the stream; equal ones give equal digests."""

    def __init__(self) -> None:
        self.count = 0
        self._hash = hashlib.sha256()

    def take(self, message: Stored) -> None:
        """Count one more, in the order of the stream."""
        self.count += 1
        said = message.subject.encode(), _headers(kept_headers(message.headers)), message.data
        for part in said:
            self._hash.update(len(part).to_bytes(4, "big") + part)

    def hex(self) -> str:
        return self._hash.hexdigest()


def runs_of(sequences: Iterable[int]) -> list[int]:
    """Ascending numbers as runs: how many are left out, how many follow, and so on."""
    runs: list[int] = []
    following = 0
    for sequence in sequences:
        if runs and sequence == following:
            runs[-1] += 1
        else:
            runs += [sequence - following, 1]
        following = sequence + 1
    return runs


def sequences_of(runs: Iterable[int]) -> Iterator[int]:
    """The numbers that runs say; raises ValueError for what are none."""
    at = 0
    numbers = iter(runs)
    for left_out in numbers:
        count = next(numbers, 0)
        if left_out < 0 or not 1 <= count <= RUN_MAX:
            raise ValueError("these are no runs")
        at += left_out
        yield from range(at, at + count)
        at += count


def _headers(headers: Mapping[str, str]) -> bytes:
    return json.dumps(dict(headers), sort_keys=True).encode() if headers else b""
