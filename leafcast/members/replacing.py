"""The active member has another machine take the place of a lost one, step by step.

Whoever is active goes on where the file of the membership says that it is. No step is begun before
both members that are left say that they carried out the one before: so at any time each of them
believes what the other one shows.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from leafcast.members.addresses import served_names
from leafcast.members.founding import GRANT
from leafcast.members.membership import (
    DONE,
    LEFT,
    REMOVED,
    Succession,
    hosts_of,
    leaf_urls_by_name,
)
from leafcast.members.newcomers import (
    Survivors,
    begun,
    check_place,
    check_replaceable,
    name_for,
    shown_request,
    told,
)
from leafcast.members.sealed_state import sealed
from leafcast.members.settings import MemberSettings
from leafcast.node.credentials.account_seeds import account_seeds
from leafcast.node.credentials.node_certificate import NodeCertificate
from leafcast.node.member_change import ReplacementRefused
from leafcast.node.member_forms import APPLIED, LISTENS, member_forms
from relay.adapters.jetstream.cluster_peers import (
    cluster_peers,
    have_placed,
    peer_id,
    remove_peer,
    streams_behind,
    streams_lacking,
)
from relay.adapters.jetstream.connection import Connection
from relay.adapters.jetstream.fence import Tenure
from relay.adapters.jetstream.member_presence import MemberPresence
from relay.adapters.jetstream.member_servers import member_servers
from relay.adapters.jetstream.server_watch import ServerWatch
from relay.adapters.server.cluster_settings import MEMBERS
from relay.adapters.server.leaf_address import LOOPBACK
from relay.adapters.tls.refusals import CertificateUnusable
from relay.ports import BusBroken, Clock, Dice
from schemas.enrolment.member_requests import MemberRequest, read_member_request
from schemas.values.refusals import RecordRefused
from schemas.values.wire import encode
from schemas.values.wire import replace as with_fields

LOOK_SECONDS = 0.25
CATCH_UP_LOOK_SECONDS = 1.0
PLACE_SECONDS = 15.0
"""So long a cluster has to place its streams at a new server by itself."""

log = logging.getLogger("leafcast")


@dataclass(frozen=True, slots=True)
class ActiveSide:
    """What the active member has: its folders, its way to the others, and how it keeps things.

    `settings` are its own as they are now. `listen` writes down where children dial in. `commit`
    has the node's state hold a change, and after that the file; it raises BusBroken, and the change
    may be kept all the same then. `carry_out` has this member be as the file wants it.
    `account` is a way to its own server as one of its accounts, by name.
    """

    folder: Path
    server_folder: Path
    settings: Callable[[], MemberSettings]
    tenure: Tenure
    presence: MemberPresence
    servers: ServerWatch
    relay: Connection
    system: Connection
    account: Callable[[str], AbstractAsyncContextManager[Connection]]
    listen: Callable[[tuple[str, ...]], None]
    commit: Callable[[Succession], Awaitable[None]]
    carry_out: Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ReplacementWish:
    """Of which member the place is wanted; once a machine asked, its name and what it said.

    `certificate` is what all members are to show to children, with who signed it.
    """

    lost: str
    name: str = ""
    asked: MemberRequest | None = None
    certificate: str = ""
    authorities: str = ""

    def arguments(self) -> dict[str, str]:
        """As a node is asked."""
        request = encode(self.asked).hex() if self.asked is not None else ""
        said = {
            "lost": self.lost,
            "name": self.name,
            "request": request,
            "certificate": self.certificate,
            "authority": self.authorities,
        }
        return {name: text for name, text in said.items() if text}


def read_wish(arguments: Mapping[str, str]) -> ReplacementWish:
    """What a node is asked; raises ValueError or RecordRefused."""
    said = arguments.get("request", "")
    return ReplacementWish(
        arguments.get("lost", ""),
        arguments.get("name", ""),
        read_member_request(bytes.fromhex(said)) if said else None,
        arguments.get("certificate", ""),
        arguments.get("authority", ""),
    )


@dataclass(frozen=True, slots=True)
class _Draft:
    """What comes of a machine's wish for the place of a lost member, as it asked, but for when."""

    lost: str
    asked: MemberRequest
    change: Succession


