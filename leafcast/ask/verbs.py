"""How a daemon and a node are asked: the subjects, and the verbs that more than one side names."""

from __future__ import annotations

API_PREFIX = "leafcast.api."
STANDING = "standing"
"""The verb that members of a centre answer, also while none is active: how they stand."""
NODE_HERE = "node-here"
"""The verb that a node below the centre answers at its own machine: how it stands."""
