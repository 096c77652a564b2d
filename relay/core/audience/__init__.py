"""Who is meant: which children a record concerns and for how many destinations, exactly.

What is computed here follows from signed inventory alone. Nothing that a child claims enters.
"""

from relay.core.audience.audience import HERE, Audience

__all__ = ["HERE", "Audience"]
