"""A question that no message holds comes in parts: said one by one, put together, and answered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

VERB = "question-part"
PART_CHARACTERS = 400_000
"""Of a question's JSON, which is ASCII: in a part's JSON it takes twice that at most."""
QUESTION_CHARACTERS_MAX = 16_000_000
"""An object of the largest size as JSON, however it is escaped."""
WAITING_MAX = 8
WAITING_CHARACTERS_MAX = 2 * QUESTION_CHARACTERS_MAX
"""Of all questions of which parts wait."""
FORGOTTEN_SECONDS = 60.0
"""Who says no more of a question for so long was ended."""


SILENT_SECONDS = 5.0
"""A question of which nothing came for so long gives way to others, if there are too many."""


class TooManyQuestions(Exception):
    """Other long questions are being said, and there is room for no more."""


class PartsLost(Exception):
    """Parts of a question came, and others did not."""


def parts_of(verb: str, question: str, name: str) -> Iterator[dict[str, Any]]:
    """The arguments of each part; the answer to the last one is that to the question."""
    pieces = [
        question[at : at + PART_CHARACTERS] for at in range(0, len(question), PART_CHARACTERS)
    ]
    for at, text in enumerate(pieces):
        yield {"name": name, "verb": verb, "at": at, "parts": len(pieces), "text": text}


@dataclass(slots=True)
class _Question:
    """The parts that came, and when the last one did, by a clock that goes on."""

    said_at: float
    pieces: list[str] = field(default_factory=list)

    @property
    def size(self) -> int:
        return sum(map(len, self.pieces))


@dataclass(slots=True)
class LongQuestions:
    """Questions of which parts came; of too many those that fell silent give way."""

    _waiting: dict[str, _Question] = field(default_factory=dict)

    def take(self, name: str, at: int, parts: int, text: str, now: float) -> str | None:
        """The whole question, once its last part came; raises PartsLost, TooManyQuestions."""
        self.forget(now)
        if at == 0:
            self._waiting.pop(name, None)
            while len(self._waiting) >= WAITING_MAX:
                self._give_up_silent(now)
            self._waiting[name] = _Question(now)
        one = self._waiting.get(name)
        if one is None or len(one.pieces) != at or at >= parts:
            self._lose(name)
        one.pieces.append(text)
        one.said_at = now
        if one.size > QUESTION_CHARACTERS_MAX:
            self._lose(name)
        if at + 1 == parts:
            del self._waiting[name]
            return "".join(one.pieces)
        self._make_room(name, now)
        return None

    def forget(self, now: float) -> None:
        """Give up those of which nothing came for long."""
        for name, one in list(self._waiting.items()):
            if one.said_at < now - FORGOTTEN_SECONDS:
                del self._waiting[name]

    def _make_room(self, name: str, now: float) -> None:
        """Have silent ones give way if all take too much, or else this one."""
        try:
            while sum(one.size for one in self._waiting.values()) > WAITING_CHARACTERS_MAX:
                self._give_up_silent(now)
        except TooManyQuestions:
            del self._waiting[name]
            raise

    def _give_up_silent(self, now: float) -> None:
        """Give up the one of which nothing came for longest; raises TooManyQuestions."""
        name = min(self._waiting, key=lambda name: self._waiting[name].said_at)
        if self._waiting[name].said_at > now - SILENT_SECONDS:
            raise TooManyQuestions
        del self._waiting[name]

    def _lose(self, name: str) -> NoReturn:
        self._waiting.pop(name, None)
        raise PartsLost(name)
