"""Whose turn it is to install a release, of the members of one node; and what they say together.

Each decides for itself, by what all say, and by the same rules. Facts that are a moment old must
let no two go: who is to go says so first, and goes only once all were heard after that, and no
other one says it. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relay.adapters.server.cluster_settings import MEMBERS
from schemas.releases.release_folder import WantedRelease
from schemas.releases.release_version import age_of
from schemas.reports.running import FAILED, UNMANAGED, ReleaseState

_WORST_FIRST = (
    ReleaseState.ROLLED_BACK,
    ReleaseState.REFUSED,
    ReleaseState.WINDOW,
    ReleaseState.IDLE,
    ReleaseState.FETCHING,
    ReleaseState.INSTALLING,
    ReleaseState.STARTING,
    ReleaseState.SOAKING,
    # Nobody waits for these: those that upgrade themselves are through before it is said.
    ReleaseState.ELSEWHERE,
    ReleaseState.UNPINNED,
    ReleaseState.HEALTHY,
)


@dataclass(frozen=True, slots=True)
class MemberWord:
    """What one member says of a release, and whether it is in step with the others.

    `manifest` and `attempt` are of the release that `state` is about. `on_trial` is whether its
    launcher has not decided yet about what it tries; `claims`, whether it is about to go. `trouble`
    is why it is not in step, "" if it is.
    """

    name: str
    version: str
    state: ReleaseState = ReleaseState.ELSEWHERE
    why: str = ""
    manifest: str = ""
    attempt: int = 0
    is_active: bool = False
    on_trial: bool = False
    claims: bool = False
    trouble: str = ""

    @property
    def is_managed(self) -> bool:
        """Whether a launcher installs what the tree chooses there."""
        return self.state not in UNMANAGED


@dataclass(frozen=True, slots=True)
class Turn:
    """Whether a member may go, and why not; with `claims` it says that it is about to."""

    may_go: bool
    claims: bool = False
    why: str = ""


def turn_of(
    own: str, words: Sequence[MemberWord], wanted: WantedRelease, *, may_begin: bool
) -> Turn:
    """What a member does next, by what all said after it said last what it is about to do."""
    if why := _why_nobody(words, wanted, may_begin=may_begin):
        return Turn(may_go=False, why=why)
    # False sorts before True: who stands by, and then the active one.
    waiting = sorted(
        (word for word in words if word.is_managed and word.state is not ReleaseState.HEALTHY),
        key=lambda word: (word.is_active, word.name),
    )
    if not waiting or waiting[0].name != own:
        first = waiting[0].name if waiting else "nobody"
        return Turn(may_go=False, why=f"{first} goes before it")
    if waiting[0].state is not ReleaseState.INSTALLING:
        return Turn(may_go=False, why="it is not there yet")
    others = [word.name for word in words if word.claims and word.name != own]
    if not others:
        has_said_so = waiting[0].claims
        return Turn(has_said_so, claims=True, why="" if has_said_so else "the others hear of it")
    # Of two that say so, one goes on saying it.
    keeps = waiting[0].claims and own < min(others)
    return Turn(may_go=False, claims=keeps, why=f"{min(others)} is about to go")


def _why_nobody(words: Sequence[MemberWord], wanted: WantedRelease, *, may_begin: bool) -> str:
    """Why none of them may go now; "" if one may."""
    if len(words) != MEMBERS:
        return f"{len(words)} of {MEMBERS} members are heard"
    for word in words:
        if word.trouble:
            return f"{word.name} {word.trouble}"
    for word in words:
        if word.on_trial:
            return f"{word.name} tries a release"
    for word in words:
        if not word.is_managed:
            continue
        if (word.manifest, word.attempt) != (wanted.manifest, wanted.attempt):
            return f"{word.name} has not heard of {wanted.version} yet"
        if word.state in FAILED:
            return f"at {word.name} it is {word.state}: {word.why}"
    return "" if may_begin else "it waits for the window of its wave"


def together(
    words: Sequence[MemberWord], wanted: WantedRelease | None, *, of_centre: bool = False
) -> MemberWord:
    """What the node says of itself: the oldest version, and the worst state with whose it is.

    As long as one runs another version than is wanted, that is said: a release may lead back. Of a
    centre of which nothing is wanted it is the newest: what is below that takes it back.
    A member without a launcher that runs what is wanted is healthy: a person saw to it. Of a member
    that was never heard nothing is known: the node is not healthy then.
    """
    if not words:
        return MemberWord("", "", ReleaseState.INSTALLING if wanted else ReleaseState.IDLE)
    judged = [(_state(word, wanted), word) for word in words]
    state, worst = min(judged, key=lambda it: _WORST_FIRST.index(it[0]))
    if state is ReleaseState.HEALTHY and len(words) < MEMBERS:
        state = ReleaseState.INSTALLING
    versions = [word.version for word in words]
    others = [it for it in versions if wanted is not None and it != wanted.version] or versions
    said = (max if of_centre and wanted is None else min)(others, key=age_of)
    why = f"member {worst.name}: {worst.why}" if worst.why and state is worst.state else ""
    return MemberWord(worst.name, said, state, why)


def _state(word: MemberWord, wanted: WantedRelease | None) -> ReleaseState:
    """How far it is with what is wanted now: what it says may be of what was wanted before."""
    if wanted is None:
        return ReleaseState.IDLE if word.is_managed else word.state
    if not word.is_managed:
        return ReleaseState.HEALTHY if word.version == wanted.version else word.state
    is_healthy = word.state is ReleaseState.HEALTHY
    if word.manifest != wanted.manifest or not (is_healthy or word.attempt == wanted.attempt):
        return ReleaseState.FETCHING
    return word.state
