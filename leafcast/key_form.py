"""A key in a file, as JSON that says of which kind it is, for its holder only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from relay.atomic_file import atomic_write
from schemas.values.codec import from_json
from schemas.values.faults import Unusable

SIZE_MAX_BYTES = 256 * 1024


class KeyFileRefused(Unusable):
    """A file that is not what it should be; says which, why, and what to do."""


def write_key_form(file: Path, form: Mapping[str, Any]) -> None:
    """Write it whole, in place of what is there; raises OSError."""
    atomic_write(file, json.dumps(form, indent=2) + "\n")


def read_key_form(file: Path, kind: str, remedy: str) -> dict[str, Any]:
    """What a file of this kind says; raises KeyFileRefused."""
    try:
        data = file.read_bytes() if file.stat().st_size <= SIZE_MAX_BYTES else b""
        form = from_json(data)
    except OSError as error:
        raise KeyFileRefused(file, str(error.strerror), remedy) from error
    except ValueError as error:
        raise KeyFileRefused(file, f"it is no {kind}", remedy) from error
    if not isinstance(form, dict) or form.get("kind") != kind:
        raise KeyFileRefused(file, f"it is no {kind}", remedy)
    return form
