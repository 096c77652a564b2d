"""What collecting needs of others: expressions, and what is known of children and of this node."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from relay.core.collectors.tables import Outcome
from relay.core.collectors.turns import Turns
from relay.core.collectors.upsynced import UpsyncedObject
from schemas.objects.objects import ObjectKey
from schemas.reports.collectors import Blanks, Program
from schemas.reports.upsync import UpsyncClause
from schemas.values.bounded_cache import BoundedCache
from schemas.values.identity import DestinationId, MailKey
from schemas.values.ordered_values import pack_values

HERE = ""
"""The child that is the node itself."""
MEMBERS_KNOWN = 4096


class RowOwner(NamedTuple):
    """A destination as rows name it."""

    name: str
    destination: DestinationId

    @property
    def who(self) -> bytes:
        """What its rows are ordered by."""
        return _who(self.name, self.destination)


@lru_cache(MEMBERS_KNOWN)
def _who(name: str, destination: DestinationId) -> bytes:
    """Each of an edge's rows is looked at for it."""
    return pack_values([name, destination])


Sent = bytes | Blanks
"""An object's canonical bytes; of one that is closed here, what its blank rows are made of."""


BOUND_BYTES_MAX = 32 * 1024 * 1024
"""Of the programs at one node that are ready for an object: each holds a copy of it."""


class CopyView(NamedTuple):
    """What an expression may look at besides the object; nothing was `returned` in a blank row."""

    name: str
    # Of a program with a source: the object that came up.
    status: bytes | None = None
    # When the status came to be as it is, and when this was reported: ms since 1970, 0 for never.
    returned_ms: int = 0
    reported_ms: int = 0
    reachable: bool = True
    # What the copy holds of what was sent, by its id, and its own generation.
    content: bytes = b""
    generation: int = 0


class ProgramTraits(NamedTuple):
    """What a program is like, whatever object it is over."""

    # Whether what it says may differ between destinations that returned the same.
    uses_inventory: bool
    # Whether it makes a difference that a destination cannot be reached, and when it reported.
    uses_reachable: bool
    uses_report_time: bool


class Bound(Protocol):
    """A program, ready for one object."""

    @property
    def traits(self) -> ProgramTraits:
        """What its program is like."""

    @property
    def spent(self) -> int:
        """How many steps it took at most to say what was asked last, or to be made ready."""

    @property
    def weight(self) -> int:
        """About how many bytes it holds."""

    def lacks_object(self, seen: CopyView) -> bool:
        """Whether that cannot be said, as it depends on the object and this is closed here.

        It can be of a blank row that was said with the object, and where the filter leaves a
        destination out whatever the object is.
        """

    def outcome(self, seen: CopyView) -> Outcome:
        """What the program says of one destination; pure, and of bounded cost."""


class Evaluator(Protocol):
    """Knows how expressions are evaluated, and what objects mean."""

    def bind(self, program: Program, sent: Sent) -> Bound:
        """A program for an object; what is wrong becomes its outcome."""

    def merging(
        self, key: ObjectKey, status: bytes | None, content: bytes = b"", generation: int = 0
    ) -> tuple[bytes, tuple[Any, ...]] | None:
        """The status of a copy, and how it is merged with others: a node of an aggregate.

        None if it does not count. `content` is what the copy holds of what was sent, by its id,
        `generation` its own.
        """


class PlacementStanding(NamedTuple):
    """What a node knows of one child and one placement, besides what the child reported."""

    # For how many destinations at and below the child the placement is meant.
    expected: int
    # Whether the child is there; whether all that it reported counts.
    there: bool
    in_step: bool
    # The child itself, if it is one destination.
    edge: RowOwner | None


class CollectorContext(NamedTuple):
    """What collecting asks of the node around it; HERE is the child that is the node itself."""

    standing: Callable[[str, MailKey], PlacementStanding]
    # The children that a placement concerns, HERE among them.
    children: Callable[[MailKey], Iterable[str]]
    # The destinations at and below a child that a placement is meant for.
    members: Callable[[str, MailKey], Sequence[RowOwner]]
    # What the destination here returned of an object; None if it does not have it to look after.
    own: Callable[[MailKey, ObjectKey], CopyView | None]
    # Whether the destination here books the object under this placement.
    books: Callable[[MailKey, ObjectKey], bool]
    # What came up from the destination here of a source.
    upsynced: Callable[[UpsyncClause], Iterable[tuple[ObjectKey, UpsyncedObject]]]
    # Something else is to be reported of a placement.
    touch: Callable[[MailKey], None]
    # The time, ms since 1970.
    wall_ms: Callable[[], int]
    # How much may be evaluated now.
    turns: Turns = Turns()
    # What is ready for that.
    bounds: BoundedCache[Hashable, Bound] = BoundedCache(BOUND_BYTES_MAX, 1)
