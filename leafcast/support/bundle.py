"""The file for who helps: parts, each redacted and bounded, and a page that says what is in it.

It is written whole or not at all, for its owner only, and replaces nothing.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from leafcast.support.redaction import Redaction
from relay.atomic_file import DRAFT, atomic_write_bytes, sync_folder
from schemas.values.faults import Unusable

PART_CHARACTERS_MAX = 8_000_000
BUNDLE_CHARACTERS_MAX = 48_000_000
"""Of all parts, before they are packed."""
PARTS_MAX = 300
CONTENTS = "CONTENTS.json"
_CUT = "... the rest was left out: the file is bounded\n"


class BundleUnwritten(Unusable):
    """A file that cannot be written there; says why, and what to do."""

    word = "support bundle "


class SupportBundle:
    """What goes into the file, and what is missing in it."""

    def __init__(self, redaction: Redaction, at_ms: int) -> None:
        self._redaction, self._at_ms = redaction, at_ms
        self.parts: dict[str, str] = {}
        self.missing: dict[str, str] = {}
        self._room = BUNDLE_CHARACTERS_MAX

    def add(self, name: str, form: Any) -> None:
        """A part that is a value of JSON."""
        self._keep(name, json.dumps(self._redaction.form(form), indent=1, default=str) + "\n")

    def add_text(self, name: str, text: str) -> None:
        """A part that is text."""
        # It is cut first, as looking for secrets takes as long as the text is.
        self._keep(name, self._redaction.text(text[:PART_CHARACTERS_MAX]), cut=len(text))

    def lacks(self, what: str, why: str) -> None:
        """Say what is not in it, and why not."""
        self.missing[self._redaction.text(what)] = self._redaction.text(why)

    def packed(self) -> bytes:
        """All of it, as a tar that is packed by gzip."""
        about = {
            "atMs": self._at_ms,
            "parts": {name: len(text) for name, text in self.parts.items()},
            "missing": self.missing,
            "redacted": "secrets are hidden by field, by form, and where their values are known",
        }
        packed = io.BytesIO()
        with (
            gzip.GzipFile(fileobj=packed, mode="wb", mtime=self._at_ms / 1000) as pressed,
            tarfile.open(fileobj=pressed, mode="w") as tar,
        ):
            for name, text in {CONTENTS: json.dumps(about, indent=1) + "\n", **self.parts}.items():
                data = text.encode(errors="replace")
                entry = tarfile.TarInfo(f"leafcast-support/{name}")
                entry.size, entry.mode, entry.mtime = len(data), 0o600, self._at_ms // 1000
                tar.addfile(entry, io.BytesIO(data))
        return packed.getvalue()

    def _keep(self, name: str, text: str, cut: int = 0) -> None:
        if len(self.parts) >= PARTS_MAX or self._room <= 0:
            self.missing[name] = "the file is full: it is bounded"
            return
        most = min(PART_CHARACTERS_MAX, self._room)
        kept = text[:most] + _CUT if len(text) > most or cut > PART_CHARACTERS_MAX else text
        self._room -= len(kept)
        self.parts[name] = kept


def write_bundle(file: Path, data: bytes) -> None:
    """Write a new file, readable by its owner only, whole or not at all; raises BundleUnwritten."""
    refuse_to_replace(file)
    # Beside it, by a name that nobody else takes: one that lies there may be another's.
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        atomic_write_bytes(draft, data)
        # Unlike a move this replaces nothing that came meanwhile.
        os.link(draft, file)
        sync_folder(file.parent)
    except FileExistsError:
        refuse_to_replace(file)
        raise
    except OSError as error:
        remedy = "name another place: --to FILE"
        raise BundleUnwritten(file, error.strerror or str(error), remedy) from error
    finally:
        for left in (draft, draft.with_name(draft.name + DRAFT)):
            with suppress(OSError):
                left.unlink(missing_ok=True)


def refuse_to_replace(file: Path) -> None:
    """Raise BundleUnwritten if something of this name is there."""
    if os.path.lexists(file):
        raise BundleUnwritten(file, "it is there already", "name another: --to FILE")
