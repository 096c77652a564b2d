"""What the launcher does next, by what it wrote down and what it sees: no clock, no process here.

    installing --> starting --> soaking --> healthy
        |             |            |
        v             +-----+------+
     refused                v
                       rolled-back

Whatever ends it between two steps, the note is what it goes on by: it is on the disk before
anything that it says is done.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from schemas.releases.release_folder import LaunchNote, LaunchState, WantedRelease

WHY_CHARACTERS = 400


@dataclass(frozen=True, slots=True)
class LaunchLimits:
    """How long a release may take, in seconds, and how often it is started."""

    # Until it is in session with its parent; and as long it may be without later on.
    start_seconds: float = 300.0
    soak_seconds: float = 600.0
    # For one that is not in session now: that one is not replaced sooner.
    patience_seconds: float = 600.0
    # Whatever ended the machine or the launcher meanwhile.
    starts_max: int = 3


@dataclass(frozen=True, slots=True)
class InstallResult:
    """What became of putting a release there; `refused` says why it is not."""

    wish: WantedRelease
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the launcher sees now; moments are of the machine's monotonic clock."""

    now: float
    # Versions that could be started; the one that the launcher itself belongs to is always there.
    startable: frozenset[str]
    base: str
    wish: WantedRelease | None = None
    # The version that runs; "" if none does.
    child: str = ""
    child_since: float = 0.0
    # Why what is to run ended by itself; "" if it did not.
    ended: str = ""
    # Before that it is not started again, but on trial.
    again_at: float = 0.0
    # Since when it is ready for the first time, and whether it is so now; else since when not.
    first_ready: float | None = None
    is_ready: bool = False
    unready_since: float = 0.0
    unready_why: str = ""
    installing: WantedRelease | None = None
    installed: InstallResult | None = None


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


def decide(note: LaunchNote, seen: Seen, limits: LaunchLimits) -> tuple[LaunchNote, list[Step]]:
    """The note to be written first, and what is to be done then."""
    after = _judged(_about_what_is_wanted(_about_what_is_there(note, seen), seen), seen, limits)
    steps: list[Step] = []
    if note.state in ON_TRIAL and after.state not in ON_TRIAL:
        steps.append(Tidy(frozenset({after.running, after.former} - {""})))
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
    return after, steps


def _about_what_is_there(note: LaunchNote, seen: Seen) -> LaunchNote:
    if note.running in seen.startable:
        return note
    former = note.former if note.former in seen.startable else seen.base
    why = f"what was installed of {note.running} is gone, or its Python is"
    back = _back(note, former, why)
    # What was good once may be installed anew; what is on trial did not stand it.
    return back if note.state in ON_TRIAL else replace(back, manifest="", attempt=0)


def _about_what_is_wanted(note: LaunchNote, seen: Seen) -> LaunchNote:
    """A trial is brought to its end first: then what is wanted now is judged."""
    wish = seen.wish
    if note.state in ON_TRIAL:
        return note
    if wish is None:
        settled = replace(note, state=LaunchState.HEALTHY, why="", manifest="", attempt=0)
        return settled if note.state is LaunchState.INSTALLING else note
    if (wish.manifest, wish.attempt) == (note.manifest, note.attempt):
        return note
    return replace(
        note,
        state=LaunchState.INSTALLING,
        why="",
        manifest=wish.manifest,
        attempt=wish.attempt,
        starts=0,
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
    done = seen.installed
    if done is None or seen.wish is None or done.wish != seen.wish:
        return note
    if done.refused:
        why = done.refused[:WHY_CHARACTERS]
        return replace(note, state=LaunchState.REFUSED, why=why)
    if done.wish.version == note.running:
        return replace(note, state=LaunchState.HEALTHY, why="")
    # A place without its parent would only learn that the new one has none either.
    if not seen.is_ready and seen.now - seen.unready_since < limits.patience_seconds:
        return replace(note, why=f"it waits until {note.running} is in session with its parent")
    return replace(
        note,
        running=done.wish.version,
        former=note.running,
        state=LaunchState.STARTING,
        why="",
        starts=0,
    )


def _starting(note: LaunchNote, seen: Seen, limits: LaunchLimits) -> LaunchNote:
    if seen.child == note.running:
        if seen.is_ready:
            return replace(note, state=LaunchState.SOAKING)
        if seen.now - seen.child_since >= limits.start_seconds:
            why = f"was not in session with its parent in {limits.start_seconds:.0f} s"
            return _rolled_back(note, seen, f"{why}: {seen.unready_why}")
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
        return _rolled_back(note, seen, f"{why}: {seen.unready_why}")
    since = seen.first_ready
    if seen.is_ready and since is not None and seen.now - since >= limits.soak_seconds:
        return replace(note, state=LaunchState.HEALTHY, why="", starts=0)
    return note


def _rolled_back(note: LaunchNote, seen: Seen, why: str) -> LaunchNote:
    former = note.former if note.former in seen.startable else seen.base
    return _back(note, former, f"{note.running} {why}")


def _back(note: LaunchNote, former: str, why: str) -> LaunchNote:
    return replace(
        note,
        running=former,
        former="",
        state=LaunchState.ROLLED_BACK,
        why=why[:WHY_CHARACTERS],
        starts=0,
    )


def _is_asked(note: LaunchNote, seen: Seen) -> bool:
    """Whether what is wanted is being installed, or was."""
    done = seen.installed.wish if seen.installed else None
    return note.manifest == "" or seen.wish is None or seen.wish in (seen.installing, done)
