"""The notes beside the ledger, kept in a small file in the folder of the keys."""

from __future__ import annotations

import json
from pathlib import Path

from controllers.core.notes import Notes
from relay.atomic_file import atomic_write
from schemas.codec import from_json
from schemas.identity import MailKey, check_mail_key
from schemas.refusals import BadIdentity

FILE = "ledger.json"


class LedgerNotes(Notes):
    """The notes of one centre; without a folder they are kept nowhere."""

    def __init__(self, folder: Path | None = None) -> None:
        self._file = folder / FILE if folder is not None else None
        generation, recovered, reading = self._read()
        super().__init__(generation, recovered, reading=reading)

    def keep(self) -> None:
        """Whole or not at all."""
        if self._file is None:
            return
        form = {
            "generation": self.generation,
            "recovered": sorted(self.recovered),
            "reading": self.reading,
        }
        atomic_write(self._file, json.dumps(form), durable=False)

    def _read(self) -> tuple[int, list[MailKey], bool]:
        """A damaged file is as none: the tree itself still shows what was issued."""
        if self._file is None:
            return 0, [], False
        try:
            form = from_json(self._file.read_bytes())
            recovered = [check_mail_key(key) for key in form["recovered"]]
            return int(form["generation"]), recovered, bool(form.get("reading"))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, BadIdentity):
            return 0, [], False
