"""How nodes are let into a running tree: judged all at once, then signed, registered and awaited.

Thousands are let in as one: their records go out together, so that a parent's server takes in all
their accounts with few reloads, and their inventory is written many objects at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from controllers.core.ledger.node_moves import nodes_below
from controllers.issuing.nodes import NodeRefused, enrol_nodes, node_record, nodes
from leafcast.ask.api import ApiError
from leafcast.ask.client import CentreAsks, api_error
from leafcast.ask.remote import IN_SESSION, NOTHING_MORE, checked_answer
from leafcast.ask.session import NODE_MANAGER
from leafcast.centre.centre import Centre
from leafcast.centre.inventory import edge_objects
from leafcast.daemon.nodes.relocation import name_for
from leafcast.node.member_forms import MEMBERS_ASKED, SILENT
from relay.adapters.server.nkey_pairs import entrance_pair
from relay.ports import BusBroken, Clock
from relay.shell.asker import AskFailed
from relay.waiting import in_turns, some_at_once
from schemas.objects.objects import validate_object
from schemas.records.asks import NODE
from schemas.records.moves import MOVED_ANNOTATION
from schemas.records.records import NodeRecord, Profile
from schemas.reports.states import NEVER_JOINED
from schemas.values.faults import InvalidObject
from schemas.values.groups import GROUP, PATH_ANNOTATION
from schemas.values.identity import NodePath
from schemas.values.wording import many

ADMIT_SECONDS_MAX, ADMIT_SECONDS_EACH = 10.0, 0.05
CONFIRM_SECONDS_MAX = 2.0
"""So long a parent that does not answer is asked again which of its members let in whom."""
POLL_SECONDS, POLL_SECONDS_MAX = 0.2, 2.0
WRITES_AT_ONCE = 64
NAMED_SECONDS = 60
"""So long what a person did to a node by name is not taken for what follows from an edit."""

Json = dict[str, Any]
log = logging.getLogger("leafcast")


class States(Protocol):
    """Who says in which state each node is, to every command that shows it."""

    async def tree(self) -> Json:
        """See leafcast.daemon.tree_facts."""
        ...


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """A node to be; an edge has labels of its own besides `id` and `region`."""

    path: NodePath
    labels: Mapping[str, str]
    relay: bool = False
    # Whether it may take the place of one that exists.
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class EnrolmentFault:
    """Why the node at this place of the list cannot be added."""

    at: int
    error: ApiError | NodeRefused

    @property
    def form(self) -> Json:
        """With `reason`, a word of Kubernetes."""
        it = self.error
        if isinstance(it, ApiError):
            reason, message = it.code, it.message
        else:
            reason, message = "Invalid", f"node {it.what}: {it.reason}"
        return {"at": self.at, "reason": reason, "message": message, "remedy": it.remedy}


@dataclass(slots=True)
class EnrolmentPlan:
    """What adding some nodes comes to: their inventory, and their parents' answers by path."""

    wanted: Sequence[NodeSpec]
    faults: list[EnrolmentFault] = field(default_factory=list)
    existing: set[NodePath] = field(default_factory=set)
    objects: dict[NodePath, list[Json]] = field(default_factory=dict)
    parents: dict[NodePath, Json] = field(default_factory=dict)


Certify = Callable[[NodePath, str], Awaitable[str]]
"""Signs what a server asks to have signed; empty if nothing is."""


THEN = "then its address is known, and nodes can be added below it"


def _not_joined(parent: NodePath) -> str:
    return f"its parent {parent} has not joined yet"


