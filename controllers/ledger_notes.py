"""What is kept beside the ledger: by it a loss is noticed, and what was read back is known.

A small file in the folder of the keys: the newest index issued, and the records that were read back
from the tree and are not confirmed by an object yet.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from schemas.identity import BadIdentity, MailKey, check_mail_key

FILE = "ledger.json"


class LedgerNotes:
    """The notes of one centre; without a folder they are kept nowhere.

    `generation` is that of the newest index issued, 0 in a new tree; `recovered` are the keys of
    records that were read back.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._file = folder / FILE if folder is not None else None
        self.generation, recovered = self._read()
        self.recovered = set(recovered)

    def issued(self, generation: int) -> None:
        """Note the newest index."""
        if generation > self.generation:
            self.generation = generation
            self._write()

    def recover(self, keys: Iterable[MailKey]) -> None:
        """Note records that were read back."""
        self.recovered.update(keys)
        self._write()

    def settle(self, keys: Iterable[MailKey]) -> None:
        """Forget records of which objects, or a person, say what they are."""
        settled = self.recovered.intersection(keys)
        if settled:
            self.recovered -= settled
            self._write()

    def _write(self) -> None:
        """Whole or not at all."""
        if self._file is None:
            return
        form = {"generation": self.generation, "recovered": sorted(self.recovered)}
        draft = self._file.with_suffix(".new")
        draft.write_text(json.dumps(form), encoding="utf-8")
        draft.replace(self._file)

    def _read(self) -> tuple[int, list[MailKey]]:
        """A damaged file is as none: the tree itself still shows what was issued."""
        if self._file is None:
            return 0, []
        try:
            form = json.loads(self._file.read_text(encoding="utf-8"))
            return int(form["generation"]), [check_mail_key(key) for key in form["recovered"]]
        except (OSError, ValueError, KeyError, TypeError, BadIdentity):
            return 0, []
