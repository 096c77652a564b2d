"""What the launcher does next, by what it wrote down and what it sees: no clock, no process here.

    installing --> starting --> soaking --> healthy
     |      ^         |            |
     v      |         +-----+------+
  refused   |               v
            +-- in doubt -> rolled-back

Of several machines of one node each waits for its turn to try a release, and goes back without.

A release that ends by itself is taken back. One that is not in session may not be at fault: the
former one runs instead, and once that is in session, it was. While that is not either, nobody says
that the release failed: it is tried again later. What was refused for a passing reason is, too.

One that was healthy may be damaged later: it ends, again and again, and never comes up. Then the
former one runs, or what came with the launcher, and it is put there anew. Where that ends likewise
it is not the files, and the one that was healthy runs on.

A person who installs a newer package than what runs has the last word, until the tree chooses
another release: nothing takes a node back because it was started again.

Whatever ends it between two steps, the note is what it goes on by: it is on the disk before
anything that it says is done.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf

from schemas.releases.release_folder import ATTEMPTS_MAX, LaunchNote, LaunchState, WantedRelease
from schemas.releases.release_version import age_of

WHY_CHARACTERS = 400
DAMAGE_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class LaunchLimits:
    """How long a release may take, in seconds, and how often it is started."""

    # Until it is in session with its parent; and as long it may be without later on.
    start_seconds: float = 300.0
    soak_seconds: float = 600.0
    # For one that is not in session now: that one is not replaced sooner.
    patience_seconds: float = 600.0
    # In which the former one is in session, if a release that was not is at fault.
    judge_seconds: float = 60.0
    # Each try without a verdict doubles how long it is waited for the next, up to so long.
    undecided_max_seconds: float = 86_400.0
    # Whatever ended the machine or the launcher meanwhile.
    starts_max: int = 3


@dataclass(frozen=True, slots=True)
class InstallResult:
    """What became of putting a release there; `refused` says why it is not."""

    wish: WantedRelease
    refused: str = ""
    # Whether it may be put there later, as it is.
    is_passing: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """What the launcher sees now; moments are of the machine's monotonic clock."""

    now: float
    # Versions that could be started; the one that the launcher itself belongs to is always there.
    startable: frozenset[str]
    base: str
    wish: WantedRelease | None = None
    # Why it is not the turn of this machine, of those of its node; "" if it is, or is the only one.
    turn_waits: str = ""
    # The version that runs; "" if none does.
    child: str = ""
    child_since: float = 0.0
    # Why what is to run ended by itself; "" if it did not.
    ended: str = ""
    # Versions that ended again and again and never came up, and how they did.
    dead: Mapping[str, str] = field(default_factory=dict)
    # Before that it is not started again, but on trial.
    again_at: float = 0.0
    # Since when it is ready for the first time, and whether it is so now; else since when not.
    first_ready: float | None = None
    is_ready: bool = False
    unready_since: float = 0.0
    unready_why: str = ""
    installing: WantedRelease | None = None
    installed: InstallResult | None = None
    # From when on what was refused is tried again.
    install_again_at: float = inf


@dataclass(frozen=True, slots=True)
class Install:
    """Verify what is wanted, and put it beside what runs."""

    wish: WantedRelease


@dataclass(frozen=True, slots=True)
class Stop:
    """End what runs, in good order."""


@dataclass(frozen=True, slots=True)
class Start:
    """Run a version."""

    version: str


@dataclass(frozen=True, slots=True)
class Tidy:
    """Remove what is installed, but for these versions."""

    keep: frozenset[str]


Step = Install | Stop | Start | Tidy
ON_TRIAL = frozenset({LaunchState.STARTING, LaunchState.SOAKING})
_DECIDED = frozenset({LaunchState.HEALTHY, LaunchState.ROLLED_BACK})


def decide(note: LaunchNote, seen: Seen, limits: LaunchLimits) -> tuple[LaunchNote, list[Step]]:
    """The note to be written first, and what is to be done then."""
    if note.state is LaunchState.REFUSED and seen.now >= seen.install_again_at:
        note, seen = replace(note, state=LaunchState.INSTALLING), replace(seen, installed=None)
    there = _about_what_is_there(_about_the_package(note, seen), seen)
    after = _judged(_about_what_is_wanted(there, seen), seen, limits)
    steps: list[Step] = []
    if after.state is LaunchState.INSTALLING and not _is_asked(after, seen):
        assert seen.wish is not None
        steps.append(Install(seen.wish))
    if seen.child and seen.child != after.running:
        steps.append(Stop())
    elif not seen.child and after.state in ON_TRIAL:
        after = replace(after, starts=after.starts + 1)
        steps.append(Start(after.running))
    elif not seen.child and (seen.now >= seen.again_at or after.running != note.running):
        steps.append(Start(after.running))
    if (note.state in ON_TRIAL or note.doubt) and after.state in _DECIDED:
        if steps == [Stop()]:
            steps.append(Start(after.running))
        # Last: what ends needs its files until it has, and what starts waits for no removal.
        steps.append(Tidy(frozenset({after.running, after.former} - {""})))
    return after, steps


