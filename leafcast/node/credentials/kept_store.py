"""How servers of this folder keep what they store: where the key is, and when it is on the disk.

The key itself stays in its file.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from relay.adapters.server.durability import Durability, StoreSettings, read_durability
from relay.adapters.server.store_key import StoreKeyRefused, read_store_key
from relay.atomic_file import atomic_write
from schemas.values.codec import from_json
from schemas.values.faults import Faulty

FILE = "store.json"


@dataclass(frozen=True, slots=True)
class KeptStore:
    """What a start said, for the next one; without a `key_file` stores are in clear."""

    key_file: Path | None = None
    durability: Durability = Durability.PERIODIC

    def settings(self) -> StoreSettings:
        """The same, with the key; raises StoreKeyRefused."""
        key = read_store_key(self.key_file) if self.key_file is not None else None
        return StoreSettings(key, self.durability)


def keep_store(folder: Path, kept: KeptStore) -> None:
    """Remember it for the next start."""
    form = {} if kept.key_file is None else {"key_file": str(kept.key_file)}
    form["durability"] = kept.durability.value
    atomic_write(folder / FILE, json.dumps(form) + "\n")


def kept_store(folder: Path) -> KeptStore:
    """What was said last; raises StoreKeyRefused."""
    file = folder / FILE
    try:
        form = from_json(file.read_bytes())
        key_file = Path(str(form["key_file"])) if "key_file" in form else None
        return KeptStore(key_file, read_durability(form.get("durability", Durability.PERIODIC)))
    except FileNotFoundError:
        return KeptStore()
    except Faulty as error:
        (fault,) = error.faults
        raise StoreKeyRefused(file, f"durability: {fault.message}", fault.remedy) from error
    except (ValueError, TypeError, AttributeError) as error:
        remedy = "say --store-key-file and --durability again, once it is removed"
        raise StoreKeyRefused(file, "it is damaged", remedy) from error
