"""The files that are a node's, as they lie in one member's folder: its working copy of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path, PurePosixPath

from relay.atomic_file import atomic_write, make_folder, sync_folder

_UNKNOWN = "\0"
"""The text of no file."""


class StateFiles:
    """The files below a folder whose names fit some of the patterns, as they were known last."""

    def __init__(self, folder: Path, patterns: Collection[str]) -> None:
        self._folder = folder
        self._patterns = tuple(patterns)
        self._known: dict[str, str] = {}
        # What was read when a file looked so: it is read again once it looks otherwise.
        self._looks: dict[str, tuple[int, int, int]] = {}

    def changes(self) -> dict[str, str | None]:
        """What differs from what is known, by name: the text, None if the file is gone.

        Raises OSError.
        """
        there = {file.relative_to(self._folder).as_posix(): file for file in self._files()}
        found: dict[str, str | None] = dict.fromkeys(self._known.keys() - there.keys())
        for name, file in there.items():
            status = file.stat()
            looks = (status.st_ino, status.st_mtime_ns, status.st_size)
            if self._looks.get(name) == looks and name in self._known:
                continue
            text = file.read_text(encoding="utf-8")
            if self._known.get(name) != text:
                found[name] = text
            else:
                self._looks[name] = looks
        return found

    def know(self, changes: Mapping[str, str | None]) -> None:
        """These are known from now on."""
        for name, text in changes.items():
            self._looks.pop(name, None)
            if text is None:
                self._known.pop(name, None)
            else:
                self._known[name] = text

    def forget(self) -> None:
        """Have all files that are there count as changed, and those that went as gone."""
        self._known = dict.fromkeys(self._known, _UNKNOWN)
        self._looks.clear()

    def lay_all(self, state: Mapping[str, str]) -> set[str]:
        """Have the files be these and no others; which of them are news. Raises OSError."""
        self._known.clear()
        names = self._names() | state.keys()
        return {name for name in names if self.lay(name, state.get(name))}

    def lay(self, name: str, text: str | None) -> bool:
        """Have one file hold a text, or be gone; whether that is news. Raises OSError."""
        file, parts = self._folder / name, PurePosixPath(name).parts
        if ".." in parts or not any(_fits(name, pattern) for pattern in self._patterns):
            return False
        is_there = file.exists()
        if text is None:
            is_news = is_there
            if is_news:
                file.unlink()
                sync_folder(file.parent)
        else:
            is_news = not is_there or file.read_text(encoding="utf-8") != text
            if is_news:
                make_folder(file.parent)
                atomic_write(file, text)
        # Not before that: a file that could not be written would count as changed back.
        self.know({name: text})
        return is_news

    def _names(self) -> frozenset[str]:
        return frozenset(file.relative_to(self._folder).as_posix() for file in self._files())

    def _files(self) -> Iterable[Path]:
        for pattern in self._patterns:
            yield from self._folder.glob(pattern)


def _fits(name: str, pattern: str) -> bool:
    return name.count("/") == pattern.count("/") and PurePosixPath(name).match(pattern)
