"""Hold: what keeps the newest content of the centre from destinations of a placement.

A placement lists its holds in its status, one for each reason. What merely takes its time is none.
"""

from __future__ import annotations

from schemas.api.shared import ApiValue, Count

HOLDS_MAX = 16
"""So many a status lists."""
HOLD_TEXT_MAX = 400
"""So many characters has a message, and a remedy."""


class Hold(ApiValue):
    """What keeps the newest content of the centre from destinations, and the command that helps."""

    reason: str
    """What keeps it, in one word, for programs."""
    since: str | None = None
    """Since when it is kept."""
    destinations: Count | None = None
    """How many destinations lack the newest content by it; absent if nobody can tell exactly."""
    message: str = ""
    """What keeps it, for people."""
    until: str | None = None
    """When it ends by itself, if that is known."""
    remedy: str = ""
    """The command to run next."""
