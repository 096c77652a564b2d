"""Tokens that were handed out, kept in the centre's data directory, a file each.

A file holds what the centre knows of a token: who reads it can neither ask with it nor join.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from controllers.core.access.issued_tokens import IssuedToken, TokenRequest
from leafcast.pinned_roots import roots_form, roots_from
from relay.atomic_file import atomic_write, make_folder
from schemas.values.codec import from_json
from schemas.values.identity import NodePath
from schemas.values.refusals import WireRefused

FORMAT = 1
FOLDER = "tokens"

log = logging.getLogger("leafcast")


class TokenFiles:
    """The files of all tokens below a data directory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / FOLDER

    def read(self) -> list[IssuedToken]:
        """All that can be read; a damaged file is told in the log, and its token is as unknown."""
        found = []
        for file in sorted(self._folder.glob("*.json")):
            try:
                found.append(read_token_file(file.read_bytes()))
            except (OSError, WireRefused, ValueError, KeyError, TypeError, AttributeError) as error:
                log.warning("%s is damaged, so its token is void: %r", file, error)
        return found

    def keep(self, ones: Iterable[IssuedToken]) -> None:
        """Write these down; raises OSError."""
        make_folder(self._folder)
        for one in ones:
            atomic_write(self._file(one.token), token_file_text(one))

    def forget(self, tokens: Iterable[str]) -> None:
        for token in tokens:
            self._file(token).unlink(missing_ok=True)

    def _file(self, token: str) -> Path:
        return self._folder / f"{token}.json"


def read_token_file(data: bytes) -> IssuedToken:
    """What a file says; raises WireRefused, ValueError, KeyError, TypeError or AttributeError."""
    form: dict[str, Any] = from_json(data)
    if form["format"] != FORMAT:
        raise ValueError(f"it has format {form['format']!r}, and this program reads {FORMAT}")
    found = IssuedToken(
        public=_bytes(form["public"], 32),
        path_pattern=str(form["where"]),
        roots=roots_from(form),
        made_ms=int(form["made_ms"]),
        expires_ms=int(form["expires_ms"]),
        uses=int(form["uses"]),
        approved=bool(form["sure"]),
        relay=bool(form["relay"]),
        replaces=bool(form["again"]),
        labels={str(key): str(value) for key, value in form["labels"].items()},
        authority=_bytes(form["authority"]),
        void_ms=int(form["void_ms"]),
        requests=tuple(map(_requested, form["requests"])),
    )
    if not found.is_sound:
        raise ValueError("what it says of its requests cannot be")
    return found


def _requested(form: dict[str, Any]) -> TokenRequest:
    return TokenRequest(
        NodePath.parse(form["path"]),
        str(form["nkey"]),
        str(form["said"]),
        int(form["asked_ms"]),
        str(form["state"]),
        int(form["decided_ms"]),
    )


def token_file_text(one: IssuedToken) -> str:
    """What a file says of it."""
    form = {
        "format": FORMAT,
        "public": _text(one.public),
        "where": one.path_pattern,
        **roots_form(one.roots),
        "made_ms": one.made_ms,
        "expires_ms": one.expires_ms,
        "uses": one.uses,
        "sure": one.approved,
        "relay": one.relay,
        "again": one.replaces,
        "labels": dict(one.labels),
        "authority": _text(one.authority),
        "void_ms": one.void_ms,
        "requests": [
            {
                "path": str(it.path),
                "nkey": it.nkey,
                "said": it.host_name,
                "asked_ms": it.asked_ms,
                "state": it.state,
                "decided_ms": it.decided_ms,
            }
            for it in one.requests
        ],
    }
    return json.dumps(form) + "\n"


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str, length: int | None = None) -> bytes:
    found = base64.b64decode(text, validate=True)
    if length is not None and len(found) != length:
        raise ValueError(f"a key has not {length} bytes")
    return found
