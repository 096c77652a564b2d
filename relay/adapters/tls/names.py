"""Which names a certificate of the tree may be for; known without the library that reads them."""

from __future__ import annotations

import re
from ipaddress import ip_address

_LABEL = r"[a-z0-9_]([-a-z0-9_]{0,61}[a-z0-9_])?"
_DNS_NAME = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(\.{_LABEL})*\Z")


def is_host(name: str) -> bool:
    """Whether it names one machine: a DNS name in lower case, or an address."""
    try:
        return not ip_address(name).is_unspecified
    except ValueError:
        return bool(_DNS_NAME.match(name))
