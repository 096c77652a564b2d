"""A key in a file, as JSON that says of which kind it is, for its holder only."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from relay.atomic_file import atomic_write
from schemas.values.codec import from_json
from schemas.values.faults import Unusable

SIZE_MAX_BYTES = 256 * 1024
HALF_BYTES = 32
T = TypeVar("T")


class KeyFileRefused(Unusable):
    """A file that is not what it should be; says which, why, and what to do."""


def write_key_form(file: Path, form: Mapping[str, Any]) -> None:
    """Write it whole, in place of what is there; raises KeyFileRefused."""
    try:
        atomic_write(file, json.dumps(form, indent=2) + "\n")
    except OSError as error:
        raise KeyFileRefused(file, str(error.strerror), "name another file") from error


def write_key_pair(file: Path, private: Mapping[str, Any], public: Mapping[str, Any]) -> Path:
    """Write a new key for its holder, and its public half beside it: that file.

    Raises KeyFileRefused, also if one of them is there.
    """
    public_file = file.with_name(f"{file.name}.pub")
    for path in (file, public_file):
        if path.exists():
            raise KeyFileRefused(path, "it is there already", "name another file")
    write_key_form(file, private)
    write_key_form(public_file, public)
    try:
        # Whoever makes a root reads it.
        public_file.chmod(0o644)
    except OSError as error:
        raise KeyFileRefused(public_file, str(error.strerror), "name another file") from error
    return public_file


def read_key_form(
    file: Path,
    kind: str,
    remedy: str,
    read: Callable[[Any], T],
    bytes_max: int = SIZE_MAX_BYTES,
) -> T:
    """What `read` makes of a file of this kind; raises KeyFileRefused."""
    try:
        data = file.read_bytes() if file.stat().st_size <= bytes_max else b""
        form = from_json(data)
    except OSError as error:
        raise KeyFileRefused(file, str(error.strerror), remedy) from error
    except ValueError as error:
        raise KeyFileRefused(file, f"it is no {kind}", remedy) from error
    if not isinstance(form, dict) or form.get("kind") != kind:
        raise KeyFileRefused(file, f"it is no {kind}", remedy)
    try:
        return read(form)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise KeyFileRefused(file, f"it is damaged ({error})", "copy it again") from error


def half_key(text: str) -> bytes:
    """One half of a key, as hex says it; raises ValueError or TypeError."""
    half = bytes.fromhex(text)
    if len(half) != HALF_BYTES:
        raise ValueError(f"half a key has {HALF_BYTES} bytes")
    return half
