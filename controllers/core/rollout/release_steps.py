"""How far a release of Leafcast is let: by waves, and in each the relays first, from the centre on.

Each decision is of the spec, of the waves that are open, and of what nodes said last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING
from enum import Enum, auto

from controllers.core.rollout.release_opening import (
    ReleaseMembers,
    first_open,
    waves_following,
    waves_open,
)
from relay.core.release_waves import admits, wave_of_relay
from schemas.api.leafcast_release import LeafcastReleaseSpec, ReleasePhase, ReleaseWaveStatus
from schemas.api.rollout_spec import seconds_of
from schemas.records.records import BUCKETS, NodeRecord, Profile, Record
from schemas.records.release_body import ReleaseWave
from schemas.records.shares import at_most, share_of
from schemas.reports.link import WIRE_UNSAID
from schemas.reports.running import FAILED, UNMANAGED, ReleaseState, Running
from schemas.values.identity import NodePath

ABORTED = "it goes out no further; who runs it goes on with it"


@dataclass(frozen=True, slots=True)
class ReleaseTally:
    """What members of a wave say of the release."""

    healthy: int
    failed: int
    elsewhere: int
    heard: int


@dataclass(frozen=True, slots=True)
class ReleaseStep:
    """What follows: the waves that are open from now on, and what the status is to say."""

    waves: tuple[ReleaseWave, ...]
    phase: ReleasePhase
    message: str
    good_since_ms: int | None = None
    # After so many seconds it is looked at again, whatever nodes say.
    due_seconds: float | None = None
    # The wave of the centre, once it may take the release; and how it stands with it.
    centre: ReleaseWave | None = None
    centre_says: str = ""

    @property
    def all_waves(self) -> tuple[ReleaseWave, ...]:
        """As the record has them, that of the centre among them."""
        return (*self.waves, self.centre) if self.centre is not None else self.waves


class _Verdict(Enum):
    WAITING = auto()
    GOOD = auto()
    FAILED = auto()
    EMPTY = auto()


@dataclass(frozen=True, slots=True)
class _JudgedWave:
    name: str
    said: ReleaseTally
    wanted: int
    verdict: _Verdict


def release_waves(spec: LeafcastReleaseSpec) -> tuple[ReleaseWave, ...]:
    """The waves of a release as records have them, each open for all whom it admits."""
    path = NodePath.parse(spec.path)
    return tuple(
        ReleaseWave(
            number,
            path,
            wave.selector,
            BUCKETS if wave.percent is None else wave.percent * BUCKETS // 100,
            windows=tuple(it.window for it in (wave.windows or spec.windows)),
        )
        for number, wave in enumerate(spec.waves, 1)
    )


def release_members(
    waves: Sequence[ReleaseWave], records: Iterable[Record]
) -> list[ReleaseMembers]:
    """Whom each wave admits, by signed records: each node is of the first that admits it."""
    listed = list(records)
    profiles = {it.path: it for it in listed if isinstance(it, Profile)}
    first: dict[NodePath, int] = {}
    edges, relays = Counter[int](), [Counter[int]() for _ in waves]
    for path, profile in profiles.items():
        number = next((wave.number for wave in waves if admits(wave, profile)), None)
        if number is None:
            continue
        edges[number] += 1
        above = path.parent
        while not above.is_root:
            first[above] = min(number, first.get(above, number))
            above = above.parent
    for record in listed:
        if not isinstance(record, NodeRecord) or record.path in profiles:
            continue
        alone = wave_of_relay(waves, record.path, ())
        found = {first.get(record.path), alone.number if alone is not None else None} - {None}
        if found:
            relays[min(it for it in found if it) - 1][len(record.path.names)] += 1
    return [ReleaseMembers(dict(relays[w.number - 1]), edges[w.number]) for w in waves]


def tally(running: Running, version: str, number: int) -> ReleaseTally:
    """What members of a wave say."""
    counts = Counter[str]()
    for each in running.counts:
        if each.wanted == version and each.wave == number:
            counts[each.state] += each.count
    return ReleaseTally(
        counts[ReleaseState.HEALTHY],
        sum(counts[state] for state in FAILED),
        sum(counts[state] for state in UNMANAGED),
        counts.total(),
    )


def next_step(
    spec: LeafcastReleaseSpec,
    members: Sequence[ReleaseMembers],
    before: Sequence[ReleaseWave],
    running: Running,
    good_since_ms: int | None,
    now_ms: int,
    *,
    edges_first: bool = False,
) -> ReleaseStep:
    """What follows from what nodes say; `before` are the waves that were open."""
    waves = release_waves(spec)
    opened = waves_open(waves, before, edges_first=edges_first)
    if spec.aborted:
        return ReleaseStep((), "Aborted", ABORTED)
    if not opened and spec.paused:
        return ReleaseStep((), "Paused", "nothing begins: set spec.paused to false")
    opened = opened or first_open(waves, members, edges_first=edges_first)
    found = [_judged(spec, wave, members[wave.number - 1], running) for wave in opened]
    if failed := next((it for it in found if it.verdict is _Verdict.FAILED), None):
        said = f"{failed.name}: {failed.said.failed} of {failed.wanted} could not take it"
        remedy = to_retry(spec.version, "mend what is wrong there, or allow more failures")
        return ReleaseStep(opened, "Failed", f"{said}; nothing more begins; {remedy}")
    if spec.paused:
        return ReleaseStep(opened, "Paused", "nothing more begins: set spec.paused to false")
    last = opened[-1]
    # The relays of all waves go together where edges went before them.
    looked_at = found if edges_first and last.relays else found[-1:]
    at = next((it for it in looked_at if it.verdict is not _Verdict.GOOD), found[-1])
    if at.verdict is _Verdict.EMPTY:
        return ReleaseStep(opened, "Waiting", _empty(spec, at))
    if at.verdict is _Verdict.WAITING:
        said = f"{at.name}: {at.said.healthy} of {at.wanted} nodes are healthy with it"
        return ReleaseStep(opened, "Progressing", said)
    since = now_ms if good_since_ms is None else good_since_ms
    soak = seconds_of(spec.waves[last.number - 1].soak) or 0.0
    left = soak - (now_ms - since) / 1000 if last.edges else 0.0
    if left > 0:
        return ReleaseStep(opened, "Soaking", f"{at.name} soaks", since, left)
    following = waves_following(waves, members, opened, edges_first=edges_first)
    if following is None:
        return ReleaseStep(opened, "Complete", "all waves are through", since)
    return ReleaseStep(following, "Progressing", "the next begin", None, 0.0)


def _empty(spec: LeafcastReleaseSpec, wave: _JudgedWave) -> str:
    """What a person does about a wave in which nobody tries the release."""
    said = "admits nobody", "label SyncTargets for it"
    if wave.wanted:
        said = "has nobody who is upgraded through the tree", "give some a launcher and a publisher"
    passes = f"leafcast upgrade start {spec.version} --allow-empty"
    why = f"{wave.name} {said[0]}, so that nobody tries it"
    return f"{why}; {said[1]}, or pass it: {passes} (allowEmpty: true in a LeafcastRelease)"


def to_retry(version: str, mended: str) -> str:
    """What a person does where a place is at fault, and not the release."""
    return f"{mended}, then leafcast upgrade retry {version}"


def needed_wire(before: int, lowest: int, own: int, *, is_complete: bool) -> int:
    """The wire that who joins is to speak: the release's lowest, once all have it; 0 is any.

    The centre issues nothing newer than its `own` program speaks. What was needed `before` stays.
    """
    needed = min(lowest, own) if is_complete else 0
    return max(before, needed if needed > WIRE_UNSAID else 0)


def wave_statuses(
    spec: LeafcastReleaseSpec,
    members: Sequence[ReleaseMembers],
    step: ReleaseStep,
    running: Running,
) -> list[ReleaseWaveStatus]:
    """What is counted of each wave; of whom may not begin yet nothing is to be heard."""
    found, opened = [], {wave.number: wave for wave in step.waves}
    for number, (wave, whom) in enumerate(zip(spec.waves, members, strict=True), 1):
        said = tally(running, spec.version, number)
        may_begin = whom.of(opened[number]) if number in opened else 0
        is_last = number == len(step.waves)
        phase = "Pending" if number not in opened else "Done"
        if is_last and step.phase != "Complete":
            phase = step.phase if step.phase in ("Soaking", "Failed") else "Progressing"
        found.append(
            ReleaseWaveStatus.model_validate(
                {
                    "name": wave.name,
                    "phase": phase,
                    "members": whom.all,
                    "healthy": said.healthy,
                    "failed": said.failed,
                    "elsewhere": said.elsewhere,
                    "unheard": max(may_begin - said.heard, 0),
                }
            )
        )
    return found


def _judged(
    spec: LeafcastReleaseSpec, wave: ReleaseWave, whom: ReleaseMembers, running: Running
) -> _JudgedWave:
    said, wanted = tally(running, spec.version, wave.number), whom.of(wave)
    name = f'wave "{spec.waves[wave.number - 1].name}"'
    return _JudgedWave(name, said, wanted, _verdict(spec, wave, wanted, said))


def _verdict(
    spec: LeafcastReleaseSpec, wave: ReleaseWave, wanted: int, said: ReleaseTally
) -> _Verdict:
    failures = spec.failures
    if said.failed >= failures.at_least and said.failed > at_most(failures.maximum, wanted):
        return _Verdict.FAILED
    unheard = max(wanted - said.heard, 0)
    if unheard > at_most(spec.offline.maximum, wanted):
        return _Verdict.WAITING
    managed = wanted - unheard - said.elsewhere
    if managed <= 0:
        # Relays alone, or nobody, as edges go before relays.
        is_step = not wave.edges or (not wave.relays and not wanted)
        is_passed = is_step or spec.waves[wave.number - 1].allow_empty
        return _Verdict.GOOD if is_passed else _Verdict.EMPTY
    needed = (share_of(spec.success.minimum) * managed).to_integral_value(ROUND_CEILING)
    return _Verdict.GOOD if said.healthy >= needed else _Verdict.WAITING
