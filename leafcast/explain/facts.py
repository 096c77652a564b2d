"""What is known of one copy on its way from the centre to its destination: plain values.

Times are milliseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leafcast.show.faults import FaultSample
from leafcast.show.stages import CopyStage


@dataclass(frozen=True, slots=True)
class Explanation:
    """The first stage at which a copy stops: what is so, since when, and what to do."""

    stage: CopyStage
    said: str
    remedy: str = ""
    since_ms: int | None = None
    # The node where it stops; "" if that is the centre.
    at: str = ""

    @property
    def blocks(self) -> bool:
        """Whether something is not as it is meant, or nobody can tell."""
        return self.stage is not CopyStage.AS_MEANT


@dataclass(frozen=True, slots=True)
class NodeOnTheWay:
    """What one node says of a placement, and what its parent says of the node."""

    path: str
    # Why it did not answer; "" if it did. In a word, the same.
    refusal: str = ""
    refusal_reason: str = ""
    # By its parent: the word for how it is with it, since when it is silent, what it has not read.
    state: str = "up"
    since_ms: int | None = None
    lag: int = 0
    # By the node itself: the generation of the placement's record there; None if it has none.
    generation: int | None = None
    stale: bool = False
    outdated: bool = False
    orphaned: bool = False
    head_only: bool = False
    # Some of the blobs that it lacks, how many these are, and for how long they were not to be had.
    missing: Sequence[str] = ()
    missing_count: int = 0
    refused_ms: int | None = None
    # How much its clock is ahead of the centre's.
    clock_ms: int = 0
    # Why an edge may not work on its cluster.
    unclaimed: str = ""


@dataclass(frozen=True, slots=True)
class CopySaid:
    """What an edge says of one copy; `known` is one that it has seen or put there."""

    wanted: bool = False
    claimed: bool = False
    known: bool = False
    present: bool = False
    kept: bool = False
    state: str = ""
    health: str = ""
    reason: str = ""
    error: str = ""
    waits: str = ""
    # Why what nothing wants is not removed: a word of PruneWait.
    stays_as: str = ""
    claimers: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class CopyFacts:
    """All that was gathered of a placement, or of one object of it, at one destination."""

    now_ms: int
    path: str
    placement: str
    # Its key, as `deployments.apps/shop/web`; "" if all of the placement is asked about.
    object: str = ""
    # What the centre decides: each is told already, in the order in which it counts.
    decided: Sequence[Explanation] = ()
    # Whether the centre means the copy to be there at all.
    meant: bool = True
    # From the centre down to the edge.
    nodes: Sequence[NodeOnTheWay] = ()
    # What the destination reports: in a word each, and what is wrong. Of one that does not answer
    # its parent says what it said last.
    state: str = ""
    health: str = ""
    samples: Sequence[FaultSample] = ()
    copy: CopySaid | None = None
    # Whether the object lies in the cluster; None if nobody looked.
    lies_there: bool | None = None
    # The command that shows more.
    see: str = ""
