"""What `leafcast doctor` is told of a tree, and the findings it makes of that: plain values.

Times are milliseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from schemas.reports.reports import ExceptionSample
from schemas.reports.running import Running

CheckState = Literal["ok", "warning", "failure"]
RANK: dict[CheckState, int] = {"ok": 0, "failure": 1, "warning": 2}
"""In which order findings are told: what is well first, then the worst."""


@dataclass(frozen=True, slots=True)
class Check:
    """One finding."""

    group: str
    state: CheckState
    said: str
    # Why, and what to do; empty if it is ok.
    cause: str = ""
    remedy: str = ""
    # The path of the node, or the placement (`edgeplacement/NAME`), that it is about; "" if it is
    # about several, or this machine.
    about: str = ""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """One node: what its parent says of it, and what it says itself, if it answers."""

    path: str
    role: str
    state: str
    # Whether the asked program runs it itself.
    here: bool = False
    since_ms: int | None = None
    destinations: int = 0
    lag: int = 0
    answers: bool = False
    # Why it does not answer, if it should, and the same in a word.
    refusal: str = ""
    refusal_reason: str = ""
    # When it was heard of last; 0 if that is not why.
    heard_ms: int = 0
    # How often its server was started in this run of ours; None where someone else runs it.
    starts: int | None = None
    # The version of its nats-server, such as 2.15.1; "" where it does not say.
    server_version: str = ""
    # How long its server has run.
    server_up_ms: int = 0
    free_bytes: int | None = None
    store_bytes: int | None = None
    # How much its clock is ahead of ours.
    clock_ms: int = 0
    # How old the snapshot is that it reached; None without.
    snapshot_age_ms: int | None = None
    withheld: int = 0
    # Records in force of terms that the centre does not know.
    orphaned: int = 0
    # How much of what it said its parent did not take.
    refused: int = 0
    # How much of what its parent sent it did not take itself.
    disbelieved: int = 0
    # How often of late two runs of it were up at a time, by its parent.
    contested: int = 0
    # How much of what its objects return found no room at its parent.
    unsaid: int = 0
    # How often its store was removed while it ran.
    removals: int = 0
    # Whether its server is to have on the disk what it acknowledges.
    meant_durable: bool = False
    # For how long that may not be so; None where it does not say.
    sync_seconds: int | None = None
    # Of one that runs several times, as leafcast.node.member_forms has them.
    members: Sequence[Mapping[str, Any]] = ()
    # Until when a person works there, 0 if nobody does, and why.
    maintenance_until_ms: int = 0
    maintenance_reason: str = ""
    # Why an edge may not work on the cluster that it was given.
    unclaimed: str = ""
    # Whether it is an edge for which no SyncTarget is there.
    unplaced: bool = False


@dataclass(frozen=True, slots=True)
class PlacementFinding:
    """One placement as the centre counts it."""

    name: str
    destinations: int
    unreachable: int
    complete: bool
    # Why it cannot be issued as it is.
    problem: str = ""
    # What keeps its newest content from destinations, as its status lists it.
    held: Sequence[Mapping[str, Any]] = ()
    # What it names and is not there.
    lack: str = ""
    undenatured: str = ""
    """What of it acts on the hub itself, and what to do."""
    unreturned: Sequence[str] = ()
    """Objects whose status is wanted back and refused by the hub, why, and what to do."""
    blocking: Sequence[str] = ()
    stuck: Sequence[ExceptionSample] = ()
    # Why it selects nobody.
    nowhere: str = ""


@dataclass(frozen=True, slots=True)
class LedgerFacts:
    """What waits at the centre."""

    # What a space that is gone said, by its id.
    lost_spaces: Mapping[str, str] = field(default_factory=dict)
    # What the ledger lost.
    lost: str = ""
    # Why removals of SyncTargets and Locations in force wait.
    held: Mapping[str, str] = field(default_factory=dict)
    # What is wrong with one of them, by `synctarget/NAME` or `location/NAME`.
    wrong: Mapping[str, str] = field(default_factory=dict)
    unplaced: Mapping[str, str] = field(default_factory=dict)
    """Why nothing reaches a SyncTarget, by name."""


@dataclass(frozen=True, slots=True)
class SpaceFact:
    """What was found of one of the centre's spaces: nothing wrong, or what is, why, what to do."""

    title: str
    trouble: str = ""
    cause: str = ""
    remedy: str = ""
    # Whether the commands do not speak with it.
    unread: bool = False

    def __str__(self) -> str:
        return f"{self.title}: {self.trouble}: {self.cause}; {self.remedy}"


@dataclass(frozen=True, slots=True)
class Expiry:
    """Something that is good for a time: a token, a certificate, a key."""

    what: str
    since_ms: int
    until_ms: int
    # What ends with it.
    cause: str
    # How to have another.
    remedy: str
    # Whether the tree lacks something once it expired.
    needed: bool = True
    # As in `Check`.
    about: str = ""


@dataclass(frozen=True, slots=True)
class BackupFacts:
    """How the centre is backed up; 0 and "" are of what there is not."""

    # The interval, how many are kept, where, and the id of the key for which they are closed.
    seconds: int = 0
    keep: int = 0
    to: str = ""
    key: str = ""
    # The last good one: when, its file, what it took there, and how long it took.
    made_ms: int = 0
    file: str = ""
    bytes: int = 0
    took_seconds: float = 0.0
    # When one was written last into a file of its own.
    whole_ms: int = 0
    # Since when they fail, and why and what to do.
    failing_ms: int = 0
    trouble: str = ""
    # When one was verified last, which, and how long it took until the centre ran of it.
    verified_ms: float = 0
    verified_file: str = ""
    restore_seconds: float = 0.0
    # When a verification failed since, why, and what to do.
    damaged_ms: float = 0
    damaged_reason: str = ""
    damaged_remedy: str = ""
    # Whether the last ones, on the timer and in a file, lie on the disk of the data directory.
    same_disk: bool = False
    whole_same_disk: bool = False


@dataclass(frozen=True, slots=True)
class ReleaseFact:
    """How far a release of Leafcast is, by the status of its LeafcastRelease."""

    version: str
    phase: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class DoctorFacts:
    """All that was gathered."""

    # When.
    now_ms: int
    folder: str
    free_bytes: int
    # Why no tree answers; "" if one does.
    not_running: str = ""
    # Whether a process has the data directory nevertheless.
    hangs: bool = False
    # Whether the centre of that has several members.
    has_members: bool = False
    # Those, while none of them is active, as leafcast.node.member_forms has them.
    unled: Sequence[Mapping[str, Any]] = ()
    # How far the newest generation is ahead of the centre's clock.
    ahead_ms: int = 0
    nodes: Sequence[NodeFacts] = ()
    placements: Sequence[PlacementFinding] = ()
    ledger: LedgerFacts = field(default_factory=LedgerFacts)
    # Those on API servers.
    spaces: Sequence[SpaceFact] = ()
    expiries: Sequence[Expiry] = ()
    # What is wrong with certificates, beside their ends.
    troubles: Sequence[Check] = ()
    # Whether content is; else relays read it.
    sealed: bool = True
    # Why the centre may not write to a hub, by the hub's name.
    hubs: Mapping[str, str] = field(default_factory=dict)
    # None where there is no centre that could write some.
    backups: BackupFacts | None = None
    # Who runs which release of Leafcast, as nodes said last.
    running: Running = field(default_factory=Running)
    releases: Sequence[ReleaseFact] = ()


def exit_code(found: Iterable[Check]) -> int:
    """1 if something failed; warnings do not count."""
    return int(any(check.state == "failure" for check in found))
