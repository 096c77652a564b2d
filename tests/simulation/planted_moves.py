"""Faults planted on purpose where edges move to other parents, each what a hurried change might do.

Each gives what it changes: an owner, an attribute, and what stands there instead.
"""

from __future__ import annotations

from typing import Any

from controllers.core import moving
from relay.core.destination import destination
from tests.simulation.planted import Patch


def keep_the_place_it_left() -> Patch:
    """Leave the node in force that an edge moved away from."""
    return moving, "former_paths", lambda _annotations: ()


def forget_where_it_hung() -> Patch:
    """Be no destination before one is told of, or once one is said to be elsewhere."""

    def take_profile(self: Any, _key: Any, _profile: Any) -> bool:
        before = self.profile
        self.own_profile()
        return bool(self.profile != before)

    return edge.Edge, "take_profile", take_profile
