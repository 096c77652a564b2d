"""Which file holds the key of the stores of a tree on this machine; the key stays in that file."""

from __future__ import annotations

import json
from pathlib import Path

from relay.adapters.server.store_key import StoreKey, StoreKeyRefused, read_store_key
from relay.atomic_file import atomic_write
from schemas.values.codec import from_json

FILE = "store.json"


def keep_file(folder: Path, file: Path) -> None:
    """Remember for the next start where the key is."""
    atomic_write(folder / FILE, json.dumps({"key_file": str(file)}) + "\n")


def kept_file(folder: Path) -> Path | None:
    """Where the key is; None if the stores are in clear. Raises StoreKeyRefused."""
    try:
        return Path(str(from_json((folder / FILE).read_bytes())["key_file"]))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        remedy = "say --store-key-file again"
        raise StoreKeyRefused(folder / FILE, "it is damaged", remedy) from error


def kept_store_key(folder: Path) -> StoreKey | None:
    """The key itself; None if the stores are in clear. Raises StoreKeyRefused."""
    file = kept_file(folder)
    return read_store_key(file) if file is not None else None