@dataclass(slots=True)
class Enrolment:
    """Judges and lets in; `leafcast.daemon.nodes.admission` asks for it."""

    _centre: Centre
    _asks: CentreAsks
    _states: States
    _clock: Clock
    _certify: Certify
    _registered: dict[NodePath, Json] = field(default_factory=dict, init=False)
    # Of who is no node yet, but was handed a token: what is still to be done. Else empty.
    invited: Callable[[NodePath], str] = field(default=lambda _: "", init=False)

    async def plan(self, wanted: Sequence[NodeSpec]) -> EnrolmentPlan:
        """Judge them all; nothing is changed. Raises ApiError if that cannot be done now."""
        plan, edges = EnrolmentPlan(wanted), self.edges_at()
        plan.existing = {it.path for it in wanted if self.record(it.path) is not None}
        kept = {it.path for it in wanted if not it.replaces and self.has_key(it.path)}
        states = await self._states_of(kept) if kept else {}
        listing = await self._centre.inventory_space().list(GROUP, "synctargets")
        found = {obj["metadata"]["name"]: obj for obj in listing.objects}
        hanging = {name: path_of(obj) for name, obj in found.items()}
        async for at, one in in_turns(enumerate(wanted), self._clock):
            try:
                self._check_place(one, edges)
                self._check_new(one.path, states)
                await self._check_parent(plan, one.path, edges)
                if not one.relay:
                    plan.objects[one.path] = _objects_of(one, found, hanging)
            except (ApiError, NodeRefused) as error:
                plan.faults.append(EnrolmentFault(at, error))
        return plan

    async def let_in(self, plan: EnrolmentPlan, nkeys: Mapping[NodePath, str]) -> None:
        """Let in what was planned without fault by these public keys, and await their parents.

        Again is harmless.
        """
        new = {path: nkey for path, nkey in nkeys.items() if not self.has_key(path, nkey)}
        if new:
            await enrol_nodes(self._centre.issuer(), new)
        await self._register(plan)
        await self.admitted(nkeys)

    async def _register(self, plan: EnrolmentPlan) -> None:
        """Write the inventory, and take it as it came to be in the space."""
        space = self._centre.inventory_space()
        new_labels = {it.path for it in plan.wanted if it.labels}

        async def write(path: NodePath) -> None:
            # Without new labels an edge that exists keeps those it has come to have.
            keep = path in plan.existing and path not in new_labels
            objects = plan.objects[path]
            plan.objects[path] = [
                await space.apply(obj, NODE_MANAGER, create_only=keep) for obj in objects
            ]
            self._registered[path] = plan.objects[path][0]["metadata"]

        await some_at_once(list(plan.objects), write, WRITES_AT_ONCE)

    def known_of(self, path: NodePath) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """The labels and annotations of the edge at a path; none of a relay."""
        if path in self._registered:
            metadata = self._registered[path]
            return metadata.get("labels") or {}, metadata.get("annotations") or {}
        for record in self._centre.issuer().records.values():
            if isinstance(record, Profile) and record.path == path:
                return record.labels, record.annotations
        return {}, {}

    def edges_at(self) -> dict[str, str]:
        """By path, the SyncTargets in force that hang there."""
        records = self._centre.issuer().records.values()
        profiles = [r for r in records if isinstance(r, Profile)]
        return {str(profile.path): profile.source.name for profile in profiles}

    def record(self, path: NodePath) -> NodeRecord | None:
        return node_record(self._centre.issuer(), path)

    def holders(self) -> dict[str, NodePath]:
        """By public key, the node that has it: a server lets nobody in by a key of two.

        The key of the entrances is the centre's: whoever holds a token could show that he has it.
        """
        found = nodes(self._centre.issuer())
        held = {nkey: node.path for node in found for nkey in node.nkey.split()}
        return {entrance_pair(self._centre.tree_id())[1]: NodePath(), **held}

    def has_key(self, path: NodePath, nkey: str = "") -> bool:
        """Whether a node there has this key, or any; one that was revoked has none."""
        record = self.record(path)
        keys = record.nkey.split() if record is not None else []
        return nkey in keys if nkey else bool(keys)

    async def parent(self, path: NodePath) -> Json:
        """What the parent says of itself; it must be there, to let the node in."""
        plan = EnrolmentPlan(())
        await self._check_parent(plan, path, self.edges_at())
        return plan.parents[path.parent]

    async def _check_parent(
        self, plan: EnrolmentPlan, path: NodePath, edges: Mapping[str, str]
    ) -> None:
        """Raises NodeRefused or ApiError unless a relay is there that can let a node in."""
        parent = path.parent
        if not parent.is_root and self.record(parent) is None:
            if remedy := self.invited(parent):
                raise NodeRefused(path, _not_joined(parent), remedy)
            raise NodeRefused(path, f"its parent {parent} is no node", f"add {parent} first")
        if name := edges.get(str(parent)):
            reason = f'its parent {parent} is an edge, of SyncTarget "{name}"; nothing hangs there'
            raise NodeRefused(path, reason, "name a path right below a relay, or the centre")
        if parent in plan.parents:
            return
        remedy = "add nodes below it when it is back"
        if not parent.is_root and (await self._states_of([parent]))[parent] == NEVER_JOINED:
            raise NodeRefused(path, _not_joined(parent), f"leafcast join there; {THEN}")
        answer = await self.answer(parent, remedy)
        if not answer["leafUrls"]:
            message = f"{parent} does not say where servers of children dial in"
            raise ApiError("BadAnswer", message, remedy)
        if authority := await self._certify(parent, answer["certificateRequest"]):
            answer["authorities"] = authority
        plan.parents[parent] = answer

    def _check_place(self, one: NodeSpec, edges: Mapping[str, str]) -> None:
        """Raises NodeRefused if a new key would make a relay of an edge, or an edge of a relay.

        A relay without nodes below it may become one: it was added so by mistake.
        """
        path, name = one.path, edges.get(str(one.path))
        if path.is_root:
            raise NodeRefused(path, "the centre is no child", "name a path such as /emea")
        if one.relay and name:
            remedy = "leave out --relay, or remove it first with `leafcast node remove`"
            raise NodeRefused(path, f'it is an edge, of SyncTarget "{name}"', remedy)
        if one.relay or name or self.record(path) is None:
            return
        if below := nodes_below(self._centre.issuer().records, path):
            reason = f"it is a relay, with nodes below it ({len(below)})"
            remedy = "say --relay --replace: its key is void once the new one is let in"
            raise NodeRefused(path, reason, remedy)

    def _check_new(self, path: NodePath, states: Mapping[NodePath, str]) -> None:
        """Raises ApiError for one whose state is known: it is there, and not to be replaced."""
        if path in states:
            message = f'node "{path}" already exists'
            remedy = f"--replace lets another key in: {self._cut_off(path, states[path])}"
            raise ApiError("AlreadyExists", message, remedy)

    async def _states_of(self, paths: Iterable[NodePath]) -> dict[NodePath, str]:
        forms = {form["path"]: form["state"] for form in (await self._states.tree())["nodes"]}
        return {path: forms.get(str(path), "unknown") for path in paths}

    def _cut_off(self, path: NodePath, state: str) -> str:
        """What another key would do to a node in this state."""
        if state == NEVER_JOINED:
            return "it has never joined"
        below = nodes_below(self._centre.issuer().records, path)
        also = f", and {many(len(below), 'node')} below it," if below else ""
        if state in IN_SESSION:
            said = f"it is up{also} and would be cut off then"
        else:
            said = f"it is {state}{also} and could not come back with the key that it has"
        return said + ("; `leafcast up` would not start it" if self._centre.runs_here(path) else "")

    async def answer(
        self, path: NodePath, remedy: str, arguments: Mapping[str, str] = NOTHING_MORE
    ) -> Json:
        """What a node says of itself; raises ApiError."""
        try:
            return checked_answer(path, await self._asks.ask_signed(path, NODE, arguments))
        except AskFailed as failed:
            error = api_error(failed.fault)
            raise ApiError(error.code, error.message, remedy) from failed

    async def admitted(self, nkeys: Mapping[NodePath, str]) -> bool:
        """Wait a while until parents know their children's keys; whether they do.

        Of a parent with several members all that are reached must: a child may dial any of them. A
        parent that reads a long list of new children may not answer at once.
        """
        seconds = ADMIT_SECONDS_MAX + len(nkeys) * ADMIT_SECONDS_EACH
        until, pause = self._clock.now().seconds + seconds, POLL_SECONDS
        awaited = dict(nkeys)
        while awaited and self._clock.now().seconds < until:
            for parent in sorted({path.parent for path in awaited}):
                children = {}
                with suppress(ApiError):
                    answer = await self.answer(parent, "ask again", {MEMBERS_ASKED: ""})
                    if not any(it["role"] != SILENT for it in _lacking(answer)):
                        children = answer["children"]
                for path in [path for path in awaited if path.parent == parent]:
                    if children.get(path.name, {}).get("nkey") == awaited[path]:
                        del awaited[path]
            if awaited:
                await self._clock.sleep(pause)
                pause = min(2 * pause, POLL_SECONDS_MAX)
        return not awaited

    async def unconfirmed(self, parent: NodePath) -> list[str] | None:
        """Which of its members may let in other children, or by other keys, than the active one.

        None where nobody knows: the node does not answer.
        """
        answer = await self._of_members(parent, self._clock.now().seconds + CONFIRM_SECONDS_MAX)
        return [it["name"] for it in _lacking(answer)] if answer is not None else None

    async def let_out(self, path: NodePath) -> list[str] | None:
        """Wait a while until the parent of a removed node lets it in no more.

        Returns the members of the parent that may do so still; None where nobody knows, as it does
        not answer.
        """
        until = self._clock.now().seconds + ADMIT_SECONDS_MAX
        while True:
            asked_until = self._clock.now().seconds + CONFIRM_SECONDS_MAX
            answer = await self._of_members(path.parent, asked_until)
            if answer is None:
                return None
            lacking = _lacking(answer)
            waits = any(it["role"] != SILENT for it in lacking) or path.name in answer["children"]
            if not waits or self._clock.now().seconds >= until:
                return [it["name"] for it in lacking]
            await self._clock.sleep(POLL_SECONDS)

    async def _of_members(self, path: NodePath, until: float) -> Json | None:
        """What a node says of its members; None if it does not answer, and is asked in vain again.

        A server that takes in a change of its children serves nobody for a moment.
        """
        while True:
            try:
                return await self.answer(path, "ask again", {MEMBERS_ASKED: ""})
            except (ApiError, BusBroken) as error:
                log.debug("%s is asked for its members in vain: %s", path, error)
            if self._clock.now().seconds >= until:
                return None
            await self._clock.sleep(POLL_SECONDS)

    async def hanging(self) -> dict[str, str]:
        """The SyncTargets' names by the path they hang at."""
        listing = await self._centre.inventory_space().list(GROUP, "synctargets")
        hanging = {path_of(obj): obj["metadata"]["name"] for obj in listing.objects}
        return {path: name for path, name in hanging.items() if path}


