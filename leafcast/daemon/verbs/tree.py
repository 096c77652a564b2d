"""The verbs about the tree itself: tree, nodes, status, destinations, events."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from leafcast.ask.api import Api, ApiError, verb
from leafcast.ask.client import CentreAsks
from leafcast.ask.remote import NOTHING_MORE, Form, ask_nodes
from leafcast.centre.centre import Centre, running, within
from leafcast.daemon.carried_objects import carried_form
from leafcast.daemon.event_log import EventLog
from leafcast.daemon.tree_facts import (
    answers_here,
    condition_forms,
    destination_forms,
    edges_not_here,
    listed,
    placement_form,
    placement_names,
    relays_not_here,
    silent_below,
    tree_form,
)
from leafcast.daemon.tree_levels import KnownPlaces, found_form, level_form
from leafcast.daemon.verbs.approvals import lost_spaces
from leafcast.daemon.verbs.explaining import WhyVerbs
from leafcast.daemon.verbs.planning import PlanVerbs
from leafcast.daemon.verbs.rendering import register_rendering
from leafcast.daemon.verbs.rollout_ends import register_rollout_ends
from leafcast.daemon.verbs.selection import register_selection
from leafcast.daemon.verbs.tracing import TraceVerbs
from leafcast.daemon.verbs.waits import register_wait
from leafcast.node.member_forms import MEMBERS_ASKED
from relay.ports import Clock
from schemas.records.asks import AskFault
from schemas.records.placements import bare_name, kind_of, meant
from schemas.values.identity import NodePath

CAUGHT_UP_SECONDS_MAX = 5.0
EDGES_ASKED_MAX = 64
"""How many edges the tree is asked of in person; beyond it their parents' word must do."""


