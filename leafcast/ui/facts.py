"""The page's one port for facts, and a running tree behind it, asked as a command asks it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Protocol

from leafcast.ask.asked_space import key_form
from leafcast.ask.destinations import page_of, tier_of
from leafcast.ask.failures import BadAnswer, CallFailed
from leafcast.ask.object_readers import objects_at
from leafcast.ask.pages import page_at
from leafcast.ask.proofs import asked_object_proof, asked_proof, with_keys
from leafcast.ask.rollouts import rollout_named, rollouts
from leafcast.ask.session import Session
from leafcast.ask.trace import asked_trace
from leafcast.ask.upsynced import CopiesWanted
from leafcast.ask.why import asked_why
from leafcast.doctor.asking import asked_facts
from leafcast.doctor.checks import checks
from leafcast.doctor.findings import Check
from leafcast.doctor.space_checks import look_at_spaces
from leafcast.proofs import Proof
from leafcast.ui.copies import CopySeen
from leafcast.ui.events_seen import EventsSeen
from leafcast.ui.kept_session import KeptSession, is_away
from leafcast.ui.rows import ROWS_MAX
from relay.ports import Clock, Dice
from relay.space_port import Object
from schemas.objects.objects import ObjectKey
from schemas.records.asks import STATUS
from schemas.records.placements import bare_name, kind_of, said_placement
from schemas.values.identity import NodePath, mail_key

Form = dict[str, Any]

AMISS = 'state != "synced" || health != "healthy"'
"""Whom `amiss` takes, as an expression that runs at the destinations' parents."""


class PageFacts(Protocol):
    """Each raises CallFailed and NotRunning."""

    async def placements(self) -> Form:
        """What the verb `status` answers, with conditions."""
        ...

    async def placement(self, name: str) -> Form:
        """The form of one placement, with conditions."""
        ...

    async def tier(self, name: str, at: NodePath, after: str, *, amiss: bool) -> Form:
        """`{known, complete, rows, next}`: a page of the children of a node, in one placement.

        With `amiss` of the destinations only those with which not all is well.
        """
        ...

    async def level(self, at: NodePath, skip: int, search: str) -> Form:
        """What the verb `level` answers."""
        ...

    async def places(self, search: str) -> Form:
        """What the verb `places` answers."""
        ...

    async def carried(self, search: str) -> Form:
        """What the verb `carried` answers."""
        ...

    async def rollouts(self) -> list[Object]:
        """All Rollouts, by name."""
        ...

    async def rollout(self, name: str) -> Object:
        """The Rollout of this name, or of the placement of this name."""
        ...

    async def events(self) -> list[Form]:
        """What happened lately, the newest first."""
        ...

    async def waiting(self) -> tuple[list[Form], Form, list[Object]]:
        """Who asks to be let in; what the verb `held` answers; all Rollouts."""
        ...

    async def doctor(self) -> list[Check]:
        """What the doctor finds."""
        ...

    async def copy(self, at: NodePath, key: ObjectKey) -> CopySeen:
        """What an object is meant to be at an edge, and what is there."""
        ...

    async def proof(self, at: NodePath, placement: str, key: ObjectKey | None) -> Proof:
        """What a node has as it was signed: ROWS_MAX placements at most, or one object.

        Of an object with the keys that open what leads to it, where the centre has them.
        """
        ...

    async def trace(self, name: str, generation: int, at: NodePath | None) -> Form:
        """What the verb `trace` answers: of the newest change without a generation."""
        ...

    async def plan(self, text: str) -> Form:
        """What applying these manifests would do: see leafcast.cli.apply.pasted_plan."""
        ...


PlanText = Callable[[Session, str], Awaitable[Form]]


