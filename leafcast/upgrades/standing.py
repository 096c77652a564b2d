"""What a node says of the release that is wanted of it, and what it does next. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from schemas.releases.release_folder import LaunchNote, LaunchState, WantedRelease
from schemas.reports.running import ReleaseState

NEEDS_FILES = frozenset({ReleaseState.INSTALLING, ReleaseState.REFUSED})
"""Where the launcher reads the files of a release, or could not: it waits for what is gone."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What the tree wants here: the release, in which wave, and whether it may begin now."""

    wanted: WantedRelease
    wave: int
    may_begin: bool


@dataclass(frozen=True, slots=True)
class ReleaseStanding:
    """The state that the node reports, and why; whether the release is to be fetched now."""

    state: ReleaseState
    why: str = ""
    fetches: bool = False


def standing_of(
    choice: Choice | None,
    launcher: LaunchNote | None,
    noted: WantedRelease | None,
    *,
    is_pinned: bool,
) -> ReleaseStanding:
    """How it stands with what the tree chose; `noted` is what the launcher was told last."""
    if launcher is None:
        return ReleaseStanding(ReleaseState.ELSEWHERE)
    if not is_pinned:
        return ReleaseStanding(ReleaseState.UNPINNED)
    if choice is None:
        return ReleaseStanding(ReleaseState.IDLE)
    if noted is not None and _is_told(choice.wanted, noted, launcher):
        return _told(choice.wanted, launcher)
    if not choice.may_begin:
        return ReleaseStanding(ReleaseState.WINDOW)
    return ReleaseStanding(ReleaseState.FETCHING, fetches=True)


def _is_told(wanted: WantedRelease, noted: WantedRelease, launcher: LaunchNote) -> bool:
    """Whether the launcher has nothing to do: it was told, or runs what others try once more."""
    if noted == wanted:
        return True
    return _runs(wanted, launcher) and replace(noted, attempt=wanted.attempt) == wanted


def _told(wanted: WantedRelease, launcher: LaunchNote) -> ReleaseStanding:
    """What the launcher made of it; what it says of another try is not its answer yet."""
    about = launcher.manifest, launcher.attempt
    if about == (wanted.manifest, wanted.attempt):
        # Also where a package that is newer stays: nothing more happens there.
        return ReleaseStanding(ReleaseState(launcher.state.value), launcher.why)
    return ReleaseStanding(
        ReleaseState.HEALTHY if _runs(wanted, launcher) else ReleaseState.INSTALLING
    )


def _runs(wanted: WantedRelease, launcher: LaunchNote) -> bool:
    return launcher.running == wanted.version and launcher.state is LaunchState.HEALTHY