@dataclass(slots=True)
class Replacing:
    """Answers who wants a member's place, and goes on with a change, while this one is active."""

    _own: ActiveSide
    _change: Succession | None
    _clock: Clock
    _dice: Dice
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    # Until what is to be shown to children is signed.
    _draft: _Draft | None = None
    # Why it is not known how far the change is: whoever is active next finds out.
    _broken: BusBroken | None = None

    @property
    def change(self) -> Succession | None:
        """The last one, done or not."""
        return self._change

    async def answer(self, arguments: Mapping[str, str]) -> dict[str, Any]:
        """What becomes of a wish: `{name}`, `{certificateRequest}`, `{waits}` or `{settings}`.

        Raises ReplacementRefused or BusBroken.
        """
        try:
            wish = read_wish(arguments)
        except (ValueError, RecordRefused) as error:
            raise ReplacementRefused(str(error), "ask with this version") from error
        async with self._asking:
            return await self._answer(wish)

    async def _answer(self, wish: ReplacementWish) -> dict[str, Any]:
        change, settings, asked = self.change, self._own.settings(), wish.asked
        if asked is not None and change is not None and change.came == wish.name:
            if change.machines[change.came].key != asked.key.hex():
                reason = f"another machine is {change.came} of {settings.path} already"
                raise ReplacementRefused(reason, "join with the token of a free place")
            check_place(settings, change, asked)
            return {"waits": change.said} if change.step < REMOVED else self._told(change, asked)
        await self._check(wish.lost)
        free = name_for(settings, change)
        if asked is None:
            return {"name": free}
        if wish.name != free:
            reason = f"the next member of {settings.path} is {free}, and not {wish.name}"
            raise ReplacementRefused(reason, "make another token for it")
        wanted, made = with_fields(asked, now_ms=0), self._draft
        if made is None or (made.lost, made.asked, made.change.came) != (wish.lost, wanted, free):
            draft = await self._drafted(wish.lost, asked)
            made = self._draft = _Draft(wish.lost, wanted, draft)
        draft = made.change
        if draft.shown is not None:
            shown = replace(draft.shown, certificate=wish.certificate, authorities=wish.authorities)
            draft = replace(draft, shown=shown)
            if not self._is_shown(draft):
                return {"certificateRequest": shown_request(draft)}
        await self._keep(draft)
        log.info("%s: %s", settings.path, draft.said)
        return {"waits": draft.said}

    def _told(self, change: Succession, asked: MemberRequest) -> dict[str, Any]:
        seeds = account_seeds(self._own.server_folder, self._dice)
        founding = told(self._own.settings(), change, seeds)
        return {"settings": sealed(GRANT, founding.encoded(), {GRANT: asked.key}, self._dice).hex()}

    def _is_shown(self, draft: Succession) -> bool:
        """Whether what all are to show was signed for this very draft."""
        from relay.adapters.tls.certificate_checks import check_pair  # noqa: PLC0415

        shown, now_ms = draft.shown, self._clock.now().wall_ms
        if shown is None or not shown.certificate:
            return False
        names, what = served_names(draft.leaf_urls), "what all members show"
        try:
            check_pair(shown.certificate, shown.key, shown.authorities, names, now_ms, what)
        except CertificateUnusable as error:
            log.warning("%s: %s", self._own.settings().path, error)
            return False
        return True

    async def _check(self, lost: str) -> None:
        own = self._own
        facts = await own.presence.look()
        forms = member_forms(facts, await member_servers(own.relay))
        # JetStream takes one that was killed for reached, for some minutes.
        running = {name.rpartition(".")[2] for name in own.servers.running}
        check_replaceable(own.settings(), self.change, lost, forms, running)

    async def _drafted(self, lost: str, asked: MemberRequest) -> Succession:
        from relay.adapters.tls.authority import certified_names  # noqa: PLC0415

        own, settings = self._own, self._own.settings()
        facts = await own.presence.look()
        said = {name: tuple(map(str, it.get(LISTENS) or ())) for name, it in facts.items()}
        assert settings.cluster.tls is not None, "it was checked"
        shown = settings.cluster.tls.files.certificate.read_text(encoding="utf-8")
        names = [it for it in certified_names(shown) if it != LOOPBACK]
        hosts = hosts_of(settings, names[0] if names else LOOPBACK)
        urls = leaf_urls_by_name(settings, said)
        # One of a release before carries out no step.
        there = Survivors(
            hosts, {name: urls[name] for name in urls if APPLIED in facts.get(name, {})}
        )
        before = settings.cluster.tls.authorities.read_text(encoding="utf-8")
        now_ms = self._clock.now().wall_ms
        return begun(settings, self.change, lost, asked, there, before, now_ms)

    async def _keep(self, change: Succession) -> None:
        """Have it be the node's state, sealed, as all state, to those who are members then."""
        await self._own.tenure.confirm()
        try:
            await self._own.commit(change)
        except BusBroken as error:
            self._broken = error
            raise
        finally:
            self._changed.set()
        self._change = change

    def _is_current(self, change: Succession) -> bool:
        """Whether it is still this that is to be gone on with; raises BusBroken if nobody knows."""
        if self._broken is not None:
            raise self._broken
        return self._change is change

    async def run(self) -> None:
        """Go on with changes, without end; raises BusBroken once one is done."""
        while True:
            change = self.change
            self._changed.clear()
            if self._broken is not None:
                raise self._broken
            if change is None or change.step == DONE:
                await self._changed.wait()
                continue
            await self._own.carry_out()
            if change.step < REMOVED:
                await self._until_said(change, change.survivors)
            if change.step >= LEFT:
                await self._remove(change)
            if change.step == REMOVED:
                await self._until_whole(change)
            async with self._asking:
                # A machine that was lost before it came is replaced likewise, meanwhile.
                if self._is_current(change):
                    await self._step_on(change)

    async def _step_on(self, change: Succession) -> None:
        """Raises BusBroken, also once it is done."""
        if change.step == REMOVED:
            await self._finish(change)
        await self._keep(change.at(change.step + 1))
        log.info("%s: %s", self._own.settings().path, change.at(change.step + 1).said)

    async def _until_said(self, change: Succession, names: frozenset[str]) -> None:
        """Wait until these members say, each by its name, that they carried out the step.

        As each wait for others it ends, too, once another change is gone on with.
        """
        wanted = [change.number, change.step]
        while self._is_current(change):
            facts = await self._own.presence.look()
            if all(facts.get(name, {}).get(APPLIED) == wanted for name in names):
                return
            await self._clock.sleep(LOOK_SECONDS)

    async def _remove(self, change: Succession) -> None:
        """Have the cluster count those no more that are no members, until it does not."""
        settings, own = self._own.settings(), self._own
        gone = _former_servers(settings, change)
        while True:
            try:
                peers = await cluster_peers(own.system, MEMBERS)
                if peers is not None and not peers & gone.keys():
                    return
                for peer in sorted((peers or frozenset()) & gone.keys()):
                    # One that was active before cannot take out whom it does not know: these alone.
                    await own.tenure.confirm()
                    await remove_peer(own.system, gone[peer])
                    log.info("the server %s is none of its cluster any more", gone[peer])
            except BusBroken as error:
                log.debug("%s: %s", settings.path, error)
                # Where the lease is lost, too, the tenure ends.
                await own.tenure.confirm()
            await self._clock.sleep(LOOK_SECONDS)

    async def _until_whole(self, change: Succession) -> None:
        """Wait until the new member is there, and each stream is whole at it."""
        own, settings = self._own, self._own.settings()
        server, said = _server(settings, change.came), list[str]()
        place_from = self._clock.now().seconds + PLACE_SECONDS
        while self._is_current(change):
            await self._until_said(change, frozenset({change.came}))
            try:
                behind = await streams_behind(own.system, server, MEMBERS)
            except BusBroken as error:
                behind = [str(error)]
            if not behind:
                return
            if behind != said:
                log.info("%s: it is waited for %s", settings.path, ", ".join(behind[:3]))
            said = behind
            if (now := self._clock.now().seconds) >= place_from:
                place_from = now + PLACE_SECONDS
                await self._place(change, server)
            await self._clock.sleep(CATCH_UP_LOOK_SECONDS)

    async def _place(self, change: Succession, server: str) -> None:
        """Have streams lie at the new server that nobody placed there.

        Who leads the cluster does so by itself, unless that one was lost just as the lost server
        went, or this one came.
        """
        own, settings = self._own, self._own.settings()
        gone = _former_servers(settings, change)
        try:
            peers = await cluster_peers(own.system, MEMBERS)
            lacking = await streams_lacking(own.system, server, MEMBERS)
        except BusBroken as error:
            log.debug("%s: %s", settings.path, error)
            return
        for it in lacking if peers is not None and peer_id(server) in peers else ():
            held_by = next((gone[peer] for peer in sorted(it.counts & gone.keys())), "")
            if not held_by and len(it.counts) != MEMBERS - 1:
                continue
            try:
                async with own.account(it.account) as connection:
                    await own.tenure.confirm()
                    await have_placed(connection, it, held_by)
                log.warning("%s: %s is to lie at %s now", settings.path, it.stream, server)
            except BusBroken as error:
                log.warning(
                    "%s: %s is not to lie at %s yet: %s", settings.path, it.stream, server, error
                )

    async def _finish(self, change: Succession) -> None:
        """Have children be shown, and told, where all members are; raises BusBroken."""
        own = self._own
        if change.shown is not None:
            shown = NodeCertificate(own.server_folder, served_names(change.leaf_urls))
            shown.keep(change.shown.key, change.shown.certificate, change.shown.authorities)
        own.listen(change.leaf_urls)
        await self._keep(change.at(DONE))
        await own.carry_out()
        raise BusBroken(
            f"{change.came} is a member in the place of {change.lost}: the node begins anew, and "
            "tells its children"
        )


def _server(settings: MemberSettings, member: str) -> str:
    return replace(settings.cluster, member=member).server_name(settings.path)


def _former_servers(settings: MemberSettings, change: Succession) -> dict[str, str]:
    """The servers of those that are members no more, by the ids that a cluster knows them by."""
    return {peer_id(it): it for it in (_server(settings, name) for name in change.former)}
