"""How fields of a status are merged over destinations, as an edge says it and relays do it.

A node is a tuple of one of these and what it merges: (LEAST, 3), (FIELDS, {name: node}), (DIFFER,).
"""

from __future__ import annotations

from typing import Any

MergeNode = tuple[Any, ...]

LEAST, MOST, ALL_TRUE, SAME, FIELDS, CONDITIONS, FIRST, DIFFER = range(8)
"""The least or the greatest number, AND, kept while all say the same, field by field, conditions by
type, the first text in order; and what nothing can be said of."""
