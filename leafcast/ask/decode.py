"""What came as an answer to an ask, read with care: who gives it may be anyone, and says anything.

Answers to `node` are in `elsewhere`, those to `status` in `destinations`. A list comes page by
page, each beyond the one before, so that it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar

from leafcast.ask.failures import BadAnswer as BadAnswer
from schemas.records.answer_bounds import MOMENT_MAX_MS, TEXT_MAX_CHARACTERS
from schemas.values.codec import FILE_MAX_BYTES, RECORD_MAX_BYTES
from schemas.values.identity import NodePath
from schemas.values.refusals import RecordRefused
from schemas.values.wire import Meta, Natural, WireRecord, convert, field

OBJECTS_MAX = 100_000

BoundedText = Annotated[str, Meta(max_length=TEXT_MAX_CHARACTERS)]
NodeName = Annotated[str, Meta(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")]
TermText = Annotated[str, Meta(pattern=r"^[0-9a-f]{16}\Z")]
HexText = Annotated[str, Meta(pattern=r"^([0-9a-f]{2})*\Z", max_length=2 * RECORD_MAX_BYTES)]
BlobText = Annotated[str, Meta(pattern=r"^([0-9a-f]{2})*\Z", max_length=FILE_MAX_BYTES)]
AddressText = Annotated[str, Meta(pattern=r"^([0-9a-f]{64})?\Z")]
Object = dict[str, Any]
A = TypeVar("A", bound=WireRecord)


class _ObjectsPage(WireRecord, array_like=False, frozen=True):
    objects: list[Object]
    after: str = field(name="next")
    kept: Any = False

    def __post_init__(self) -> None:
        if not all(map(_has_metadata, self.objects)):
            raise ValueError("it lists what is no object")


def read_objects(answer: object, after: str, *, kept: bool = False) -> tuple[list[Object], str]:
    """The objects of a page, and where the next begins ("" at the end); raises BadAnswer.

    With `kept` it must say that it lists only these: an older program lists all.
    """
    page = _read(_ObjectsPage, answer)
    if kept and page.kept is not True:
        raise BadAnswer("its program does not tell what is kept; upgrade it")
    return page.objects, _later(page.after, after, page.objects, _place)


class CopyForm(WireRecord, array_like=False, frozen=True):
    """An object that an edge brought up, as it was there at a moment."""

    path: NodePath
    as_of_ms: Annotated[int, Meta(ge=0, le=MOMENT_MAX_MS)] = field(name="asOfMs")
    object: Object

    def __post_init__(self) -> None:
        if not _has_metadata(self.object, "name"):
            raise ValueError("it lists what is no object, or one without a name")


class _CopiesPage(WireRecord, array_like=False, frozen=True):
    copies: list[CopyForm]
    relays: list[NodeName]
    after: BoundedText = field(name="next")


def read_copies(
    answer: object, path: NodePath, after: str
) -> tuple[list[CopyForm], list[str], str]:
    """Copies of a page of a relay's, its children that are relays, where the next page begins.

    Raises BadAnswer.
    """
    page = _read(_CopiesPage, answer)
    if any(copy.path.is_root or copy.path.parent != path for copy in page.copies):
        raise BadAnswer("a copy is of none of its edges")
    # A page may be empty: so many copies were read for it, and none was wanted.
    return page.copies, page.relays, _later(page.after, after, page.after, _copies_place)


def _copies_place(name: str) -> tuple[str, int]:
    edge, _, sequence = name.rpartition("/")
    if not name:
        return "", 0
    if not sequence.isdecimal() or len(sequence) > 20:
        raise BadAnswer("its next page has no name")
    return edge, int(sequence)


class OrphanForm(WireRecord, array_like=False, frozen=True):
    """A record that a node holds and whose term the centre does not know."""

    key: BoundedText
    kind: BoundedText
    namespace: BoundedText
    name: BoundedText
    generation: Natural
    # 16 hex digits.
    term: TermText
    # Of a node, whose path is its name: its public key.
    nkey: BoundedText


class OrphansPage(WireRecord, array_like=False, frozen=True):
    """A page of a node's orphans, its children, those that never joined, where the next begins."""

    found: list[OrphanForm] = field(name="orphans")
    children: list[NodeName]
    after: str = field(name="next")
    absent: frozenset[NodeName]


def read_orphans(answer: object, after: str) -> OrphansPage:
    """Raises BadAnswer."""
    page = _read(OrphansPage, answer)
    _later(page.after, after, page.found, str)
    return page


class SignedForm(WireRecord, array_like=False, frozen=True):
    """A placement's message as it was signed, in hex; and what leads from it to an object."""

    key: BoundedText
    message: HexText
    manifest: BlobText = ""
    chunk: BlobText = ""
    address: AddressText = ""


class ProofPage(WireRecord, array_like=False, frozen=True):
    """What a node holds as it was signed: keys in force, records, where the next page begins."""

    keys: HexText
    records: list[SignedForm]
    after: str = field(name="next")


def read_proof(answer: object, after: str, *, of_object: bool = False) -> ProofPage:
    """Raises BadAnswer; of an object also where an older program shows all placements."""
    page = _read(ProofPage, answer)
    if of_object and not all(it.manifest and it.chunk and it.address for it in page.records):
        raise BadAnswer("its program does not tell who signed an object; upgrade it")
    _later(page.after, after, page.records, str)
    return page


def _read(kind: type[A], answer: object) -> A:
    try:
        return convert(kind, answer, "its page")
    except RecordRefused as error:
        raise BadAnswer(str(error)) from error


def _has_metadata(obj: Object, *texts: str) -> bool:
    metadata = obj.get("metadata")
    return isinstance(metadata, dict) and all(isinstance(metadata.get(it), str) for it in texts)


def _later(following: str, after: str, page: Sequence[object], order: Callable[[str], Any]) -> str:
    """Where the next page begins: behind this one, which holds something, so that a list ends."""
    if following and (not page or order(following) <= order(after)):
        raise BadAnswer("its next page is no later one")
    return following


def _place(name: str) -> tuple[str, ...]:
    """The order of objects: by namespace, then by name."""
    return tuple(name.split("/", 1))