def _lacking(answer: Json) -> list[Json]:
    """The members of a node that did not confirm that they let in whom the active one does."""
    return [it for it in answer["members"] if not it["sameChildren"]]


def give_up(centre: Centre, name: str, clock: Clock) -> None:
    """Let placements lose the destination of this name, however much that is: it was named."""
    centre.issuer().brakes.give_up(name, clock.now().wall_ms + NAMED_SECONDS * 1000)


def key_taken(path: NodePath, holder: NodePath) -> NodeRefused:
    """That a node comes with a key of another node."""
    reason = f"its key is the one of {holder}"
    return NodeRefused(path, reason, f"deny it, and make another token for {path}")


def _objects_of(one: NodeSpec, found: Mapping[str, Json], hanging: dict[str, str]) -> list[Json]:
    """An edge's SyncTarget and Location; labels given win over `region`, never over `id`."""
    name = name_for(one.path, hanging)
    hanging[name] = str(one.path)
    made = edge_objects(one.path, name, one.labels)
    told = (found[name]["metadata"].get("annotations") or {}) if name in found else {}
    if MOVED_ANNOTATION in told:
        made[0]["metadata"]["annotations"][MOVED_ANNOTATION] = told[MOVED_ANNOTATION]
    return valid(made)


def valid(objects: list[Json]) -> list[Json]:
    """The same, once they were judged; raises ApiError."""
    for obj in objects:
        try:
            validate_object(obj)
        except InvalidObject as error:
            raise ApiError("Invalid", str(error), "correct the labels") from error
    return objects


def path_of(target: Json) -> str:
    """Where a SyncTarget says that it hangs; "" if it does not."""
    return str((target["metadata"].get("annotations") or {}).get(PATH_ANNOTATION, ""))
