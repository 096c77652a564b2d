"""A daemon that judges and writes changes in spaces in memory, and can do nothing else."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from controllers.centre import Controllers
from leafcast.ask.api import Api
from leafcast.ask.session import API_PREFIX, Session
from leafcast.changes.batches import Batches
from leafcast.changes.space_pair import SpacePair
from leafcast.daemon.verbs.changes import ChangeVerbs
from leafcast.daemon.verbs.requests import RequestVerbs
from leafcast.data_dir import DataDir
from relay.adapters.clock import SystemClock, SystemDice
from relay.shell.centre_watch import CentreWatch
from tests.doubles.watches import centre_watch

CLOCK, DICE = SystemClock(), SystemDice()
_NOBODY = {"error": {"code": "NotServed", "message": "there is none"}}


@dataclass
class Paused:
    """Notes what the centre is told around what is written."""

    said: list[tuple[str, Any]] = field(default_factory=list)
    watch: CentreWatch = field(default_factory=lambda: centre_watch(CLOCK))

    def pause(self, name):
        self.said.append(("hold", name))

    def resume(self, name):
        self.said.append(("release", name))

    def confirm_removals(self, placement, copies):
        self.said.append(("confirm", {placement: copies}))


class ChangingDaemon:
    """Answers the verbs of changes by the real code; others as `beside` says, by verb."""

    def __init__(self, workloads, inventory, clock=CLOCK, beside=None, nodes=(), keeping=()):
        self.api, self.paused, self.beside = Api(), Paused(), beside or {}
        self.asked = []
        spaces = SpacePair(workloads, inventory)

        async def nodes_there():
            return list(nodes)

        async def kept_back(rollouts):
            return [form for form in keeping if form["rollout"] in rollouts]

        batches = Batches(lambda: cast("Controllers", self.paused), clock, DICE)
        self.verbs = ChangeVerbs(spaces, batches, clock, nodes_there, kept_back)
        self.api.serve(self.verbs, RequestVerbs(spaces, clock))
        self.session = Session(DataDir(Path("nowhere")), workloads, inventory, clock, self.ask)

    async def ask(self, subject, question, _seconds, _put=None):
        verb = subject.removeprefix(API_PREFIX)
        self.asked.append(verb)
        if verb in self.beside:
            return json.dumps({"result": self.beside[verb]}).encode()
        answer = await self.api.answer(subject, question)
        return json.dumps(_NOBODY).encode() if b'"UnknownVerb"' in answer[:40] else answer

    async def call(self, verb, **arguments):
        """As a raw client asks: the result, or the error."""
        answer = json.loads(
            await self.api.answer(API_PREFIX + verb, json.dumps(arguments).encode())
        )
        return answer.get("result", answer.get("error"))