@dataclass(slots=True)
class TreeVerbs:
    """Answers from what the daemon's own nodes know; for the tree, other relays are asked, too."""

    _centre: Centre
    _events: EventLog
    _asks: CentreAsks
    _clock: Clock
    # Why backups fail; "" if they do not.
    _backup_trouble: Callable[[], str] = str
    _places: KnownPlaces = field(init=False)

    def __post_init__(self) -> None:
        self._places = KnownPlaces(self._centre)

    @verb("tree")
    async def tree(self, *, members: bool = False) -> dict[str, Any]:
        """All nodes with their states and counts; if asked for, with their `members`."""
        edges = edges_not_here(self._centre)
        also = edges if len(edges) <= EDGES_ASKED_MAX else ()
        elsewhere = await self._elsewhere(also, {MEMBERS_ASKED: ""} if members else NOTHING_MORE)
        form = tree_form(self._centre, elsewhere)
        for node in form["nodes"] if members else ():
            path = NodePath.parse(node["path"])
            here, answer = self._centre.nodes.get(path), elsewhere.get(path)
            answered = answer["members"] if answer is not None else None
            node["members"] = await here.members() if here is not None else answered
        return form

    @verb("level")
    async def level(self, path: str = "/", skip: int = 0, search: str = "") -> dict[str, Any]:
        """A node and a page of its children: see `level_form`; raises ApiError, BadIdentity."""
        at, places = NodePath.parse(path), self._places.now()
        if not places.has(at):
            remedy = "`leafcast node list` shows the nodes there are"
            raise ApiError("NotFound", f"node {at}: there is no such node", remedy)
        way = [NodePath(at.names[:depth]) for depth in range(len(at.names) + 1)]
        asked = [it for it in way if it not in self._centre.nodes]
        elsewhere = await self._told(asked, NOTHING_MORE) if asked else {}
        return level_form(self._centre, places, elsewhere, at, skip=skip, search=search)

    @verb("places")
    async def places(self, search: str) -> dict[str, Any]:
        """The nodes that words fit: see `found_form`."""
        return found_form(self._places.now(), search)

    @verb("carried")
    async def carried(self, search: str) -> dict[str, Any]:
        """The objects of placements that words fit: see `carried_form`; raises BusBroken."""
        workloads = running(self._centre.controllers).translator.workloads
        return carried_form(workloads.resolver.carried, search)

    @verb("status")
    async def status(
        self, placement: str = "", *, by_node: bool = False, conditions: bool = False
    ) -> dict[str, Any]:
        """One placement, or all of them by name; raises ApiError if there is none.

        With `conditions` each has those of its status.
        """
        await self._listed()
        names = [await self._named(placement)] if placement else placement_names(self._centre)
        forms = [placement_form(self._centre, name, by_node=by_node) for name in names]
        for form in forms if conditions else ():
            form["conditions"] = condition_forms(self._centre, form["name"])
        for form in forms if placement else ():
            named = sum(item["destinations"] for item in form["unreachable"])
            if form["states"].get("unreachable", 0) > named:
                form["unreachable"] += silent_below(await self._elsewhere())
        controllers = self._centre.controllers
        lost = lost_spaces(controllers) if controllers is not None and not placement else {}
        trouble = "" if placement else self._backup_trouble()
        return {"placements": forms, "lostSpaces": lost, "backupTrouble": trouble}

    @verb("destinations")
    async def destinations(self, placement: str) -> dict[str, Any]:
        """The destinations of a placement one by one, as far as they are known here."""
        return destination_forms(self._centre, await self._named(placement))

    @verb("events")
    async def events(self, since: int = 0, run: str = "") -> dict[str, Any]:
        """What happened after a sequence of a run of the daemon: all, if it was another one."""
        log = self._events
        found = log.since(since if run == log.run else 0)
        return {"events": found, "run": log.run, "through": log.through}

    async def _elsewhere(
        self, also: Collection[NodePath] = (), arguments: Mapping[str, str] = NOTHING_MORE
    ) -> dict[NodePath, Form]:
        """What relays say that run elsewhere, and others, as far as they can be reached."""
        return await self._told(relays_not_here(self._centre).union(also), arguments)

    async def _told(
        self, asked: Collection[NodePath], arguments: Mapping[str, str]
    ) -> dict[NodePath, Form]:
        """What these nodes say, as far as they can be reached."""
        known = answers_here(self._centre)
        said = await ask_nodes(self._asks, self._clock, asked, known, arguments)
        return {path: it for path, it in said.items() if not isinstance(it, AskFault)}

    async def _listed(self) -> None:
        """Wait until the centre knows what there is, as after a start; not for long."""
        controllers = self._centre.controllers
        if controllers is not None and not controllers.translator.placements.known:
            await within(CAUGHT_UP_SECONDS_MAX, controllers.caught_up())

    async def _named(self, placement: str) -> str:
        controllers = self._centre.controllers
        names = placement_names(self._centre)
        if meant(placement, names) not in names and controllers is not None:
            # It may have been applied a moment ago.
            await within(CAUGHT_UP_SECONDS_MAX, controllers.caught_up())
        names = placement_names(self._centre)
        if (found := meant(placement, names)) in names:
            return found
        remedy = f"there are: {listed(names)}" if names else "there are none yet: apply one"
        raise ApiError(
            "NotFound", f'there is no {kind_of(found).kind} "{bare_name(found)}"', remedy
        )


def register_tree_verbs(
    api: Api,
    centre: Centre,
    events: EventLog,
    asks: CentreAsks,
    clock: Clock,
    backup_trouble: Callable[[], str] = str,
) -> TreeVerbs:
    """Answer the verbs about this tree; why backups fail others tell, "" if they do not."""
    verbs = TreeVerbs(centre, events, asks, clock, backup_trouble)
    api.serve(verbs, PlanVerbs(centre), WhyVerbs(centre, asks, clock))
    api.serve(TraceVerbs(centre, asks, clock))
    register_wait(api, centre, clock)
    register_selection(api, centre, clock)
    register_rendering(api, centre)
    register_rollout_ends(api, centre)
    return verbs
