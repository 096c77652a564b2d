"""Files that hold what they held before or what they should, and nothing between."""

from __future__ import annotations

import os
from pathlib import Path


def atomic_write(file: Path, text: str, *, durable: bool = True) -> None:
    """Put a text in place of what the file holds, readable by its owner only; raises OSError.

    Whatever ends the program or fills the disk meanwhile, the file is as before or as it should be.
    That holds over a loss of power, too, if it is `durable`: this waits for the disk.
    """
    draft = file.with_name(f"{file.name}.new")
    draft.unlink(missing_ok=True)
    # A file of its own each time: one that lay there could be read by others already.
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        out.write(text.encode())
        if durable:
            out.flush()
            os.fsync(out.fileno())
    draft.replace(file)
