"""What happened lately, kept so that only what is new has to be asked for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

EVENTS_MAX = 1_000

Form = dict[str, Any]


class EventsSeen:
    """The events of a daemon's run; of another run all are new."""

    def __init__(self) -> None:
        self.run, self.through = "", 0
        self._found: OrderedDict[tuple[str, ...], Form] = OrderedDict()

    def take(self, answer: Mapping[str, Any]) -> None:
        """Take in what the verb `events` answers to `through` and `run`."""
        if answer["run"] != self.run:
            self._found.clear()
        self.run, self.through = str(answer["run"]), int(answer["through"])
        for event in answer["events"]:
            key = tuple(str(event[name]) for name in ("reason", "node", "object", "message"))
            self._found.pop(key, None)
            self._found[key] = dict(event)
        while len(self._found) > EVENTS_MAX:
            self._found.popitem(last=False)

    def newest_first(self) -> list[Form]:
        return list(reversed(self._found.values()))
