"""What a decision on a rollout looks at, besides its spec and its state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from controllers.core.rollout.rejection import Rejection, Wanted
from controllers.core.rollout.state import ChangeCause
from schemas.api.rollout_spec import Wave
from schemas.content.blobs import Reference
from schemas.records.records import Gate
from schemas.reports.reports import Count


@dataclass(frozen=True, slots=True)
class RolloutFacts:
    """What is wanted of the placement, what its ledger says, and what is counted."""

    # What is to go out of what its space wants, once the centre keeps it.
    wanted: Wanted | None = None
    # What the ledger remembers of revisions that were aborted or undone.
    rejection: Rejection | None = None
    change: ChangeCause = field(default_factory=ChangeCause)
    # Those of its delta; None if there is none.
    gates: tuple[Gate, ...] | None = None
    # What was counted of that very delta.
    count: Count | None = None
    # Whether there may have been a delta which nobody remembers.
    is_lost: bool = False
    # Whether the placement was deleted, and its delta with it.
    is_gone: bool = False
    uid: str = ""
    # What a person asks of the rollout.
    request: str = ""
    members: Callable[[Wave], int] = field(default=lambda _wave: 0)
    """About how many destinations a wave admits."""
    matches: Callable[[Wave], bool] = field(default=lambda _wave: True)
    """Whether a wave's labels match any destination of the placement, whatever its share."""
    label_values: Callable[[str], Sequence[str]] = field(default=lambda _label: ())
    blocked: Callable[[], str] = field(default=lambda: "")
    """Why no revision may begin or go on now, as another rollout has objects of it; "" if none."""
    lacks: Callable[[Reference], bool] = field(default=lambda _: False)
    """Whether some of a content is not kept at the centre any more."""
    in_wave: Callable[[str, AbstractSet[str]], AbstractSet[str]] = field(
        default=lambda _gate, _paths: frozenset()
    )
    """Which of these paths are of destinations that count in the wave of the gate of a name."""
    is_place: Callable[[str], bool] = field(default=lambda _: True)
    """Whether a path is one of a node or a destination."""

    @property
    def target(self) -> Reference | None:
        """The content that is to go out."""
        return None if self.wanted is None else self.wanted.target
