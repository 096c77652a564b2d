"""What the laws are called: the safety properties by their names, and what they rest on."""

from __future__ import annotations

CONVERGENCE = "Convergence"
NO_RESURRECTION = "No resurrection"
ONLY_SIGNED = "Only signed, only mine"
NO_LOSS = "No loss on reject"
BOUNDED = "Bounded"
AUTONOMY = "Autonomy"
EXACTLY_ONCE = "Exactly once counting"
LEAST_PRIVILEGE = "Least privilege"
NO_IGNORANCE = "No deletion from ignorance"
WITHHOLDING = "Withholding is seen"

ACKNOWLEDGED = "What is acknowledged is kept"
CONTENT_FIRST = "Content before its delta"
ONE_SESSION = "The older session stops"
