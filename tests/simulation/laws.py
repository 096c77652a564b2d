"""What the laws are called: the ten safety properties by their names, and what they rest on."""

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

PLANNED = "What plan says is what becomes"
SEALED = "Sealed content opens for edges alone, and stays what it is"
WAITED = "New content waits for what it depends on"
MADE_FIRST = "No move leaves fewer healthy copies"

CONTENT_FIRST = "Content before its delta"
ONE_SESSION = "One run has a node's place"
GATES = "Only through an open gate"
NO_WAY_BACK = "Nobody goes back"
WAVES = "A wave opens once the one before is good"
TAKEN_BACK = "What was aborted or undone goes out by nobody's other change"
KEPT_PLACES = "Pins and freezes hold"
HELD = "What an edit takes, and is much, stays until a person lets it go"
NO_EXCEPTION = "No exception"
