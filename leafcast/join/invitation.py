"""Where to ask, and with which token: from a command line, or a file of `leafcast node add`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from relay.adapters.server.leaf_address import is_loopback
from relay.adapters.server.nats_config import TLS_SCHEMES
from schemas.enrolment.tokens import TEXT_MAX, Token, read_token
from schemas.values.faults import Unusable
from schemas.values.identity import NodePath

SCHEMES = ("nats", "tls", "ws", "wss")
ADDRESSES = "write wss://HOST/PATH, tls://HOST:PORT, or nats://127.0.0.1:PORT"
TOKEN_VARIABLE = "LEAFCAST_TOKEN"  # noqa: S105 - a name
_FILE_BYTES_MAX = 2 * TEXT_MAX


class InvitationUnusable(Unusable):
    """An address, a token or a path that cannot be asked with; says which, and what to do."""


@dataclass(frozen=True, slots=True)
class Invitation:
    """Who may ask where to be which node; the first of the addresses that is reached counts."""

    urls: tuple[str, ...]
    token: Token
    path: NodePath


def invitation_of(source: str, token: str | None, path: str | None) -> Invitation | None:
    """What was named: addresses with a token, or a file of both; None of any other file.

    Raises InvitationUnusable or TokenRefused.
    """
    if "://" in source:
        if not token:
            remedy = f"say --token, or set {TOKEN_VARIABLE}; `leafcast node add` prints one"
            raise InvitationUnusable(source, "an address needs a token", remedy)
        return _invitation(source, source, token, path)
    if token and not Path(source).exists():
        raise InvitationUnusable(source, "it is no address of a server", ADDRESSES)
    words = _words(Path(source))
    if words is None:
        return None
    return _invitation(source, words[0], words[1], path)


def read_invitation(data: bytes) -> tuple[str, str] | None:
    """The addresses and the token of a file; None if it holds something else."""
    if len(data) > _FILE_BYTES_MAX:
        return None
    try:
        words = data.decode("ascii").split()
    except UnicodeDecodeError:
        return None
    return (words[0], words[1]) if len(words) == 2 and "://" in words[0] else None


def _words(file: Path) -> tuple[str, str] | None:
    try:
        return read_invitation(file.read_bytes()) if file.stat().st_size < 2**20 else None
    except OSError:
        return None  # Whoever reads it as a former release's bundle says so.


def _invitation(source: str, said: str, text: str, path: str | None) -> Invitation:
    urls = tuple(said.split(","))
    for url in urls:
        check_address(url)
    token = read_token(text)
    asked = NodePath.parse(path) if path else token.path
    if asked is None:
        remedy = "say which node this is with --path"
        raise InvitationUnusable(source, "the token is for several nodes", remedy)
    if token.path is not None and asked != token.path:
        reason = f"the token is for {token.path}, not {asked}"
        raise InvitationUnusable(source, reason, "leave out --path, or ask for another token")
    return Invitation(urls, token, asked)


def check_address(url: str) -> None:
    """Raise InvitationUnusable for what is no address of a parent, or leads there in clear."""
    if not _is_address(url):
        raise InvitationUnusable(url, "it is no address of a server", ADDRESSES)
    parts = urlsplit(url)
    if parts.scheme not in TLS_SCHEMES and not is_loopback(parts.hostname or ""):
        reason = "it is in clear, and leads to another machine"
        raise InvitationUnusable(url, reason, "write tls:// or wss://")


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
