"""HealthRules as they travel: down with what collectors ask, to where the objects are.

What users write of them is in `schemas.api.health_rule`.
"""

from __future__ import annotations

import hashlib

from schemas.values.wire import WireRecord, encode

HEALTH_PROGRAMS_MAX = 64
"""Of one placement: of more kinds with rules the first by group and kind are sent."""


class HealthProgram(WireRecord, frozen=True):
    """How well the objects of one kind are, by expressions; an empty one says nothing."""

    name: str
    group: str
    resource: str
    healthy: str = ""
    degraded: str = ""
    # What is said of one that is not healthy.
    message: str = ""
    # Whether it came to a good end.
    done: str = ""
    ignore: bool = False

    @property
    def id(self) -> str:
        """By what another version of it is told from this one."""
        return hashlib.sha256(encode(self)).hexdigest()