def _about_the_package(note: LaunchNote, seen: Seen) -> LaunchNote:
    """What came with the launcher runs if it is newer than what runs, and came since that did."""
    if seen.base == note.base or age_of(seen.base) <= age_of(note.running):
        return note
    former = note.running if note.running in seen.startable else ""
    after = replace(note, running=seen.base, former=former, starts=0, doubt="", undecided=0)
    after = replace(after, base=seen.base, damage="")
    wish = seen.wish
    if wish is None:
        return LaunchNote(seen.base, former, since=note.since, base=seen.base)
    if age_of(seen.base) > age_of(wish.version):
        why = f"{seen.base} came by a package, and is newer than {wish.version}: it stays until"
        return replace(
            after,
            state=LaunchState.HEALTHY,
            why=f"{why} the tree chooses another release",
            manifest=wish.manifest,
            attempt=wish.attempt,
        )
    is_begun = note.is_on_trial or wish.version == seen.base
    return replace(after, state=LaunchState.INSTALLING, why="") if is_begun else after


def _is_the_package(note: LaunchNote, wish: WantedRelease) -> bool:
    """Whether a newer package runs over that release, which others may try once more."""
    is_over = note.state is LaunchState.HEALTHY and note.running == note.base
    return is_over and wish.manifest == note.manifest and age_of(note.base) > age_of(wish.version)


def _about_what_is_there(note: LaunchNote, seen: Seen) -> LaunchNote:
    if note.running in seen.startable:
        return note if note.state in ON_TRIAL or seen.child else _about_what_ends(note, seen)
    if note == LaunchNote(note.running, since=note.since, base=note.base):
        # Nothing came for it yet: what came with the launcher was changed by hand.
        return replace(note, running=seen.base)
    why = f"what was installed of {note.running} is gone, or its Python is"
    back = _back(note, _former(note, seen), why)
    # What was good once may be installed anew; what is on trial did not stand it.
    return back if note.state in ON_TRIAL else replace(back, manifest="", attempt=0, damage=why)


def _about_what_ends(note: LaunchNote, seen: Seen) -> LaunchNote:
    """What was good once and comes up no more gives way to what may, and is put there anew."""
    if note.running not in seen.dead:
        return note
    why = f"{note.running} {seen.dead[note.running]}"[:DAMAGE_CHARACTERS]
    good = seen.startable - {note.running, *seen.dead}
    if other := next((it for it in (note.former, seen.base) if it in good), ""):
        # What was good first is what there is to go back to.
        former = note.former if note.damage and other != note.former else note.running
        back = replace(_back(note, other, why), former=former, damage=why)
        return replace(back, manifest="", attempt=0)
    if not note.damage or note.former not in seen.startable:
        return note
    why = f"{why}, and so did {note.former}: the cause is none of what is installed"
    after = replace(note, running=note.former, former="", damage="", why=why)
    if seen.wish is None:
        return replace(after, state=LaunchState.HEALTHY)
    if seen.wish.version != after.running:
        return after
    after = replace(after, manifest=seen.wish.manifest, attempt=seen.wish.attempt)
    return replace(after, state=LaunchState.HEALTHY)


def _about_what_is_wanted(note: LaunchNote, seen: Seen) -> LaunchNote:
    """A trial is brought to its end first: then what is wanted now is judged."""
    wish = seen.wish
    if note.state in ON_TRIAL:
        return note
    if wish is None:
        settled = LaunchNote(note.running, note.former, since=note.since, base=note.base)
        return settled if note.state is LaunchState.INSTALLING else note
    if (wish.manifest, wish.attempt) == (note.manifest, note.attempt):
        return note
    if _is_the_package(note, wish):
        return replace(note, attempt=wish.attempt)
    return replace(
        note,
        state=LaunchState.INSTALLING,
        why=note.damage,
        manifest=wish.manifest,
        attempt=wish.attempt,
        starts=0,
        doubt="",
        undecided=0,
    )


def _judged(note: LaunchNote, seen: Seen, limits: LaunchLimits) -> LaunchNote:
    match note.state:
        case LaunchState.INSTALLING:
            return _installing(note, seen, limits)
        case LaunchState.STARTING:
            return _starting(note, seen, limits)
        case LaunchState.SOAKING:
            return _soaking(note, seen, limits)
        case LaunchState.HEALTHY | LaunchState.ROLLED_BACK | LaunchState.REFUSED:
            return note


