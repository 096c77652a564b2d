"""Hold: what keeps the newest content of the centre from destinations of a placement.

A placement lists its holds in its status, one for each reason. What merely takes its time is none.
"""

from __future__ import annotations

from schemas.api.shared import Count, Value

HOLDS_MAX = 16
"""So many a status lists."""
HOLD_TEXT_MAX = 400
"""So many characters has a message, and a remedy."""


class Hold(Value):
    """What keeps the newest content of the centre from destinations, and the command that helps."""

    reason: str
    since: str | None = None
    # How many destinations lack the newest content by it; None if nobody can tell exactly.
    destinations: Count | None = None
    message: str = ""
    # When it ends by itself, if that is known.
    until: str | None = None
    # The command to run next.
    remedy: str = ""
