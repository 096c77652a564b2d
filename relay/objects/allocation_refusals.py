"""Refusals of what clusters hand out: an address, a port, a selector that an object asks for.

It is taken there, or not that cluster's to give. The words are the server's; the remedy is ours.
"""

from __future__ import annotations

import re

from schemas.objects.objects import ObjectKey

_ASKED_FOR: dict[tuple[str, str], re.Pattern[str]] = {
    ("", "services"): re.compile(
        r"\bspec\.(?:clusterIPs?|ipFamilies|ipFamilyPolicy|healthCheckNodePort)\b"
        r"|\bspec\.ports\[\d+\]\.nodePort\b|\bHealthCheck NodePort\b"
    ),
    ("batch", "jobs"): re.compile(r"\bspec\.selector\b"),
}
_REMEDY = "; ask for another, or say `cleaning: KubeStellar` in the placement"
_OF_OBJECT = re.compile(r'^\S+ "[^"]*" is invalid: ')


def with_remedy(key: ObjectKey, message: str) -> str:
    """The words of a server that refused an object, with what to do if it is about that."""
    asked_for = _ASKED_FOR.get(key.group_resource)
    if asked_for is None or not asked_for.search(message):
        return message
    return f"{without_title(message)}{_REMEDY}"


def without_title(message: str) -> str:
    """A refusal without the object's name: a report has little room, and names it beside."""
    return _OF_OBJECT.sub("", message)
