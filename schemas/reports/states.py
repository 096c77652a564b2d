"""Words of reports that people read, for those who read no report of bytes."""

from __future__ import annotations

from typing import Final

NEVER_JOINED: Final = "never joined"
"""The state, and the health, of a destination whose node was added and has never been heard of."""
MAINTAINED: Final = "maintenance"
"""The same of a destination at which a person works: it is counted, and not waited for."""
IN_MAINTENANCE: Final = "in maintenance"
NOT_WORKING, AT_WORK = 2, 3
"""Severities of what was delivered: it does not work, or has not worked yet for long."""
