"""A node that joined with a bundle: its folder, its life in the foreground, and what it says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from leafcast.bundle import Bundle, check_expiry, write_bundle
from leafcast.data_dir import DataDir, DataDirUnusable
from leafcast.node_runtime import NodeRuntime, World
from relay.adapters.guard import Guard
from relay.adapters.nats_config import ParentLink
from relay.adapters.simulated_cluster import Settings
from relay.driver import Superseded
from relay.ports import Clock, Dice
from schemas.identity import NodePath, TreeId, random_id

FORMAT = 1
FILE = "joined.json"
BUNDLE_FILE = "bundle.json"
LOOK_SECONDS = 0.2
REFUSED_SECONDS = 3.0
_REFUSED, _OPENED, _UNREACHED = "authorization violation", "leafnode connection created", "away"
_LOST = ("error trying to connect as leafnode", "leafnode connection closed")


class JoinFailed(Exception):
    """The node cannot join, or may not go on; says why and what to do."""

    def __init__(self, path: object, reason: str, remedy: str) -> None:
        super().__init__(f"node {path}: {reason}; {remedy}")
        self.reason = reason
        self.remedy = remedy


def default_folder(bundle: Bundle) -> Path:
    """Where a joined node keeps its state, unless told otherwise: one folder a tree and node."""
    return DataDir.default().folder / "joined" / f"{bundle.tree[:8]}-{bundle.path.domain}"


@dataclass(frozen=True, slots=True)
class JoinedFolder:
    """A folder in use by one joined node; `home` tells it from any other.

    `admitted` says that the tree let the node in once, so that it goes on without its parent.
    """

    folder: Path
    tree: TreeId
    path: NodePath
    home: str
    admitted: bool = False

    def keep(self) -> None:
        """Write down what this folder is."""
        form = {
            "format": FORMAT,
            "tree": self.tree,
            "path": str(self.path),
            "home": self.home,
            "admitted": self.admitted,
        }
        draft = self.folder / f"{FILE}.new"
        draft.write_text(json.dumps(form) + "\n", encoding="utf-8")
        draft.replace(self.folder / FILE)


@contextmanager
def joined_folder(
    folder: Path, file: Path, bundle: Bundle, clock: Clock, dice: Dice
) -> Iterator[JoinedFolder]:
    """Use the folder for this node alone, new or as it was left.

    Raises DataDirUnusable if it is another's or in use, BundleRefused if the bundle came too late.
    """
    place = DataDir(folder.absolute())
    found = _kept(place, bundle)
    if found is None or not found.admitted:
        check_expiry(file, bundle, clock.now().wall_ms)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if place.in_use():
            remedy = "stop the other `leafcast join`, or name another --data-dir"
            raise DataDirUnusable(folder, "another process uses it", remedy)
        with place.locked():
            home = random_id(dice.entropy(16))
            found = found or JoinedFolder(place.folder, bundle.tree, bundle.path, home)
            found.keep()
            write_bundle(folder / BUNDLE_FILE, bundle)
            yield found
    except PermissionError as error:
        remedy = "make it writable, or name another --data-dir"
        raise DataDirUnusable(folder, "it cannot be written", remedy) from error


def _kept(place: DataDir, bundle: Bundle) -> JoinedFolder | None:
    """What an earlier start of this very node left; None in a new folder."""
    remedy = "name another --data-dir"
    if place.tree() is not None:
        raise DataDirUnusable(place.folder, "a whole tree of `leafcast up` lies there", remedy)
    try:
        form = json.loads((place.folder / FILE).read_text(encoding="utf-8"))
        tree, path = form["tree"], form["path"]
        home, admitted = str(form["home"]), bool(form["admitted"])
    except FileNotFoundError:
        if place.folder.is_dir() and any(place.folder.iterdir()):
            raise DataDirUnusable(place.folder, "it holds something else", remedy) from None
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataDirUnusable(place.folder, f"{FILE} is damaged", remedy) from error
    if tree != bundle.tree:
        reason = f"it belongs to {path} of another tree than the bundle"
        raise DataDirUnusable(place.folder, reason, remedy)
    if path != str(bundle.path):
        raise DataDirUnusable(place.folder, f"it belongs to {path}, not {bundle.path}", remedy)
    return JoinedFolder(place.folder, bundle.tree, bundle.path, home, admitted)


class JoinedNode:
    """One node of a tree that runs elsewhere; `say` tells the user what becomes of it."""

    def __init__(
        self,
        bundle: Bundle,
        place: JoinedFolder,
        clock: Clock,
        dice: Dice,
        say: Callable[[str], None],
    ) -> None:
        self.bundle = bundle
        self._place = place
        self._clock = clock
        self._dice = dice
        self._say = say
        self.runtime: NodeRuntime | None = None

    async def run(self) -> None:
        """Run until cancelled; raises JoinFailed if the tree does not let the node in."""
        bundle = self.bundle
        try:
            async with Guard() as guard:
                world = World(guard, self._clock, self._dice, bundle.tree, bundle.roots)
                runtime = self.runtime = NodeRuntime(
                    world,
                    bundle.path,
                    self._place.folder / bundle.path.domain,
                    parent=ParentLink(bundle.parents[0], bundle.seed),
                    attached=None if bundle.relay else Settings(),
                    home=self._place.home,
                )
                async with asyncio.TaskGroup() as group:
                    group.create_task(runtime.run(), name=str(bundle.path))
                    group.create_task(self._watch(runtime), name="watch")
        except* Superseded as stopped:
            remedy = (
                "stop the other one (if its machine is cut off, wait 90 seconds), or make a new "
                f"bundle with `leafcast node add {bundle.path}`, which voids this one"
            )
            reason = "it runs elsewhere already, with the same bundle"
            raise JoinFailed(bundle.path, reason, remedy) from stopped
        except* JoinFailed as failed:
            raise _first(failed) from None

    async def _watch(self, runtime: NodeRuntime) -> None:
        """Tell when the node is in session, and when its parent cannot be reached any more."""
        await runtime.running()
        admitted, told = self._place.admitted, "starting"
        # The parent may be about to let the newest key in.
        patient_until = self._clock.now().seconds + REFUSED_SECONDS
        while True:
            trouble = _trouble(runtime.server.log)
            ready = runtime.node is not None and runtime.node.ready
            patient = trouble == _REFUSED and self._clock.now().seconds <= patient_until
            if trouble == _REFUSED and not admitted and not patient:
                raise _void(self.bundle)
            if ready and not admitted:
                admitted = True
                replace(self._place, admitted=True).keep()
            if trouble != told and (trouble or ready) and not patient:
                told = trouble
                self._say(self._news(trouble))
            await self._clock.sleep(LOOK_SECONDS)

    def _news(self, trouble: str) -> str:
        if not trouble:
            return f"{self.bundle.path} is in session with its parent"
        if trouble == _REFUSED:
            return f"{_void(self.bundle)}; until then it keeps what it has"
        return f"its parent {self.bundle.path.parent} is not reached; trying again"


def _trouble(log: Sequence[str]) -> str:
    """What a node's own server said last about the link to the parent; "" if that is open."""
    trouble = ""
    for line in reversed(log):
        said = line.lower()
        if _REFUSED in said:
            return _REFUSED
        if _OPENED in said:
            return trouble
        if any(loss in said for loss in _LOST):
            trouble = _UNREACHED
    return trouble


def _void(bundle: Bundle) -> JoinFailed:
    reason = (
        f"its parent {bundle.path.parent} does not know this bundle's key: a newer bundle was "
        "made, the node was removed, or the bundle is of another tree"
    )
    remedy = f"make a new one with `leafcast node add {bundle.path}` at the tree it is to join"
    return JoinFailed(bundle.path, reason, remedy)


def _first(group: BaseExceptionGroup[JoinFailed]) -> JoinFailed:
    found = group.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found
