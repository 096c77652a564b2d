"""What lies in `releases/` of a node's data directory, as node and launcher say it to each other.

The node writes what the tree chose (`wanted.json`), and the manifests and pieces that came for it;
the launcher writes what it made of that (`launcher.json`). Neither believes the other: the launcher
verifies all that it installs by `pinned.json`, and the node only reports. Where the node runs on
three machines it writes as well whether it is the turn of this one (`turn.json`).
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any

from schemas.releases.release_manifest import is_sha256
from schemas.releases.release_refused import ReleaseRefused
from schemas.releases.release_version import check_version

RELEASES = "releases"
PINNED, WANTED, LAUNCHER = "pinned.json", "wanted.json", "launcher.json"
TURN = "turn.json"
LAUNCHER_LOCK = "launcher.lock"
"""A launcher holds it as long as it runs: what `launcher.json` says counts no longer than that."""
MANIFESTS, PIECES, INSTALLED, CURRENT = "manifests", "pieces", "installed", "current"
NOTE_MAX_BYTES = 64 * 1024
"""Of wanted.json, launcher.json and turn.json."""
WHY_MAX = 500
ATTEMPTS_MAX = 1_000_000

MANAGED_ELSEWHERE = "managed elsewhere"
NO_PUBLISHER = "pins no publisher"
"""What a node says that has no launcher, or no pinned publisher."""


class LaunchState(StrEnum):
    """How far a release has come on a machine."""

    INSTALLING = "installing"
    STARTING = "starting"
    SOAKING = "soaking"
    HEALTHY = "healthy"
    ROLLED_BACK = "rolled-back"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class WantedRelease:
    """What the tree chose: a version, by the hash of its manifest's file.

    What failed is not tried again until another one is wanted, or the same once more: `attempt`.
    """

    version: str
    manifest: str
    attempt: int = 0

    def __post_init__(self) -> None:
        check_version(self.version, "version")
        if not is_sha256(self.manifest):
            raise ReleaseRefused("manifest", f"{self.manifest!r} is no SHA-256", _ANEW)
        if not _is_count(self.attempt):
            raise ReleaseRefused("attempt", f"{self.attempt!r} is no number of one", _ANEW)

    @property
    def text(self) -> str:
        return json.dumps(asdict(self), indent=1) + "\n"


@dataclass(frozen=True, slots=True)
class LaunchNote:
    """What runs, what ran before and is there to go back to, and how far what is wanted has come.

    `manifest` and `attempt` are of the wish that `state` is about; "" if there was none yet.
    `starts` counts how often a release on trial was started; `since` is for people. `doubt` says
    why the former one runs instead, until that is in session; `undecided` counts the tries in which
    neither was. `base` is the version that came with the launcher when another one was chosen over
    it, or it was over another one; "" if neither was the case yet. `damage` says why a release that
    was healthy runs no more: it is put there anew, and is `former` meanwhile, if it is still there.
    """

    running: str
    former: str = ""
    state: LaunchState = LaunchState.HEALTHY
    why: str = ""
    manifest: str = ""
    attempt: int = 0
    starts: int = 0
    since: str = ""
    doubt: str = ""
    undecided: int = 0
    base: str = ""
    damage: str = ""

    def __post_init__(self) -> None:
        check_version(self.running, "running")
        if self.former:
            check_version(self.former, "former")
        if self.base:
            check_version(self.base, "base")
        counts = self.attempt, self.starts, self.undecided
        if not all(_is_count(it) for it in counts) or not (
            self.manifest == "" or is_sha256(self.manifest)
        ):
            raise ReleaseRefused("launcher.json", "its manifest or its counts are none", _ANEW)
        texts = self.why, self.since, self.doubt, self.damage
        if not all(_is_text(it) for it in texts):
            raise ReleaseRefused("launcher.json", "its texts are too long", _ANEW)

    @property
    def is_on_trial(self) -> bool:
        """Whether it is not decided yet which of the two stays."""
        return self.state in (LaunchState.STARTING, LaunchState.SOAKING) or bool(self.doubt)

    @property
    def text(self) -> str:
        return json.dumps({**asdict(self), "state": str(self.state)}, indent=1) + "\n"


@dataclass(frozen=True, slots=True)
class ReleaseTurn:
    """Whether a member of a node may go to the release of that manifest now, else why not."""

    manifest: str = ""
    attempt: int = 0
    may_go: bool = False
    why: str = ""

    def __post_init__(self) -> None:
        is_named = self.manifest == "" or is_sha256(self.manifest)
        if not (is_named and _is_count(self.attempt) and type(self.may_go) is bool):
            raise ReleaseRefused(TURN, "its manifest, its attempt or its answer is none", _ANEW)
        if not _is_text(self.why):
            raise ReleaseRefused(TURN, "its text is too long", _ANEW)

    def waits(self, wanted: WantedRelease) -> str:
        """Why this release has to wait; "" if it is its turn."""
        if (self.manifest, self.attempt) != (wanted.manifest, wanted.attempt):
            return self.why or "its node has not said yet that it is its turn"
        return "" if self.may_go else self.why or "it is not its turn"

    @property
    def text(self) -> str:
        return json.dumps(asdict(self), indent=1) + "\n"


_ANEW = "remove the file: it is written anew"


def read_wanted(data: bytes) -> WantedRelease:
    """What `wanted.json` says; raises ReleaseRefused."""
    form = _form(data, WANTED, {"version", "manifest"}, {"attempt"})
    return WantedRelease(**form)


def read_launch_note(data: bytes) -> LaunchNote:
    """What `launcher.json` says; raises ReleaseRefused."""
    more = {it.name for it in fields(LaunchNote)} - {"running"}
    form = _form(data, LAUNCHER, {"running"}, more)
    try:
        state = LaunchState(form.get("state", LaunchState.HEALTHY))
    except ValueError as error:
        raise ReleaseRefused(LAUNCHER, str(error), _ANEW) from error
    return LaunchNote(**{**form, "state": state})


def read_turn(data: bytes) -> ReleaseTurn:
    """What `turn.json` says; raises ReleaseRefused."""
    return ReleaseTurn(**_form(data, TURN, {"manifest", "attempt", "may_go"}, {"why"}))


def _form(data: bytes, file: str, needed: set[str], more: set[str]) -> dict[str, Any]:
    if len(data) > NOTE_MAX_BYTES:
        raise ReleaseRefused(file, f"it has more than {NOTE_MAX_BYTES} bytes", _ANEW)
    try:
        form = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ReleaseRefused(file, f"it is no JSON: {error}", _ANEW) from error
    if not isinstance(form, dict) or not needed <= set(form):
        raise ReleaseRefused(file, f"it does not say {', '.join(sorted(needed))}", _ANEW)
    # A later version may say more.
    return {name: said for name, said in form.items() if name in needed | more}


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= ATTEMPTS_MAX


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= WHY_MAX
