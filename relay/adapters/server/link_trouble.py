"""How the link to the parent is, by what a node's own server says of it in its log.

The log of a relay's server tells of its children's links, too, and they say there what they like.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from relay.adapters.server.server_log import said_in

NOT_LET_IN, AWAY = "authorization violation", "away"
_OPENED = "leafnode connection created"
NO_WEBSOCKET = "it answers, and does not let a WebSocket through"
_CAUSES = {
    "signed by unknown authority": (
        "it shows a certificate that none of the authorities signed which this node believes",
        "see whether the address is right; if the tree's authority is another now, join anew",
    ),
    "certificate is valid for": (
        "its certificate is for other names",
        "dial a name it is for, or have that server listen by this name",
    ),
    "cannot validate certificate for": (
        "its certificate is for no address, or for other ones",
        "dial a name it is for, or have that server listen by this address",
    ),
    "certificate is not valid for any names": (
        "its certificate is for no name",
        "have one made for the name that is dialled",
    ),
    "has expired or is not yet valid": (
        "its certificate is not good at this time",
        "have it renewed there, or set this machine's clock",
    ),
    "first record does not look like a tls": (
        "it does not speak TLS",
        "see whether the port is the one for links",
    ),
    "invalid websocket connection": (
        NO_WEBSOCKET,
        "have the proxy there pass on Upgrade and Connection, to the port that takes WebSockets",
    ),
}
# What has a cause of its own goes before these: another address may just be down.
_NOT_THERE = {
    "lookup ": (
        "its name cannot be looked up here",
        "see whether the name is right; where only a proxy knows it, add a line to /etc/hosts",
    ),
    "connection refused": (
        "nobody listens there",
        "see whether it runs, and whether the port is right",
    ),
    "i/o timeout": ("nothing answers there", "see whether a firewall lets this node out to it"),
    "no route to host": ("there is no way to it", "see to the network of this machine"),
    "network is unreachable": ("there is no way to it", "see to the network of this machine"),
}
# What is said of each try where nothing says why.
_ENDED = {
    "leafnode connection closed: read error": (
        "it takes the link, and ends it at once",
        "it may take TLS alone: write tls:// or wss://; or see whether the port is one for links",
    ),
    "leafnode connection closed: tls handshake failure": _CAUSES[
        "first record does not look like a tls"
    ],
}
_LOOKED_AT = 6
"""So many lines tell what becomes of the last few links."""
_PROXY = re.compile(r"proxy connect failed: (.*)", re.IGNORECASE)
_NO_PROXY = "failed to connect to proxy"
_LOST = ("error trying to connect as leafnode", "leafnode connection closed")


class LinkNews:
    """The link's trouble and its cause, judged again only once the log says more."""

    def __init__(self) -> None:
        # What `trouble_of` says.
        self.trouble = ""
        # What `cause_of` says while the parent is away.
        self.cause = ("", "")
        self._read: list[str] = []

    def look(self, log: list[str]) -> None:
        """Take in what the server said last."""
        # Lines that are the very ones of before are not compared letter by letter.
        if log == self._read:
            return
        self._read = log
        self.trouble = trouble_of(log)
        self.cause = cause_of(log) if self.trouble == AWAY else ("", "")


def trouble_of(log: Sequence[str]) -> str:
    """What was said last about the link; "" if it is open.

    After a reload two links are dialled at once, with the former key and with the present one: what
    becomes of the one is no trouble while the other is open.
    """
    trouble, is_told = "", False
    ended = set[str]()
    for link, line in reversed(_of_parent(log)):
        said = line.lower()
        if _OPENED in said:
            if link not in ended:
                return ""
            is_told = True
        elif NOT_LET_IN in said:
            ended.add(link)
            trouble = trouble if is_told else NOT_LET_IN
            is_told = True
        elif any(loss in said for loss in _LOST):
            ended.add(link)
            trouble = trouble if is_told else AWAY
    return trouble


def cause_of(log: Sequence[str]) -> tuple[str, str]:
    """Why the link does not come about, and what to do; ("", "") if there is no special cause."""
    missing, log = ("", ""), [line for _, line in _of_parent(log)]
    for line in reversed(log):
        said = line.lower()
        if _OPENED in said:
            break
        if found := _PROXY.search(line):
            remedy = "have the proxy let this node out to its parent, or name another with --proxy"
            return f"the proxy on the way out says {found[1]}", remedy
        for mark, cause in _CAUSES.items():
            if mark in said:
                return cause
        if _LOST[0] in said and not missing[0]:
            missing = next((why for mark, why in _NOT_THERE.items() if mark in said), missing)
            if _NO_PROXY in said:
                remedy = "see whether the proxy runs, and whether its URL is right"
                missing = f"the proxy on the way out is not reached: {missing[0]}", remedy
    for mark, cause in _ENDED.items():
        again_and_again = sum(mark in line.lower() for line in log[-_LOOKED_AT:]) > 1
        if again_and_again and not missing[0]:
            return cause
    return missing


def _of_parent(log: Sequence[str]) -> list[tuple[str, str]]:
    """What is said of links that this server dialled, each with its link, and of nobody else."""
    lines = [(said_in(line), line) for line in log]
    ours = {"", *(said.link for said, _ in lines if said.dialled)}
    return [(said.link, line) for said, line in lines if said.link in ours]