class TreeFacts:
    """Of a tree that runs; `plan_text` plans as the command `plan` does."""

    def __init__(self, kept: KeptSession, clock: Clock, dice: Dice, plan_text: PlanText) -> None:
        self._kept, self._clock, self._dice = kept, clock, dice
        self._plan_text = plan_text
        self._events = EventsSeen()

    async def placements(self) -> Form:
        return await self._call("status", conditions=True)

    async def placement(self, name: str) -> Form:
        found = await self._call("status", placement=said_placement(name), conditions=True)
        form: Form = found["placements"][0]
        return form

    async def tier(self, name: str, at: NodePath, after: str, *, amiss: bool) -> Form:
        said = said_placement(name)
        async with self._kept.session() as session:
            space = await session.workloads.identity()
            key = mail_key(kind_of(said).api, space, "", bare_name(said))
            asked = {"placement": key, "after": after, "limit": str(ROWS_MAX)}

            def read(answer: Any) -> Form:
                nodes, following = page_of(at, answer)
                if following and following <= after:
                    raise BadAnswer("its next page is no later one")
                return {**tier_of(answer), "rows": nodes, "next": following}

            where = {"filter": AMISS} if amiss else {}
            return await page_at(session, at, STATUS, read, **asked, **where)

    async def level(self, at: NodePath, skip: int, search: str) -> Form:
        return await self._call("level", path=str(at), skip=skip, search=search)

    async def places(self, search: str) -> Form:
        return await self._call("places", search=search)

    async def carried(self, search: str) -> Form:
        return await self._call("carried", search=search)

    async def rollouts(self) -> list[Object]:
        async with self._kept.session() as session:
            return await rollouts(session)

    async def rollout(self, name: str) -> Object:
        async with self._kept.session() as session:
            return await rollout_named(session, name)

    async def events(self) -> list[Form]:
        seen = self._events
        seen.take(await self._call("events", since=seen.through, run=seen.run))
        return seen.newest_first()

    async def waiting(self) -> tuple[list[Form], Form, list[Object]]:
        nodes = await self._call("node-requests")
        return nodes["requests"], await self._call("held"), await self.rollouts()

    async def doctor(self) -> list[Check]:
        async with self._kept.session() as session:
            facts = await asked_facts(session.call, session.data_dir)
            spaces = session.data_dir.spaces()
        seen = await look_at_spaces(spaces, self._clock, self._dice)
        return list(checks(replace(facts, spaces=seen)))

    async def copy(self, at: NodePath, key: ObjectKey) -> CopySeen:
        rendered: Form | None = None
        live: Object | None = None
        unrendered = unread = ""
        async with self._kept.session() as session:
            try:
                rendered = await session.call("render", path=str(at), key=key_form(key))
            except CallFailed as failed:
                if is_away(failed):
                    raise
                unrendered = str(failed)
            wanted = CopiesWanted(key.group, key.resource, key.namespace, key.name)
            try:
                listed = await objects_at(session, str(at), wanted)
                live = listed[0] if listed else None
            except CallFailed as failed:
                unread = str(failed)
            why = await _why(session, at, key)
        return CopySeen(rendered, live, unrendered, unread, why)

    async def proof(self, at: NodePath, placement: str, key: ObjectKey | None) -> Proof:
        async with self._kept.session() as session:
            if key is None:
                return await asked_proof(session, at, placement, ROWS_MAX)
            return await with_keys(session, await asked_object_proof(session, at, key, placement))

    async def trace(self, name: str, generation: int, at: NodePath | None) -> Form:
        async with self._kept.session() as session:
            path = str(at) if at is not None else ""
            return await asked_trace(session, said_placement(name), generation, path)

    async def plan(self, text: str) -> Form:
        async with self._kept.session() as session:
            return await self._plan_text(session, text)

    async def _call(self, verb: str, **arguments: Any) -> Form:
        async with self._kept.session() as session:
            form: Form = await session.call(verb, **arguments)
            return form


async def _why(session: Session, at: NodePath, key: ObjectKey) -> list[Form]:
    """Why a copy is as it is; nothing if that cannot be told. Raises CallFailed of a tree away."""
    try:
        answer = await asked_why(session, str(at), object=key_form(key))
    except CallFailed as failed:
        if is_away(failed):
            raise
        return []
    return list(answer["explanations"])
