"""What may keep an action from being carried out, as it is said in a report."""

from __future__ import annotations

import re
from collections.abc import Mapping

from relay.core.destination.claims import DesiredObject
from relay.objects.customization import CustomizationFailed
from relay.objects.policies import PolicyUnknown
from relay.space_errors import SpaceError
from relay.syncer.applier import ContentMissing
from relay.syncer.prune import NotEmpty
from schemas.objects.objects import NAMESPACES, ObjectKey
from schemas.reports.missing_rights import reported
from schemas.values.refusals import BlobRefused, CodecError

ACTION_SECONDS_MAX = 30.0
_MISSING = re.compile(r'^NotFound: .*namespaces "[^"]*" not found')
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
"""After these an action is tried again."""


class ObjectErrors(dict[ObjectKey, str]):
    """Why the last action on each object failed."""

    def told(
        self,
        key: ObjectKey,
        wanted: Mapping[ObjectKey, DesiredObject],
    ) -> str:
        """What is said of an object; "" if nothing failed.

        Who is refused for a Namespace of which no placement tells says what the matter is there.
        """
        error = self.get(key, "")
        if not _MISSING.search(error):
            return error
        holder = ObjectKey(*NAMESPACES, "", key.namespace)
        there = wanted.get(holder)
        if there is None or there.placements:
            return error
        trouble = self.get(holder)
        return f"its namespace cannot be made: {trouble}" if trouble else error


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
