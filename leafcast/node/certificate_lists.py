"""Lists of certificates whom a node believes, as PEM text; nothing here reads what they say.

What reads certificates takes 12 MB, and edges have no other use for it.
"""

from __future__ import annotations

END = "-----END CERTIFICATE-----"


def overlap(before: str, after: str) -> bool:
    """Whether a list comes of another one: they have a certificate in common."""
    return bool(_each(before) & _each(after))


def _each(text: str) -> set[str]:
    return {"".join(one.split()) for one in text.split(END)[:-1]}
