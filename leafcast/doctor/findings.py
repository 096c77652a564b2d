"""What `leafcast doctor` is told of a tree, and the findings it makes of that: plain values.

Times are milliseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

State = Literal["ok", "warning", "failure"]
RANK: dict[State, int] = {"ok": 0, "failure": 1, "warning": 2}
"""In which order findings are told: what is well first, then the worst."""


@dataclass(frozen=True, slots=True)
class Check:
    """One finding; `cause` and `remedy` are there unless it is ok.

    `about` is the path of the node or the placement (`edgeplacement/NAME`) that it is about, ""
    if it is about several or this machine.
    """

    group: str
    state: State
    said: str
    cause: str = ""
    remedy: str = ""
    about: str = ""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """One node: what its parent says of it, and what it says itself, if it `answers`.

    `here` are those that the asked program runs itself. `refusal` is why it does not answer, if it
    should; `refusal_reason` is the same in a word, `heard_ms` when it was heard of last, 0 if that
    is not why. `starts` is how often its server was started in this run of ours, None where someone
    else runs it, and `server_up_ms` for how long that has run. `clock_ms` is how much its clock is
    ahead of ours. `snapshot_age_ms` is how old the snapshot is that it reached, None without.
    `refused` is how much of what it said its parent did not take, `disbelieved` how much of what
    its parent sent it did not take itself. `contested` is how often of late two runs of it were up
    at a time, by its parent, `removals` how often its store was removed while it ran.
    """

    path: str
    role: str
    state: str
    here: bool = False
    since_ms: int | None = None
    destinations: int = 0
    lag: int = 0
    answers: bool = False
    refusal: str = ""
    refusal_reason: str = ""
    heard_ms: int = 0
    starts: int | None = None
    server_up_ms: int = 0
    free_bytes: int | None = None
    store_bytes: int | None = None
    clock_ms: int = 0
    snapshot_age_ms: int | None = None
    withheld: int = 0
    # Records in force of terms that the centre does not know.
    orphaned: int = 0
    refused: int = 0
    disbelieved: int = 0
    contested: int = 0
    removals: int = 0


@dataclass(frozen=True, slots=True)
class StuckFacts:
    """Something wrong with an object: why, at how many destinations, and one of them."""

    severity: int
    object: str
    reason: str
    count: int
    path: str


@dataclass(frozen=True, slots=True)
class PlacementFacts:
    """One placement as the centre counts it; `problem` is why it cannot be issued as it is.

    `lack` is what it names and is not there.
    """

    name: str
    destinations: int
    unreachable: int
    complete: bool
    problem: str = ""
    held: str = ""
    lack: str = ""
    undenatured: str = ""
    """What of it acts on the hub itself, and what to do."""
    blocking: Sequence[str] = ()
    stuck: Sequence[StuckFacts] = ()


@dataclass(frozen=True, slots=True)
class LedgerFacts:
    """What waits at the centre.

    `lost_spaces` says what spaces said that are gone, by their ids, `lost` what the ledger lost,
    `held` why removals of SyncTargets and Locations in force wait, and `wrong` what is wrong with
    one of them, by `synctarget/NAME` or `location/NAME`.
    """

    lost_spaces: Mapping[str, str] = field(default_factory=dict)
    lost: str = ""
    held: Mapping[str, str] = field(default_factory=dict)
    wrong: Mapping[str, str] = field(default_factory=dict)
    unplaced: Mapping[str, str] = field(default_factory=dict)
    """Why nothing reaches a SyncTarget, by name."""


@dataclass(frozen=True, slots=True)
class SpaceFact:
    """What was found of one of the centre's spaces: nothing wrong, or what is, why, what to do.

    `unread` says that the commands do not speak with it.
    """

    title: str
    trouble: str = ""
    cause: str = ""
    remedy: str = ""
    unread: bool = False

    def __str__(self) -> str:
        return f"{self.title}: {self.trouble}: {self.cause}; {self.remedy}"


@dataclass(frozen=True, slots=True)
class Expiry:
    """Something that is good for a time: a token, a certificate, a key.

    `cause` says what ends with it, `remedy` how to have another. `needed` is whether the tree lacks
    something once it expired. `about` is as in Check.
    """

    what: str
    since_ms: int
    until_ms: int
    cause: str
    remedy: str
    needed: bool = True
    about: str = ""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that is not as it should be: what, why, what to do; whether something fails."""

    said: str
    cause: str
    remedy: str
    fails: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """All that was gathered at `now_ms`; `not_running` says why no tree answers, "" if one does.

    `hangs` is whether a process has the data directory nevertheless. `ahead_ms` is how far the
    newest generation is ahead of the centre's clock. `spaces` are those on API servers. Content is
    `sealed`, or relays read it.
    """

    now_ms: int
    folder: str
    free_bytes: int
    not_running: str = ""
    hangs: bool = False
    ahead_ms: int = 0
    nodes: Sequence[NodeFacts] = ()
    placements: Sequence[PlacementFacts] = ()
    ledger: LedgerFacts = field(default_factory=LedgerFacts)
    spaces: Sequence[SpaceFact] = ()
    expiries: Sequence[Expiry] = ()
    # Of certificates, beside their ends.
    troubles: Sequence[Trouble] = ()
    sealed: bool = True


def read_facts(answer: Mapping[str, Any], folder: str, free_bytes: int) -> Facts:
    """The facts that a daemon's answer says, with those about this machine."""
    return Facts(
        now_ms=answer["nowMs"],
        folder=folder,
        free_bytes=free_bytes,
        ahead_ms=answer["aheadMs"],
        nodes=[NodeFacts(**form) for form in answer["nodes"]],
        placements=[
            PlacementFacts(**{**form, "stuck": [StuckFacts(**item) for item in form["stuck"]]})
            for form in answer["placements"]
        ],
        ledger=LedgerFacts(**answer["ledger"]),
        expiries=[Expiry(**form) for form in answer["expiries"]],
        troubles=[Trouble(**form) for form in answer["troubles"]],
        sealed=answer["sealed"],
    )


def exit_code(found: Iterable[Check]) -> int:
    """1 if something failed; warnings do not count."""
    return int(any(check.state == "failure" for check in found))
