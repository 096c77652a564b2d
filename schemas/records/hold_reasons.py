"""The reasons of holds: words for programs, each naming what keeps content from destinations."""

from __future__ import annotations

INVALID, OBJECTS_REFUSED, KIND_UNREADABLE = "Invalid", "ObjectsRefused", "KindUnreadable"
CUSTOMIZATION_FROZEN, REMOVAL_HELD = "CustomizationFrozen", "RemovalHeld"
PLACEMENTS_DIFFER, OVERRIDDEN = "PlacementsDiffer", "Overridden"
SECRETS_UNOPENED, MOVING, WAITING = "SecretsUnopened", "Moving", "WaitingForPlacement"
ROLLOUT_DELETED, ROLLOUT_INVALID, ROLLOUT_HELD = "RolloutDeleted", "RolloutInvalid", "RolloutHeld"
ROLLOUT_PAUSED, WAVE_FAILED = "RolloutPaused", "WaveFailed"
AWAITING_APPROVAL, ROLLOUT_ABORTED = "AwaitingApproval", "RolloutAborted"
ROLLOUT_BLOCKED, ROLLOUT_PARTIAL, UNDONE = "RolloutBlocked", "RolloutPartial", "Undone"
PINNED, PLACE_FROZEN, WINDOW = "Pinned", "PlaceFrozen", "WaitingForWindow"
MAINTENANCE = "Maintenance"

ENDS_BY_ITSELF = frozenset({MOVING, WAITING, ROLLOUT_BLOCKED, WINDOW, MAINTENANCE})
"""Those that go away without anyone's help."""
OF_ROLLOUTS = frozenset(
    {
        ROLLOUT_DELETED,
        ROLLOUT_INVALID,
        ROLLOUT_HELD,
        ROLLOUT_PAUSED,
        WAVE_FAILED,
        AWAITING_APPROVAL,
        ROLLOUT_ABORTED,
        ROLLOUT_BLOCKED,
        ROLLOUT_PARTIAL,
        UNDONE,
        PINNED,
        PLACE_FROZEN,
    }
)
"""Those by which the gates of a Rollout give destinations another content."""
NEEDS_A_PERSON = frozenset({WAVE_FAILED, ROLLOUT_DELETED, ROLLOUT_INVALID, PLACEMENTS_DIFFER})
"""Those in which something went wrong that nobody meant."""
NOT_AWAITED = frozenset({MAINTENANCE})
"""Those that nobody waits for: a placement is delivered nevertheless."""

REPORTED = frozenset({CUSTOMIZATION_FROZEN, OVERRIDDEN})
"""Those that edges report: of a change that was made just now they say nothing yet."""


def ends_by_itself(reason: str, until: str | None) -> bool:
    """Whether a hold goes away without anyone's help: by its kind, or at a time that is known."""
    return reason in ENDS_BY_ITSELF or bool(until)
