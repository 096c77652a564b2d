"""What a node says of the release that is wanted of it, and what it does next. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from leafcast.upgrades.release_folder import ChosenRelease, LauncherSaid
from schemas.reports.running import ReleaseState

_OF_LAUNCHER = {
    it.value: it
    for it in (
        ReleaseState.INSTALLING,
        ReleaseState.STARTING,
        ReleaseState.SOAKING,
        ReleaseState.ROLLED_BACK,
        ReleaseState.REFUSED,
    )
}


@dataclass(frozen=True, slots=True)
class Choice:
    """What the tree wants here: the release, in which wave, and whether it may begin now."""

    wanted: ChosenRelease
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
    launcher: LauncherSaid | None,
    noted: ChosenRelease | None,
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


def _is_told(wanted: ChosenRelease, noted: ChosenRelease, launcher: LauncherSaid) -> bool:
    """Whether the launcher has nothing to do: it was told, or runs what others try once more."""
    if noted == wanted:
        return True
    is_healthy = launcher.running == wanted.version and launcher.state == ReleaseState.HEALTHY
    return is_healthy and replace(noted, attempt=wanted.attempt) == wanted


def _told(wanted: ChosenRelease, launcher: LauncherSaid) -> ReleaseStanding:
    """What the launcher made of it; what it says of another try is not its answer yet."""
    state, about = _OF_LAUNCHER.get(launcher.state), (launcher.about, launcher.attempt)
    if state is not None and about == (wanted.manifest, wanted.attempt):
        return ReleaseStanding(state, launcher.why)
    if launcher.running == wanted.version and launcher.state == ReleaseState.HEALTHY:
        return ReleaseStanding(ReleaseState.HEALTHY)
    return ReleaseStanding(ReleaseState.INSTALLING)
