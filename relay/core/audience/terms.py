"""Terms: what an index of label sets and an index of selectors have in common, as plain strings.

`key=value` is a label, `key` says that a key is present, `=space` is the inventory space.
One string each keeps a million unique labels small.
"""

from __future__ import annotations

from collections.abc import Mapping


def space_term(space: str) -> str:
    return f"={space}"


def label_term(key: str, value: str) -> str:
    return f"{key}={value}"


def selectable(labels: Mapping[str, str]) -> Mapping[str, str]:
    """The labels that a selector can name. The others would read as terms of another meaning."""
    if "" not in labels and "=" not in "".join(labels):
        return labels
    return {key: value for key, value in labels.items() if key and "=" not in key}
