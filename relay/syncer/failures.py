"""What may keep an action from being carried out, as it is said in a report."""

from __future__ import annotations

from relay.objects.customization import CustomizationFailed
from relay.objects.policies import PolicyUnknown
from relay.ports import SpaceError
from relay.syncer.applier import ContentMissing
from relay.syncer.prune import NotEmpty
from schemas.missing_rights import reported
from schemas.refusals import BlobRefused, CodecError

ACTION_SECONDS_MAX = 30.0
FAILURES = (
    SpaceError,
    ContentMissing,
    CustomizationFailed,
    PolicyUnknown,
    NotEmpty,
    BlobRefused,
    CodecError,
    TimeoutError,
)
"""Of these an action is tried again."""


def failure_text(error: Exception) -> str:
    """One of FAILURES in the words of a report."""
    match error:
        case SpaceError():
            return reported(error.reason, error.message)
        case ContentMissing():
            return f"ContentMissing: {error}"
        case TimeoutError():
            return f"Timeout: no answer within {ACTION_SECONDS_MAX:.0f} s"
        case _:
            return str(error)
