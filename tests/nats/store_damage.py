"""Bits, zeroes and cuts in the files of a node's store, placed by dice."""

from __future__ import annotations

import random
from pathlib import Path

WEIGHTS = {"block": 10, "index": 3, "meta": 3, "consumer": 3}
"""How often files of each sort are struck: message blocks hold what is kept."""
_PATTERNS = {
    "block": "*/streams/*/msgs/*.blk",
    "index": "*/streams/*/msgs/index.db",
    "meta": "*/streams/*/meta.*",
    "consumer": "*/streams/*/obs/*/*",
}


def strike(store: Path, dice: random.Random, spared: str = "") -> str:
    """Damage one file of the store, of any stream but the spared one; says what and where.

    Raises LookupError if there is none.
    """
    root = store / "jetstream" / "jetstream"
    found = {
        sort: [file for file in sorted(root.glob(pattern)) if file.stat().st_size]
        for sort, pattern in _PATTERNS.items()
    }
    sorts = [sort for sort, files in found.items() if any(spared != _stream(it) for it in files)]
    if not sorts:
        raise LookupError(root)
    file = root
    while file == root or _stream(file) == spared:
        (sort,) = dice.choices(sorts, [WEIGHTS[each] for each in sorts])
        file = dice.choice(found[sort])
    data = bytearray(file.read_bytes())
    kind, at = dice.choice(("bit", "zeroes", "cut")), dice.randrange(len(data))
    if kind == "bit":
        data[at] ^= 1 << dice.randrange(8)
    elif kind == "zeroes":
        data[at : at + 64] = bytes(len(data[at : at + 64]))
    else:
        del data[at:]
    file.write_bytes(data)
    return f"{kind} at {at} of {file.relative_to(root)}"


def _stream(file: Path) -> str:
    parts = file.parts
    return parts[parts.index("streams") + 1]
