"""What Kubernetes takes as a name or a label; each check says what is wrong, or None.

The rules are those of k8s.io/apimachinery: DNS-1123 labels and subdomains, qualified names for the
keys of labels and annotations, path segments for the names of RBAC objects.
"""

from __future__ import annotations

import re

LABEL_MAX = 63
SUBDOMAIN_MAX = 253

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_QUALIFIED = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?\Z")

DNS_LABEL_RULE = f"a-z, 0-9 and '-', alphanumeric at both ends, at most {LABEL_MAX} characters"
SUBDOMAIN_RULE = (
    f"a-z, 0-9, '-' and '.', alphanumeric at both ends of each part, "
    f"at most {SUBDOMAIN_MAX} characters"
)
QUALIFIED_RULE = (
    f"a name of letters, digits, '-', '_' and '.', alphanumeric at both ends, at most {LABEL_MAX} "
    "characters, with an optional prefix such as example.com/"
)
LABEL_VALUE_RULE = (
    f"empty, or letters, digits, '-', '_' and '.', alphanumeric at both ends, "
    f"at most {LABEL_MAX} characters"
)
PATH_SEGMENT_RULE = f"not '.' or '..', without '/' and '%', at most {SUBDOMAIN_MAX} characters"


def dns_label_fault(text: str) -> str | None:
    """Say why the text is no DNS-1123 label (`store-1`)."""
    if len(text) <= LABEL_MAX and _DNS_LABEL.match(text):
        return None
    return f'"{text}" is not a DNS label'


def subdomain_fault(text: str) -> str | None:
    """Say why the text is no DNS-1123 subdomain (`crontabs.stable.example.com`)."""
    if len(text) <= SUBDOMAIN_MAX and _SUBDOMAIN.match(text):
        return None
    return f'"{text}" is not a DNS subdomain'


def path_segment_fault(text: str) -> str | None:
    """Say why the text is no path segment (`system:node`)."""
    if (
        text
        and len(text) <= SUBDOMAIN_MAX
        and text not in (".", "..")
        and not set(text) & set("/%")
    ):
        return None
    return f'"{text}" is not a path segment'


def label_key_fault(text: str) -> str | None:
    """Say why the text is no key of a label or an annotation (`app`, `example.com/tier`)."""
    prefix, slash, name = text.rpartition("/")
    if slash and subdomain_fault(prefix):
        return f'the prefix of "{text}" is not a DNS subdomain'
    if len(name) <= LABEL_MAX and _QUALIFIED.match(name):
        return None
    return f'"{text}" is not a label key'


def label_value_fault(text: str) -> str | None:
    """Say why the text is no value of a label; the empty one is."""
    if not text or (len(text) <= LABEL_MAX and _QUALIFIED.match(text)):
        return None
    return f'"{text}" is not a label value'
