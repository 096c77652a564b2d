"""A question that no message holds comes in parts: said one by one, put together, and answered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

VERB = "question-part"
PART_CHARACTERS = 400_000
"""Of a question's JSON, which is ASCII: in a part's JSON it takes twice that at most."""
QUESTION_CHARACTERS_MAX = 16_000_000
"""An object of the largest size as JSON, however it is escaped."""
WAITING_MAX = 8


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
class LongQuestions:
    """Questions of which parts came; of too many at once the oldest is given up."""

    _waiting: dict[str, list[str]] = field(default_factory=dict)

    def take(self, name: str, at: int, parts: int, text: str) -> str | None:
        """The whole question, once its last part came; raises PartsLost."""
        if at == 0:
            self._waiting.pop(name, None)
            while len(self._waiting) >= WAITING_MAX:
                del self._waiting[next(iter(self._waiting))]
            self._waiting[name] = []
        pieces = self._waiting.get(name)
        size = len(text) + sum(map(len, pieces or ()))
        if pieces is None or len(pieces) != at or at >= parts or size > QUESTION_CHARACTERS_MAX:
            self._waiting.pop(name, None)
            raise PartsLost(name)
        pieces.append(text)
        if at + 1 < parts:
            return None
        del self._waiting[name]
        return "".join(pieces)
