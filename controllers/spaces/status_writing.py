"""A status is written if it differs from what the object says, and again if the space refuses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controllers.core.status.job_statuses import storable
from relay.space_errors import NOT_FOUND, SpaceError
from relay.space_port import Space
from schemas.objects.objects import ObjectKey


async def put_status(
    space: Space, key: ObjectKey, obj: Mapping[str, Any] | None, status: Mapping[str, Any]
) -> SpaceError | None:
    """Write the status of an object that is known as `obj`; why that is to be tried again."""
    if obj is None:
        return None
    status = storable(key, obj.get("status"), status)
    if (obj.get("status") or {}) == status:
        return None
    try:
        await space.set_status(key, dict(status))
    except SpaceError as error:
        return error if error.reason != NOT_FOUND else None
    return None
