"""What a command and the daemon say to each other of a batch, or a plan: compressed JSON.

Objects are large and many, and a question or an answer has a bound: so they go compressed, and of
an answer that is long there is a page for each question.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leafcast.ask.asked_space import key_form
from leafcast.ask.session import in_inventory
from relay.space_port import Object
from schemas.objects.manifest_files import LoadedObject
from schemas.objects.objects import ObjectKey
from schemas.objects.selectors import LabelSelector
from schemas.values import names
from schemas.values.codec import JSON_VALUES_MAX, from_json, has_too_many_values
from schemas.values.refusals import CodecError, RecordRefused
from schemas.values.traceparent import TraceContext, read_traceparent
from schemas.values.wire import convert, to_builtins

APPLY, DELETE, LABEL, RESTORE = "apply-judge", "delete-judge", "label-judge", "restore-judge"
"""The verbs that judge a batch, and keep it to be written."""
READ, WRITE, END = "changes-read", "changes-write", "changes-end"
"""The verbs about a batch that was judged."""
BATCH_BYTES_MAX = 64 * 1024 * 1024
"""Of a batch as JSON."""
BATCH_OBJECTS_MAX = 50_000
JUDGE_SECONDS, WRITE_SECONDS = 600.0, 120.0
"""How long a command waits to have a batch judged, and a part of it written."""
NOBODY_KNOWS = "NotJudged"
"""What the daemon says of a batch that it does not know, or no longer."""

_LEVEL = 1
Written = Mapping[ObjectKey, Object | None]
"""What is written, by key; None is what is deleted."""


class BadBatch(ValueError):
    """A text that says no batch; says why."""


class TooLargeBatch(ValueError):
    """A batch of more than there is room for; says how much may be said at a time."""


@dataclass(frozen=True, slots=True)
class Placing:
    """The EdgePlacement that is wanted; without `where` it goes where it goes, or everywhere."""

    name: str
    where: LabelSelector | None = None
    prune_all: bool = False

    def __post_init__(self) -> None:
        if fault := names.subdomain_fault(self.name):
            raise ValueError(f"the placement {self.name!r}: {fault}")

    @property
    def place(self) -> str:
        """Where its object comes from, in place of a file and line."""
        return f"--place {self.name}"


@dataclass(frozen=True, slots=True)
class ApplyBatch:
    """What `apply` asks for; with `unread` there are objects beside that could not be read.

    `traceparent` is the span in which it is asked for, in W3C's form; "" for none.
    """

    loaded: Sequence[LoadedObject]
    namespace: str | None = None
    unread: bool = False
    placing: Placing | None = None
    create_namespaces: bool = False
    traceparent: str = ""

    def __post_init__(self) -> None:
        if self.traceparent:
            read_traceparent(self.traceparent)

    @property
    def caller(self) -> TraceContext | None:
        """That span."""
        return read_traceparent(self.traceparent) if self.traceparent else None


def pack(value: Any) -> str:
    """JSON values as text."""
    return base64.b64encode(zlib.compress(json.dumps(value).encode(), _LEVEL)).decode()


def unpack(text: Any) -> Any:
    """What `pack` was given; raises BadBatch, TooLargeBatch."""
    if not isinstance(text, str):
        raise BadBatch("no text")
    opener = zlib.decompressobj()
    try:
        plain = opener.decompress(base64.b64decode(text, validate=True), BATCH_BYTES_MAX)
    except (binascii.Error, zlib.error, ValueError) as error:
        raise BadBatch(str(error)) from error
    if opener.unconsumed_tail:
        raise TooLargeBatch(f"a batch of more than {BATCH_BYTES_MAX} bytes")
    if has_too_many_values(plain):
        raise TooLargeBatch(f"a batch of more than {JSON_VALUES_MAX} values")
    try:
        return from_json(plain, BATCH_BYTES_MAX)
    except CodecError as error:
        raise BadBatch(str(error)) from error


def apply_text(batch: ApplyBatch) -> str:
    """A batch as `read_apply` reads it."""
    return pack(to_builtins(batch))


def read_apply(text: Any) -> ApplyBatch:
    """The batch that a text says, of objects of any form; raises BadBatch, TooLargeBatch."""
    try:
        batch = convert(ApplyBatch, unpack(text), "a batch")
    except RecordRefused as error:
        raise BadBatch(str(error)) from error
    if len(batch.loaded) > BATCH_OBJECTS_MAX:
        message = f"{len(batch.loaded)} objects, at most {BATCH_OBJECTS_MAX} are taken"
        raise TooLargeBatch(message)
    return batch


def read_key(form: Any) -> ObjectKey:
    """The key that such words say; raises BadBatch."""
    match form:
        case [str(group), str(resource), str(namespace), str(name)] if resource and name:
            return ObjectKey(group, resource, namespace, name)
        case _:
            raise BadBatch(f"{form!r} is no [group, resource, namespace, name]")


def pack_change(written: Written, named: Iterable[ObjectKey]) -> str:
    """The text of a change."""
    changes = [[key_form(key), obj] for key, obj in written.items()]
    return pack({"changes": changes, "named": [key_form(key) for key in named]})


def read_change(text: Any) -> tuple[Written, Written, list[ObjectKey]]:
    """What is written to the workload space, and to the inventory, and what is named.

    Raises BadBatch, TooLargeBatch.
    """
    match unpack(text):
        case {"changes": list(changes), "named": list(named)}:
            pass
        case _:
            raise BadBatch("no change and no names")
    written = dict(map(_written, changes))
    inventory = {key: obj for key, obj in written.items() if in_inventory(key)}
    workloads = {key: obj for key, obj in written.items() if key not in inventory}
    return workloads, inventory, list(map(read_key, named))


def _written(form: Any) -> tuple[ObjectKey, Object | None]:
    match form:
        case [key, None]:
            return read_key(key), None
        case [key, {"metadata": dict()} as obj]:
            return read_key(key), obj
        case _:
            raise BadBatch("what is written is no object")
