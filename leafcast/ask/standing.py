"""How it is with a node, by what its parent answered of it."""

from __future__ import annotations

from relay.core.link.session import Presence
from relay.core.view import Standing


def standing(
    silent_since_ms: int | None, *, left: bool, in_session: bool, joined: bool
) -> Standing:
    """How it is with a child, by what its parent answered of it."""
    presence = Presence.IN_STEP if in_session else Presence.CATCHING_UP
    if not joined:
        presence = Presence.NEVER_JOINED
    elif left:
        presence = Presence.LEFT
    elif silent_since_ms is not None:
        presence = Presence.SILENT
    return Standing(presence, silent_since_ms)
