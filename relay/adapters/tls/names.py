"""Which names a certificate of the tree may be for; known without the library that reads them."""

from __future__ import annotations

import re
from ipaddress import ip_address

_LABEL = r"[a-z0-9_]([-a-z0-9_]{0,61}[a-z0-9_])?"
_DNS_NAME = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(\.{_LABEL})*\Z")


def is_host(name: str) -> bool:
    """Whether it names one machine: a DNS name in lower case, or an address good everywhere."""
    try:
        scoped = "%" in str(ip_address(name))
        return not scoped and not ip_address(host_form(name)).is_unspecified
    except ValueError:
        return bool(_DNS_NAME.match(name))


def host_form(name: str) -> str:
    """The one text of a name or an address, by the rules of those who check certificates.

    Names that have the same are one name to them: ::ffff:10.0.0.1 is 10.0.0.1.
    """
    try:
        address = ip_address(name)
    except ValueError:
        return name.lower().removesuffix(".")
    return str(getattr(address, "ipv4_mapped", None) or address)
