"""Whether what is handed over to a node leads to this machine alone: then it says so."""

from __future__ import annotations

import re

import click

_URL = re.compile(r"\b(?:nats|tls|ws|wss)://[^\s\",]+")
_LOOPBACK = re.compile(r"//(?:127(?:\.\d{1,3}){3}|localhost|\[::1\])(?:[:/]|$)")


def only_here(text: str) -> str:
    """The address in a text if all that it names lead to this machine alone; "" if not."""
    urls = _URL.findall(text)
    return urls[0] if urls and all(map(_LOOPBACK.search, urls)) else ""


def tell_if_only_here(text: str) -> None:
    """Warn of a token's line with which no other machine can join."""
    if url := only_here(text):
        click.echo(
            f"Note: only this machine reaches {url}; for others the tree listens at a name of its "
            "own: leafcast up --listen NAME",
            err=True,
        )
