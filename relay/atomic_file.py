"""Files that hold what they held before or what they should, and nothing between.

What is written, moved or made here is there after a loss of power, too: a file is on the disk once
its bytes are and its folder names it, and a folder once the one above names it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

DRAFT = ".new"
"""How files end that are being written."""


def atomic_write(file: Path, text: str, *, durable: bool = True) -> None:
    """Put a text in place of what the file holds, readable by its owner only; raises OSError.

    Whatever ends the program or fills the disk meanwhile, the file is as before or as it should be.
    That holds over a loss of power, too, if it is `durable`: this waits for the disk.
    """
    atomic_write_bytes(file, text.encode(), durable=durable)


def atomic_write_bytes(file: Path, data: bytes, *, durable: bool = True) -> None:
    """The same with bytes; what was begun and fails leaves no room taken."""
    draft = file.with_name(f"{file.name}{DRAFT}")
    draft.unlink(missing_ok=True)
    try:
        # A file of its own each time: one that lay there could be read by others already.
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            out.write(data)
            if durable:
                out.flush()
                _sync(out.fileno())
        draft.replace(file)
    except OSError:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(file.parent)


def move_file(file: Path, target: Path) -> None:
    """Put a file in place of another one of the same folder; raises OSError."""
    file.replace(target)
    sync_folder(target.parent)


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it that are lacking, for its owner only; raises OSError."""
    lacking = [at for at in (folder, *folder.parents) if not at.exists()]
    for at in reversed(lacking):
        # `parents` would give the mode to the last one only.
        at.mkdir(mode=0o700, exist_ok=True)
        sync_folder(at.parent)
    # A file in its place is refused.
    folder.mkdir(exist_ok=True)


def remove_folder(folder: Path) -> None:
    """Remove a folder of ours with all that is in it; raises OSError.

    As shutil does, which loads all compression. No link is followed; none appears meanwhile, as
    nobody else may write there.
    """
    for at in folder.iterdir():
        if at.is_dir() and not at.is_symlink():
            remove_folder(at)
        else:
            at.unlink()
    folder.rmdir()


def sync_folder(folder: Path) -> None:
    """Wait until the disk has the names that the folder holds; raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _sync(descriptor)
    finally:
        os.close(descriptor)


def _sync(descriptor: int) -> None:
    os.fsync(descriptor)
