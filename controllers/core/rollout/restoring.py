"""What a rejected object is written back to at the centre: its former content, and no more.

Only what a placement sends is put back: what the centre added, or what is taken off before an
object is sent, stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from schemas.objects.objects import Object, ObjectKey

_SERVERS = ("creationTimestamp", "generation", "managedFields", "selfLink")
"""Fields of metadata that the space says, beside its marks."""


class Restoration(NamedTuple):
    """What is written: an object as a whole, with the marks of the one that it is made of.

    None is to delete it, if it is the one of this uid.
    """

    key: ObjectKey
    object: Object | None
    uid: str = ""


def restoration(
    key: ObjectKey, live: Object | None, sent: Object | None, former: Object | None
) -> Restoration:
    """What to write: `live` is there, of which `sent` would go out, and `former` goes out."""
    metadata = (live or {}).get("metadata") or {}
    uid = str(metadata.get("uid") or "")
    if former is None:
        return Restoration(key, None, uid)
    if live is None or sent is None:
        return Restoration(key, former)
    made = dict(_patched(live, sent, former))
    # With its resourceVersion and uid nobody's change of it meanwhile is written over.
    made["metadata"] = {k: v for k, v in made["metadata"].items() if k not in _SERVERS}
    return Restoration(key, made, uid)


def _patched(live: Any, sent: Any, former: Any) -> Any:
    """What is live with all that differs between what is sent and the former put back."""
    if sent == former:
        return live
    if live == sent:
        return former
    if all(isinstance(it, Mapping) for it in (live, sent, former)):
        left = {k: v for k, v in live.items() if k not in sent or k in former}
        for name, value in former.items():
            known = name in live and name in sent
            left[name] = _patched(live[name], sent[name], value) if known else value
        return left
    lists = all(isinstance(it, list | tuple) for it in (live, sent, former))
    if lists and len(live) == len(sent) == len(former):
        return [_patched(*each) for each in zip(live, sent, former, strict=True)]
    return former
