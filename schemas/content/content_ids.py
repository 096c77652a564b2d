"""What a copy and its source are compared by: a short id of an object's content.

An edge names by it what is in force of an object; whoever knows the object says whether that is
what it has now. A relay on the way learns from it only whether two contents are equal.
"""

from __future__ import annotations

import hashlib

from schemas.objects.objects import ObjectKey
from schemas.values.identity import ContentHash

CONTENT_ID_BYTES = 16


def content_id(key: ObjectKey, identity: ContentHash) -> bytes:
    """The id of an object's content; `identity` is its entry's in the manifest."""
    parts = (key.group, key.resource, key.namespace, key.name, identity)
    return hashlib.sha256("\0".join(parts).encode()).digest()[:CONTENT_ID_BYTES]
