"""Why a tree gave no answer: none runs, or its daemon says what is wrong."""

from __future__ import annotations

from pathlib import Path

AWAY = frozenset({"Lost", "NotServed", "Restarting", "Timeout"})
"""Codes of a tree that gave no answer, and will give one later."""


class NotRunning(Exception):
    """No tree runs on the data directory, or none that lets one in; says what to do."""

    def __init__(
        self,
        folder: Path,
        reason: str = "no tree is running",
        remedy: str = "start it with `leafcast up`",
    ) -> None:
        self.reason = f"{reason} (data directory {folder})"
        super().__init__(f"{self.reason}; {remedy}")
        self.folder = folder


class CallFailed(Exception):
    """The daemon answered with an error; `code` is a CamelCase word, `remedy` says what to do."""

    def __init__(self, verb: str, code: str, message: str, remedy: str) -> None:
        super().__init__(f"{message}; {remedy}" if remedy else message)
        self.verb = verb
        self.code = code
        self.message = message
        self.remedy = remedy


class BadAnswer(ValueError):
    """An answer that is none to what was asked; says what it should be."""
