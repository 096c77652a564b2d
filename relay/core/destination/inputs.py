"""What a destination is given: its inventory, what was before this run, and who it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from schemas.records.moves import former_paths
from schemas.records.records import LocationRecord, Profile
from schemas.reports.reports import Done
from schemas.values.identity import MailKey, NodePath


class SignedInventory(NamedTuple):
    """What the signed inventory says of a destination, whether or not its profile is in force."""

    # Whether a placement in force is meant for it.
    selects: Callable[[Profile, MailKey], bool]
    # The Locations that it belongs to.
    locations: Callable[[Profile], Iterable[LocationRecord]]


class FormerRun(NamedTuple):
    """What is known of a destination from before this run."""

    # What its syncer applied.
    done: Sequence[Done] = ()
    # The newest generation by which something may have become unwanted.
    last_loss: int = 0
    # The other paths at which this very node hung.
    paths: Iterable[NodePath] = ()
    # The arms that it took of placements with windows.
    taken: Mapping[MailKey, tuple[str, ...]] = MappingProxyType({})


class OwnProfiles:
    """The profiles in force that say who hangs at a path."""

    def __init__(self, path: NodePath, former: Iterable[NodePath]) -> None:
        """`former` are the other paths at which this very node hung."""
        self._path = path
        self._former = frozenset(former)
        # Those that name this path, and those that this node may still be.
        self._profiles: dict[MailKey, Profile] = {}
        self._on_the_move: dict[MailKey, Profile] = {}

    def put(self, key: MailKey, profile: Profile | None) -> Profile | None:
        """Take a profile in force, None if it is none any more; who hangs here.

        One of another path counts while none has this one, if this very node hung there, or if it
        says that what hung here was moved with all it has: it takes nothing away.
        """
        self._profiles.pop(key, None)
        self._on_the_move.pop(key, None)
        if profile is not None and profile.path == self._path:
            self._profiles[key] = profile
        elif profile is not None and (
            profile.path in self._former or self._path in former_paths(profile.annotations)
        ):
            self._on_the_move[key] = profile
        mine = self._profiles or self._on_the_move
        return max(mine.values(), key=lambda each: each.generation, default=None)
