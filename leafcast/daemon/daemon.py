"""The process that keeps a tree running: it holds the data directory, and answers the commands.

`leafcast up` starts it, detached; leafcast.daemon.__main__ says with which words.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Protocol

from controllers.centre import Controllers
from leafcast.ask.api import Api
from leafcast.ask.client import CentreAsks
from leafcast.ask.session import API_PREFIX, INVENTORY_BUCKET, STANDING, WORKLOADS_BUCKET
from leafcast.centre.centre import Centre, CentreOptions, running
from leafcast.centre.centre_spaces import confirming
from leafcast.changes.batches import Batches
from leafcast.changes.restorations import RestoredObject
from leafcast.changes.space_pair import SpacePair
from leafcast.daemon.backup_timer import BackupTimer
from leafcast.daemon.event_log import EventLog, follow_conditions
from leafcast.daemon.nodes.admission import JoinApproval
from leafcast.daemon.nodes.authority_change import AuthorityChange
from leafcast.daemon.nodes.certificate_renewal import CertificateRenewal, certificates, troubles
from leafcast.daemon.nodes.enrolment import Enrolment
from leafcast.daemon.nodes.former_bundles import FormerBundles
from leafcast.daemon.nodes.member_growth import MemberGrowth
from leafcast.daemon.nodes.member_replacement import MemberReplacement
from leafcast.daemon.nodes.membership import Membership
from leafcast.daemon.nodes.moving import NodeMoves
from leafcast.daemon.nodes.node_keys import NodeKeys
from leafcast.daemon.nodes.token_files import TokenFiles
from leafcast.daemon.release_events import follow_releases
from leafcast.daemon.rollout_events import follow_rollouts
from leafcast.daemon.tree_facts import placement_of, reached
from leafcast.daemon.verbs.approvals import Approvals
from leafcast.daemon.verbs.backups import Backups
from leafcast.daemon.verbs.changes import ChangeVerbs
from leafcast.daemon.verbs.chosen_removals import ChosenRemovals
from leafcast.daemon.verbs.diagnosis import Diagnosis
from leafcast.daemon.verbs.figures import FigureVerbs
from leafcast.daemon.verbs.keys import ContentKeys, KeyVerbs
from leafcast.daemon.verbs.orphans import Orphans
from leafcast.daemon.verbs.requests import RequestVerbs
from leafcast.daemon.verbs.rollout_ends import kept_back, register_restoring, restored_objects
from leafcast.daemon.verbs.spaces import Followers, register_spaces
from leafcast.daemon.verbs.tree import register_tree_verbs
from leafcast.daemon.verbs.upgrades import UpgradeVerbs
from leafcast.data_dir import DataDir
from leafcast.members.seats import MemberSeats
from leafcast.metrics.reading import MetricReading
from leafcast.node.freed_memory import give_back_freed
from leafcast.node.health_endpoint import HealthAddress, HealthEndpoint
from leafcast.spaces import open_space
from relay.adapters.asking import ANSWERS
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.jetstream.request_reply import serve
from relay.core.effects import Noted
from relay.space_port import Space
from schemas.values.identity import NodePath, random_id
from schemas.values.wording import many

log = logging.getLogger("leafcast.daemon")


ANSWERED_SECONDS = 1.0
"""So long after a change of its kind the daemon ends: whoever asked for it is answered by then."""


class KindChanged(Exception):
    """The data directory is of the other kind now, of a centre alone or of a member."""


class Below(Protocol):
    """Nodes that run below the centre in this program."""

    @property
    def tiers(self) -> Sequence[Sequence[NodePath]]:
        """They, tier by tier."""
        ...

    async def run(self, centre: Centre) -> None:
        """Run the centre and them until cancelled."""
        ...


class Daemon:
    """One run of a centre on one data directory, which must be locked."""

    def __init__(
        self,
        place: DataDir,
        options: CentreOptions,
        below: Below | None = None,
        health: HealthAddress | None = None,
    ) -> None:
        self._health, self._place, self._below = health, place, below
        self.api = Api()
        self._clock = SystemClock()
        self._state: dict[str, Any] = {"pid": os.getpid(), "ready": False, "doing": "starting"}
        dice = self._dice = SystemDice()
        self.events = EventLog(random_id(dice.entropy(16)), self._clock.now().wall_ms)
        centre = self.centre = Centre(
            place, options, self._doing, note=self._note, decide=self._decide
        )
        asks = CentreAsks(centre.asker, centre.keys, self._clock, dice, centre.nkeys)
        backups = self._backups = BackupTimer(
            place, centre.streams, self._clock, dice, self._note_of_centre
        )
        verbs = register_tree_verbs(
            self.api, centre, self.events, asks, self._clock, lambda: backups.trouble
        )
        orphans = Orphans(centre, asks)
        self._renewal = CertificateRenewal(centre, asks, place, self._clock)
        changing, certify = asyncio.Lock(), self._renewal.first
        enrolling = Enrolment(centre, asks, verbs, self._clock, certify)
        members = self._members = Membership(centre, enrolling, changing, asks, verbs, self._clock)
        note = self._note_of_centre
        self._admission = JoinApproval(
            centre, enrolling, changing, TokenFiles(place.folder), self._clock, dice, note
        )
        self._kind_changed = asyncio.Event()
        seats, ended = MemberSeats(place.folder), self._kind_changed.set
        self._growth = MemberGrowth(centre, place, enrolling, self._clock, dice, seats, ended)
        replacement = self._replacement = MemberReplacement(
            centre, place, enrolling, asks, seats, self._clock, dice
        )
        self._bundles = FormerBundles(centre, enrolling, changing, self._clock, note)
        self._authority = self._changes_authority(centre, asks)
        self.api.register(STANDING, self._standing)
        self.api.serve(
            asks,
            Approvals(centre),
            orphans,
            ChosenRemovals(centre, orphans),
            Backups(centre, place, backups, self._clock),
            KeyVerbs(centre, dice),
            ContentKeys(centre, dice),
            members,
            self._admission,
            self._growth,
            replacement,
            NodeMoves(centre, enrolling, self._admission, changing, self._clock),
            NodeKeys(centre, enrolling, changing, asks, self._clock),
            self._authority,
            FigureVerbs(self.readings),
            UpgradeVerbs(centre),
            self._diagnosis(centre, asks),
        )

    def _note(self, path: NodePath, noted: Noted) -> None:
        now_ms = self._clock.now().wall_ms
        self.events.noted(path, noted, now_ms, partial(placement_of, self.centre))

    def unready(self) -> dict[str, str]:
        """What keeps the centre from its work now: see HealthEndpoint."""
        return self.centre.unready()

    async def readings(self) -> list[MetricReading]:
        """The figures of the centre, and of the nodes that run beside it."""
        return await self.centre.readings()

    def _warnings(self) -> dict[str, str]:
        """What people should know, and keeps nothing from its work."""
        return {"backups": self._backups.trouble}

    def _note_of_centre(self, reason: str, about: str, detail: str) -> None:
        self._note(NodePath(), Noted(reason, about, detail))

    async def _decide(self, request: bytes) -> bytes:
        if (told := self._growth.decide(request)) is not None:
            return told
        answer = await self._admission.decide(request)
        if (member := self.centre.options.member) is not None:
            # Who is let in may dial any member's server.
            await member.children_let_in()
        return answer

    async def _answered(self, subject: str, question: bytes) -> bytes:
        answer = await self.api.answer(subject, question)
        await self._settled()
        return answer

    async def _standing(self) -> Mapping[str, Any]:
        """How the active member of a centre stands; nothing of one that has no members."""
        member = self.centre.options.member
        return member.presence.own() if member is not None else {}

    async def _settled(self) -> None:
        """Answer nothing that another member of the centre could not go on with."""
        if (member := self.centre.options.member) is not None:
            await member.tenure.settled()

    def _diagnosis(self, centre: Centre, asks: CentreAsks) -> Diagnosis:
        place = self._place
        return Diagnosis(
            centre,
            asks,
            self._clock,
            lambda: [*certificates(place), *self._admission.expiries()],
            lambda: troubles(place, self._clock.now().wall_ms),
            self._backups.facts,
        )

    def _changes_authority(self, centre: Centre, asks: CentreAsks) -> AuthorityChange:
        place, leave = self._place, self._admission.leave
        renew_here = centre.renew_certificates
        return AuthorityChange(centre, asks, place, self._clock, self._renewal, leave, renew_here)

    async def run(self) -> None:
        """Keep the tree running until cancelled, or until the kind of its directory changed.

        Raises what ends it, in groups.
        """
        self._say()
        try:
            async with asyncio.TaskGroup() as group:
                tree = self._below.run(self.centre) if self._below else self.centre.run()
                group.create_task(tree, name="tree")
                group.create_task(self._answer(), name="api")
                group.create_task(self._announce(), name="announce")
                group.create_task(self._watch(), name="watch")
                group.create_task(self._admission.run(), name="admission")
                group.create_task(self._renewal.run(), name="certifying")
                group.create_task(self._authority.run(), name="authority")
                group.create_task(self._bundles.run(), name="bundles")
                group.create_task(self._replacement.run(), name="members")
                group.create_task(self._back_up(), name="backups")
                group.create_task(give_back_freed(self._clock), name="memory")
                group.create_task(self._until_kind_changed(), name="kind")
                if (health := self._health) is not None:
                    endpoint = HealthEndpoint(
                        self.unready,
                        self._clock,
                        health.port,
                        health.host,
                        self._warnings,
                        readings=self.readings,
                    )
                    group.create_task(endpoint.run(), name="health")
        except* KindChanged:
            log.info("the centre changes over")
        finally:
            self._place.forget_daemon()

    async def _until_kind_changed(self) -> None:
        await self._kind_changed.wait()
        self.centre.hand_over()
        await self._clock.sleep(ANSWERED_SECONDS)
        raise KindChanged

    async def _answer(self) -> None:
        """Let the commands in as soon as the centre runs."""
        await self.centre.started.wait()
        centre = self.centre.nodes[NodePath()]
        self._place.write_admin({"url": centre.server.url, "seed": centre.hosted.seeds.commands})
        self._state["url"] = centre.server.url
        self._say()
        async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
            client = await centre.hosted.client(stack, "api")
            space, inventory = await self._spaces(stack)
            spaces = {WORKLOADS_BUCKET: space, INVENTORY_BUCKET: inventory}
            register_spaces(self.api, spaces)
            self._let_change(SpacePair(space, inventory))
            stack.callback(Followers(self.api, spaces, self._clock, self._dice).end)
            answering = serve(client, f"{API_PREFIX}*", self._answered, f"{ANSWERS}.")
            group.create_task(answering, name="verbs")
            await client.flush()
            if centre_member := self.centre.options.member:
                centre_member.hears()
            group.create_task(follow_conditions(space, self.events, self._clock), name="events")
            rollouts = follow_rollouts(space, self.events, self._clock)
            group.create_task(rollouts, name="rollout events")
            releases = follow_releases(space, self.events, self._clock)
            group.create_task(releases, name="release events")

    def _let_change(self, spaces: SpacePair) -> None:
        """Judge and write what commands want changed in these."""
        centre = self.centre

        def controllers() -> Controllers:
            return running(centre.controllers)

        async def nodes_there() -> list[str]:
            return [node["path"] for node in (await self._members.all())["nodes"]]

        async def keeping(rollouts: list[str]) -> list[dict[str, Any]]:
            return await kept_back(controllers(), rollouts)

        async def restored_of(placement: str) -> list[RestoredObject]:
            return await restored_objects(controllers(), placement)

        batches = Batches(controllers, self._clock, self._dice)
        verbs = ChangeVerbs(spaces, batches, self._clock, nodes_there, keeping)
        self.api.serve(verbs, RequestVerbs(spaces, self._clock))
        register_restoring(self.api, restored_of, spaces, verbs)

    async def _spaces(self, stack: AsyncExitStack) -> tuple[Space, Space]:
        """A way of its own to where people write: workloads with placements, and the inventory."""
        spaces, centre = self._place.spaces(), self.centre.nodes[NodePath()]
        settings = (spaces.workloads[0], WORKLOADS_BUCKET), (spaces.inventory[0], INVENTORY_BUCKET)
        workloads, inventory = [
            await open_space(
                setting,
                partial(centre.hosted.space, bucket, stack, as_written=True),
                self._clock,
                self._dice,
                stack,
                confirming(self.centre.options.member),
            )
            for setting, bucket in settings
        ]
        return workloads, inventory

    async def _back_up(self) -> None:
        await self.centre.started.wait()
        await self._backups.run()

    async def _announce(self) -> None:
        await self.centre.up.wait()
        self._count()
        self._state.update(ready=True, doing="running")
        self._say()
        log.info("the tree is up: %s", many(len(self.centre.nodes), "node"))

    async def _watch(self) -> None:
        """Log who gets out of reach, and who comes back."""
        await self.centre.up.wait()
        before: dict[NodePath, str] = {}
        while True:
            now = reached(self.centre)
            self.events.reached(before, now, self._clock.now().wall_ms)
            before = now
            if self._count():
                self._say()
            await self.centre.changed()

    def _count(self) -> bool:
        """Count the nodes that run here, which some may have left; whether that is news."""
        before, tiers = self._state.get("nodes"), self._below.tiers if self._below else ()
        counts = [sum(map(self.centre.runs_here, tier)) for tier in tiers]
        self._state["nodes"] = counts
        return counts != before

    def _doing(self, doing: str) -> None:
        log.info("%s", doing)
        self._state["doing"] = doing
        self._say()

    def _say(self) -> None:
        self._place.write_daemon(self._state)
