"""What came as an answer to an ask, read with care: who gives it may be anyone, and says anything.

Answers to `node` are in `elsewhere`, those to `status` in `destinations`. A list comes page by
page, each beyond the one before, so that it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

OBJECTS_MAX = 100_000
RECORDS_BYTES_MAX = 256 * 1024 * 1024
PAGES_MAX = 1000
"""Of one list of records: those of 100,000 placements and more."""


class BadAnswer(ValueError):
    """An answer that is none to what was asked; says what it should be."""


def read_objects(answer: object, after: str) -> tuple[list[dict[str, Any]], str]:
    """The objects of a page, and where the next begins ("" at the end); raises BadAnswer."""
    objects = _list_in(answer, "objects")
    if not all(isinstance(obj, dict) and isinstance(obj.get("metadata"), dict) for obj in objects):
        raise BadAnswer("it lists what is no object")
    return objects, _next_in(answer, after, objects, _place)


def read_records(answer: object, after: str) -> tuple[list[bytes], str, bool]:
    """Records of a page, where the next begins, and whether the node has read its own mailbox.

    Raises BadAnswer.
    """
    records = _list_in(answer, "records")
    if not all(isinstance(record, bytes) and record for record in records):
        raise BadAnswer("it lists what is no record")
    following = _next_in(answer, after, records, str)
    return records, following, _field(answer, "ready") is True


def read_content(answer: object, _after: str = "") -> bytes | None:
    """The plain bytes of a blob, None if the node has it not; raises BadAnswer."""
    data = _field(answer, "data")
    if data is not None and not isinstance(data, bytes):
        raise BadAnswer("its content is no bytes")
    return data


def _field(answer: object, name: str) -> object:
    if not isinstance(answer, Mapping) or name not in answer:
        raise BadAnswer(f"it has no {name!r}")
    return answer[name]


def _list_in(answer: object, name: str) -> list[Any]:
    found = _field(answer, name)
    if not isinstance(found, (list, tuple)):
        raise BadAnswer(f"its {name!r} is no list")
    return list(found)


def _next_in(
    answer: object, after: str, page: Sequence[object], order: Callable[[str], Any]
) -> str:
    """Where the next page begins: behind this one, which holds something, so that a list ends."""
    following = _field(answer, "next")
    if not isinstance(following, str):
        raise BadAnswer("its next page has no name")
    if following and (not page or order(following) <= order(after)):
        raise BadAnswer("its next page is no later one")
    return following


def _place(name: str) -> tuple[str, ...]:
    """The order of objects: by namespace, then by name."""
    return tuple(name.split("/", 1))