def _installing(note: LaunchNote, seen: Seen, limits: LaunchLimits) -> LaunchNote:
    if note.doubt:
        return _doubted(note, seen, limits)
    done = seen.installed
    if done is None or seen.wish is None or done.wish != seen.wish:
        return note
    if done.refused:
        return replace(note, state=LaunchState.REFUSED, why=_also(note, done.refused))
    if done.wish.version == note.running:
        return replace(note, state=LaunchState.HEALTHY, why="", damage="")
    if seen.turn_waits:
        return replace(note, why=_also(note, f"it waits for its turn: {seen.turn_waits}"))
    if not _is_time(note, seen, limits):
        waits = f"it waits until {note.running} is in session with its parent"
        return replace(note, why=_also(note, f"{waits} for a while" if note.undecided else waits))
    return replace(
        note,
        running=done.wish.version,
        former=note.running,
        state=LaunchState.STARTING,
        why="",
        starts=0,
        damage="",
        # What came with the launcher before this is not newer in time.
        base=seen.base,
    )


def _is_time(note: LaunchNote, seen: Seen, limits: LaunchLimits) -> bool:
    """Whether it is tried now: a place without its parent would only learn that it has none.

    One that is away for long is not mended by waiting; nor is it stopped again and again.
    """
    more = 1 << min(note.undecided, 32)
    if not seen.is_ready:
        waits = min(limits.patience_seconds * more, limits.undecided_max_seconds)
        return seen.now - seen.unready_since >= waits
    if not note.undecided:
        return True
    waits = min(limits.judge_seconds * more, limits.undecided_max_seconds)
    return seen.first_ready is not None and seen.now - seen.first_ready >= waits


def _doubted(note: LaunchNote, seen: Seen, limits: LaunchLimits) -> LaunchNote:
    """The former one runs instead of a release that was not in session."""
    if seen.child == note.running and seen.is_ready:
        return _back(note, note.running, note.doubt)
    is_away = seen.child == note.running and seen.now - seen.child_since >= limits.judge_seconds
    if is_away or (not seen.child and seen.ended):
        return replace(note, doubt="", undecided=min(note.undecided + 1, ATTEMPTS_MAX))
    return note


def _starting(note: LaunchNote, seen: Seen, limits: LaunchLimits) -> LaunchNote:
    if seen.child == note.running:
        if seen.is_ready:
            return replace(note, state=LaunchState.SOAKING)
        if seen.now - seen.child_since >= limits.start_seconds:
            why = f"was not in session with its parent in {limits.start_seconds:.0f} s"
            return _set_back(note, seen, f"{why}: {seen.unready_why}")
    elif not seen.child and seen.ended:
        return _rolled_back(note, seen, f"ended before it was in session: {seen.ended}")
    elif not seen.child and note.starts >= limits.starts_max:
        why = f"was started {note.starts} times, and the machine or the launcher ended each time"
        return _rolled_back(note, seen, why)
    return note


def _soaking(note: LaunchNote, seen: Seen, limits: LaunchLimits) -> LaunchNote:
    if seen.child != note.running:
        if seen.ended:
            return _rolled_back(note, seen, f"ended while it was tried: {seen.ended}")
        return _starting(replace(note, state=LaunchState.STARTING), seen, limits)
    if not seen.is_ready and seen.now - seen.unready_since >= limits.start_seconds:
        why = f"lost its parent for {limits.start_seconds:.0f} s while it was tried"
        return _set_back(note, seen, f"{why}: {seen.unready_why}")
    since = seen.first_ready
    if seen.is_ready and since is not None and seen.now - since >= limits.soak_seconds:
        return replace(note, state=LaunchState.HEALTHY, why="", starts=0, undecided=0)
    return note


def _rolled_back(note: LaunchNote, seen: Seen, why: str) -> LaunchNote:
    return _back(note, _former(note, seen), f"{note.running} {why}")


def _set_back(note: LaunchNote, seen: Seen, why: str) -> LaunchNote:
    former = _former(note, seen)
    doubt = f"{note.running} {why}"[:WHY_CHARACTERS]
    return replace(
        note,
        running=former,
        former="",
        state=LaunchState.INSTALLING,
        why=f"it is looked whether {former} is in session: {doubt}"[:WHY_CHARACTERS],
        starts=0,
        doubt=doubt,
    )


def _also(note: LaunchNote, why: str) -> str:
    """Why it goes no further, after why it is put there anew."""
    return "; ".join(it for it in (note.damage, why) if it)[:WHY_CHARACTERS]


def _former(note: LaunchNote, seen: Seen) -> str:
    return note.former if note.former in seen.startable else seen.base


def _back(note: LaunchNote, former: str, why: str) -> LaunchNote:
    return replace(
        note,
        running=former,
        former="",
        state=LaunchState.ROLLED_BACK,
        why=why[:WHY_CHARACTERS],
        starts=0,
        doubt="",
        undecided=0,
    )


def _is_asked(note: LaunchNote, seen: Seen) -> bool:
    """Whether what is wanted is being installed, or was; or is there, and in doubt."""
    done = seen.installed.wish if seen.installed else None
    if note.doubt or note.manifest == "" or seen.wish is None:
        return True
    return seen.wish in (seen.installing, done)
