"""Placements that are meant for a destination, and of which its parent sent a head alone."""

from __future__ import annotations

from collections.abc import Iterator

from schemas.values.identity import MailKey

WITHHELD = "Withheld: it is meant for this destination, and its parent sent no content"
WITHHELD_AFTER_SECONDS = 60.0


class Withheld:
    """Since when, in monotonic seconds; what lasts is told of."""

    def __init__(self) -> None:
        self._unreported: dict[MailKey, float] = {}
        self._keys: dict[MailKey, None] = {}

    def __contains__(self, key: MailKey) -> bool:
        return key in self._keys

    def __iter__(self) -> Iterator[MailKey]:
        return iter(self._keys)

    def begin(self, key: MailKey, now: float) -> bool:
        """Only its head is here; whether that is news."""
        news = key not in self._keys
        if news:
            self._keys[key] = None
            self._unreported[key] = now
        return news

    def end(self, key: MailKey) -> bool:
        """Its body is here, or it is not meant any more; whether it was withheld."""
        self._unreported.pop(key, None)
        return self._keys.pop(key, self) is None

    def is_reported(self, key: MailKey) -> bool:
        """Whether it lasts for so long that it is told of."""
        return key in self._keys and key not in self._unreported

    def deadlines(self) -> Iterator[float]:
        """When more is to be told of."""
        return (since + WITHHELD_AFTER_SECONDS for since in self._unreported.values())

    def tick(self, now: float) -> list[MailKey]:
        """What is to be told of from now on."""
        late = [key for key, at in self._unreported.items() if at + WITHHELD_AFTER_SECONDS <= now]
        for key in late:
            del self._unreported[key]
        return late
