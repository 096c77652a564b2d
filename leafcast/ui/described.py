"""How a command names what a page shows. Pure."""

from __future__ import annotations

import re

from schemas.objects.objects import ObjectKey

_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9.:]*[A-Za-z0-9])?")


def described(key: ObjectKey) -> str:
    """What `leafcast describe` takes of it; "" where a word is no name that Kubernetes has.

    A person pastes the command into a shell, and whoever runs an edge may have chosen the words.
    """
    return _said(key, " ")


def named(key: ObjectKey) -> str:
    """The same as KIND/NAME, as `leafcast proof --object` takes it."""
    return _said(key, "/")


def _said(key: ObjectKey, between: str) -> str:
    words = [key.resource, key.name, *filter(None, (key.group, key.namespace))]
    if not all(_NAME.fullmatch(word) for word in words):
        return ""
    kind = f"{key.resource}.{key.group}" if key.group else key.resource
    return f"{kind}{between}{key.name}" + (f" -n {key.namespace}" if key.namespace else "")
