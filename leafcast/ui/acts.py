"""What the page may ask the tree to do, if it is allowed to: each act is one command.

A person sees the command and says yes to it. It is asked for as that command asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from leafcast.ask.failures import CallFailed
from leafcast.ask.rollouts import ask_of
from leafcast.ask.session import Session
from leafcast.ui.kept_session import KeptSession
from schemas.records.placements import said_placement
from schemas.values.codec import from_json

APPROVE_SECONDS = 300.0
_WORD = re.compile(r"/?[A-Za-z0-9](?:[-A-Za-z0-9._/:]*[A-Za-z0-9])?")
_COMMANDS: Mapping[str, str] = {
    "node-approve": "leafcast node approve {path}",
    "rollout-approve": "leafcast rollout approve {rollout} {wave}",
    "rollout-pause": "leafcast rollout pause {rollout}",
    "rollout-abort": "leafcast rollout abort {rollout}",
    "accept": "leafcast accept {placement}",
    "accept-inventory": "leafcast accept --inventory",
    "accept-ledger": "leafcast accept --ledger",
    "accept-space": "leafcast accept --space {space}",
}

Json = dict[str, Any]


class NoSuchAct(ValueError):
    """What the page does not do; says why."""


@dataclass(frozen=True, slots=True)
class Act:
    """One thing to be done, by its name and the words of its command."""

    name: str
    words: Mapping[str, str]

    @property
    def command(self) -> str:
        """The command that does the same."""
        return _COMMANDS[self.name].format(**self.words)

    @property
    def form(self) -> Json:
        """As a browser is told of it, and says it again."""
        return {"name": self.name, "words": dict(self.words), "command": self.command}


def act(name: str, **words: str) -> Json | None:
    """The form of an act; None if a word of it has no place in a command."""
    try:
        return read_act(name, words).form
    except NoSuchAct:
        return None


def read_act(name: str, words: Mapping[str, Any]) -> Act:
    """An act of this name with just its words; raises NoSuchAct."""
    if name not in _COMMANDS:
        raise NoSuchAct(f"the page does no such thing; it does: {', '.join(_COMMANDS)}")
    wanted = set(re.findall(r"\{(\w+)\}", _COMMANDS[name]))
    if words.keys() != wanted:
        raise NoSuchAct(f"{name} takes: {', '.join(sorted(wanted)) or 'nothing'}")
    # A person pastes the command, and whoever runs an edge may have chosen a word of it.
    for word, said in words.items():
        if not isinstance(said, str) or not _WORD.fullmatch(said):
            raise NoSuchAct(f"{name}: its {word} is no name")
    return Act(name, dict(words))


def act_from(text: bytes) -> Act:
    """The act that is asked for, if its command is the one that was seen.

    Raises NoSuchAct, CodecError.
    """
    match from_json(text):
        case {"name": str(name), "words": dict(words), "command": str(command)}:
            wanted = read_act(name, words)
        case _:
            raise NoSuchAct("it names no act")
    if wanted.command != command:
        raise NoSuchAct("it is another command than was shown")
    return wanted


class PageActs(Protocol):
    """Does what the page may do; raises as facts do."""

    async def do(self, wanted: Act) -> str:
        """Have it done; says what became of it."""
        ...


class TreeActs:
    """Of a tree that runs."""

    def __init__(self, kept: KeptSession) -> None:
        self._kept = kept

    async def do(self, wanted: Act) -> str:
        async with self._kept.session() as session:
            match wanted.name.partition("-"):
                case "node", _, _:
                    return await _approve(session, wanted.words["path"])
                case "rollout", _, action:
                    return await _steer(session, action, wanted.words)
                case _:
                    return await _accept(session, wanted)


async def _approve(session: Session, path: str) -> str:
    asked = {"paths": [path], "everyone": False}
    answer = await session.call("node-approve", seconds=APPROVE_SECONDS, **asked)
    for fault in answer["faults"]:
        raise CallFailed("node-approve", "Refused", fault["message"], fault["remedy"])
    return f"node {path} approved"


async def _steer(session: Session, action: str, words: Mapping[str, str]) -> str:
    said: Json = {"wave": words["wave"]} if "wave" in words else {}
    if action == "abort":
        said["keep"] = False
    handled = await ask_of(session, words["rollout"], action, **said)
    title = f"rollout.leafcast.io/{handled.rollout}"
    if handled.outcome != "Done":
        raise CallFailed("rollout", "Refused", f"{title}: {handled.message}", "")
    return f"{title} {handled.message}"


async def _accept(session: Session, wanted: Act) -> str:
    placement = wanted.words.get("placement", "")
    asked: Json = {
        "placement": said_placement(placement) if placement else "",
        "inventory": wanted.name == "accept-inventory",
        "ledger": wanted.name == "accept-ledger",
        "space": wanted.words.get("space", ""),
    }
    found = await session.call("accept", seconds=APPROVE_SECONDS, **asked)
    return f"accepted, it goes now ({str(found['accepted']).partition(';')[0]})"
