"""Machines that become members of a node: their tokens, their requests, and the change itself.

A machine is told what makes it a member once a person said that its node is to grow.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from typing import Any

from nacl.public import PrivateKey

from leafcast.ask.api import ApiError, verb
from leafcast.backups.restoring import PENDING
from leafcast.centre.centre import Centre
from leafcast.centre.copying import ALONE, OF_MEMBER, Copying, keep_copying
from leafcast.daemon.nodes.enrolment import Enrolment
from leafcast.daemon.nodes.members_show import MembersShow
from leafcast.data_dir import DataDir
from leafcast.machine import host_name
from leafcast.members.addresses import (
    HostRefused,
    MemberHost,
    apart,
    leaf_port,
    member_host,
    route_port,
)
from leafcast.members.founding import GRANT, founded, settle
from leafcast.members.sealed_state import sealed
from leafcast.members.seats import MemberSeat, MemberSeats, judged, seat_names
from leafcast.members.settings import kept_member
from leafcast.node.credentials.account_seeds import new_seeds
from leafcast.node.listen_settings import ListenSettings, kept_listen_settings
from leafcast.space_settings import IN_CLUSTER
from relay.adapters.server.cluster_settings import MEMBERS
from relay.adapters.server.leaf_address import LOOPBACK
from relay.adapters.server.nats_server import EmbeddedServer
from relay.adapters.server.ports import kept_ports
from relay.ports import Clock, Dice
from schemas.enrolment.enrolment import (
    GRANTED,
    REFUSED,
    UNKNOWN_TOKEN,
    SignedRequest,
    plain_answer,
    read_request,
    seal_answer,
)
from schemas.enrolment.enrolment import PENDING as WAITS
from schemas.enrolment.member_requests import MemberAnswer, MemberRequest, read_member_request
from schemas.enrolment.tokens import SECRET_BYTES, Token, pin_of
from schemas.values.identity import NodePath
from schemas.values.refusals import RecordRefused
from schemas.values.wire import replace as with_fields

AGAIN_SECONDS = 1
REASON_MAX = 500
HEARD_SECONDS = 10.0
"""So long machines are waited for, which ask each second."""
CENTRE = NodePath()
FIRST = "m1"
FORMER = (ALONE, OF_MEMBER)

Json = dict[str, Any]


class MemberGrowth:
    """The verbs `member-token-add`, `node-grow` and `node-shrink`, and answers to machines.

    `changed_kind` ends this run of the daemon: the next one on this data directory is of the other
    kind, of a centre alone or of a member.
    """

    def __init__(
        self,
        centre: Centre,
        place: DataDir,
        enrolling: Enrolment,
        clock: Clock,
        dice: Dice,
        seats: MemberSeats,
        changed_kind: Callable[[], None],
    ) -> None:
        self._centre, self._place, self._enrolling = centre, place, enrolling
        self._clock, self._dice, self._changed_kind = clock, dice, changed_kind
        self._seats = seats
        # Who asked lately, and who fetched what it is told: seats, by node and name.
        self._asking: set[tuple[NodePath, str]] = set()
        self._handed: set[tuple[NodePath, str]] = set()
        self._asked = asyncio.Event()
        self._release = version("leafcast")

    @verb("member-token-add")
    async def add(self, path: str, *, replace: bool = False, valid_seconds: int = 86_400) -> Json:
        """Hand out a token for the next member of a node: path, name, token, url, untilMs.

        With `replace` all earlier tokens for members of this node are void. Raises ApiError.
        """
        where = NodePath.parse(path)
        url = await self._urls(where)
        if replace:
            self._seats.forget(where)
        name = self._seats.free_name(where, seat_names(where))
        if not name:
            listed = ", ".join(_described(seat) for seat in self._seats.of(where))
            remedy = f"`leafcast node grow {where}` lets them in; --replace begins anew"
            raise ApiError(
                "TooMany", f"node {where} has a machine for each member: {listed}", remedy
            )
        tree, until_ms = self._centre.tree_id(), self._clock.now().wall_ms + valid_seconds * 1000
        pin = pin_of(tree, self._centre.roots(), b"")
        token = Token(self._dice.entropy(SECRET_BYTES), tree, pin, where, member=True)
        self._seats.put(MemberSeat(where, name, token.public, until_ms))
        return {
            "path": str(where),
            "name": name,
            "token": token.text,
            "url": ",".join(url),
            "untilMs": until_ms,
        }

    async def _urls(self, path: NodePath) -> tuple[str, ...]:
        """Where machines ask to be members of a node; raises ApiError if it can have none."""
        if path.is_root:
            self._check_centre()
            return self._centre.nodes[CENTRE].hosted.leaf_urls
        remedy = "name the centre (/) or a relay; `leafcast node list` shows them"
        # It may have been ended already, to go on as one of three.
        if self._enrolling.record(path) is None:
            raise ApiError("NotFound", f"node {path}: there is no such node", remedy)
        if str(path) in self._enrolling.edges_at():
            raise ApiError("Invalid", f"{path} is no relay, and runs once", remedy)
        return tuple((await self._enrolling.parent(path))["leafUrls"])

    def decide(self, data: bytes) -> bytes | None:
        """The answer to a request of a machine; None if its token is for no member.

        Raises OSError.
        """
        try:
            request = read_request(data)
        except RecordRefused:
            return None
        seat = self._seats.by_token(request.token)
        if seat is None:
            return None
        if not request.is_by(self._centre.tree_id(), seat.public):
            return plain_answer(UNKNOWN_TOKEN)
        return seal_answer(seat.public, self._answer(seat, request), self._dice.entropy(24))

    def _answer(self, seat: MemberSeat, request: SignedRequest) -> MemberAnswer:
        try:
            asked = read_member_request(request.payload)
        except RecordRefused as error:
            return MemberAnswer(
                REFUSED, request.digest, str(error)[:REASON_MAX], "join with this version"
            )
        verdict = judged(seat, asked, self._release, self._clock.now().wall_ms)
        if verdict.refused:
            return MemberAnswer(REFUSED, request.digest, verdict.reason, verdict.remedy)
        (self._handed if seat.settings else self._asking).add((seat.path, seat.name))
        self._asked.set()
        if seat.settings:
            return MemberAnswer(GRANTED, request.digest, settings=seat.settings)
        self._seats.hear(seat, self._clock.now().wall_ms)
        if seat.asked is None or with_fields(seat.asked, now_ms=asked.now_ms) != asked:
            self._seats.put(replace(seat, asked=asked))
        why = self._seats.why(seat)
        reason = f"{verdict.reason}: {why}"[:REASON_MAX] if why else verdict.reason
        return MemberAnswer(WAITS, request.digest, reason, again_seconds=AGAIN_SECONDS)

    @verb("node-grow")
    async def grow(self, path: str, *, host: str = LOOPBACK) -> Json:
        """Make the machines that asked members of a node: `{members: [{name, host, hostName}]}`.

        `host` (with a port or not) is where the others reach this machine, if the node is the
        centre. Raises ApiError.
        """
        where = NodePath.parse(path)
        try:
            own = member_host(host)
        except HostRefused as error:
            raise ApiError(
                "Invalid", f"--host {error.what}: {error.reason}", error.remedy
            ) from error
        there = (seat for seat in self._seats.of(where) if not seat.replaces)
        seats = {seat.name: seat for seat in there if seat.asked is not None}
        if lacking := [name for name in seat_names(where) if name not in seats]:
            message = f"no machine asked to be {' or '.join(lacking)} of {where} yet"
            remedy = f"`leafcast node add {where} --member` gives a token for `leafcast join` there"
            raise ApiError("Conflict", message, remedy)
        machines = {name: seat.asked for name, seat in seats.items() if seat.asked is not None}
        key = PrivateKey(self._dice.entropy(PrivateKey.SIZE))
        if where.is_root:
            self._check_centre()
            machines = {FIRST: self._own_machine(key, own), **machines}
        elif sum(it.has_state for it in machines.values()) != 1:
            message = f"of the machines of {where} one has to be where it runs now"
            remedy = (
                "end it there, run `leafcast join` with a token for a member and its --data-dir"
            )
            raise ApiError("Conflict", message, remedy)
        if why := apart(machines):
            remedy = (
                "say --host with an address of this machine here, and --member-host at each other: "
                f"`leafcast node add {where} --member --replace` begins anew"
            )
            raise ApiError("Conflict", f"{where} cannot grow: {why}", remedy)
        await self._tell(where, seats, machines, key)
        listed = [
            {"name": name, "host": it.host, "hostName": it.host_name}
            for name, it in machines.items()
        ]
        return {"members": listed}

    async def _tell(
        self,
        path: NodePath,
        seats: dict[str, MemberSeat],
        machines: dict[str, MemberRequest],
        key: PrivateKey,
    ) -> None:
        """Tell each machine what makes it a member, and become one, too, if it is of the centre."""
        now_ms = self._clock.now().wall_ms
        accounts = (
            self._centre.nodes[CENTRE].hosted.seeds if path.is_root else new_seeds(self._dice)
        )
        showing = MembersShow(self._place.folder, self._centre.tree_id(), path, machines)
        shown = showing.certificate(now_ms)
        told = founded(self._centre.tree_id(), path, machines, shown, accounts, self._dice, now_ms)
        names = {(path, name) for name in seats}
        if lacking := names - await self._until_all(names, self._asking):
            listed = " and ".join(sorted(name for _, name in lacking))
            message = f"the machine that is to be {listed} of {path} asks no more"
            remedy = "run `leafcast join` there again, and then this; nothing was changed"
            raise ApiError("Conflict", message, remedy)
        showing.keep(shown, now_ms)
        for name, seat in seats.items():
            public = {GRANT: machines[name].key}
            closed = sealed(GRANT, told[name].encoded(), public, self._dice)
            self._seats.put(replace(seat, settings=closed))
        if path.is_root:
            # First who copies: whatever interrupts this, nobody else is active before that.
            keep_copying(self._place.folder, Copying(FIRST))
            settle(told[FIRST], bytes(key), self._place.folder, self._place.node(CENTRE))
            # From here on it is a member's: whatever ends the wait, what was told is good.
            try:
                # Who did not fetch it is told by whoever is active: two of three can begin.
                await self._until_all(names, self._handed)
            finally:
                self._changed_kind()

    async def _until_all(
        self, names: set[tuple[NodePath, str]], heard: set[tuple[NodePath, str]]
    ) -> set[tuple[NodePath, str]]:
        """Wait a while until all of them are heard of anew; who was."""
        heard.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(HEARD_SECONDS):
                while not names <= heard:
                    self._asked.clear()
                    await self._asked.wait()
        return names & heard

    def _own_machine(self, key: PrivateKey, own: MemberHost) -> MemberRequest:
        """What this machine would say; raises ApiError if the centre is not reached as it says."""
        folder, listens = self._place.node(CENTRE), kept_listen_settings(self._place.folder)
        ports = kept_ports(folder)
        assert ports is not None, "the centre runs"
        if own.is_away and listens is None:
            message = (
                f"the centre is to have members at {own.host}, and listens to its machine alone"
            )
            remedy = (
                "have it listen first (`leafcast down`, `leafcast up --listen HOST`); nodes that "
                "joined it in clear join anew then"
            )
            raise ApiError("Conflict", message, remedy)
        if listens is not None and not own.is_away:
            message = f"nodes elsewhere reach the centre at {', '.join(listens.urls)}"
            remedy = "say with --host where machines elsewhere reach this one, too"
            raise ApiError("Conflict", message, remedy)
        urls = listens.urls if listens is not None else ()
        taken = {ports.client, ports.leaf, *(leaf_port([url]) for url in urls)}
        route = route_port(own, folder, MEMBERS, taken)
        if route in taken:
            message = f"port {route} of --host is one at which the centre listens already"
            raise ApiError("Conflict", message, "say --host with another port, or without one")
        return MemberRequest(
            CENTRE,
            bytes(key.public_key),
            self._release,
            self._clock.now().wall_ms,
            own.host,
            route,
            ports.leaf,
            ports.client,
            host_name(),
            has_state=True,
            listens=urls,
        )

    def _check_centre(self) -> None:
        """Raises ApiError for a centre that cannot have members."""
        place, centre = self._place, self._centre
        below = sorted(str(path) for path in centre.nodes if not path.is_root)
        why = remedy = ""
        if centre.options.member is not None:
            why = "it has its members already"
            remedy = "`leafcast tree --members` shows them"
        elif below:
            why = f"{', '.join(below)} run in its own program, which would end"
            remedy = "remove them (`leafcast node remove`), and join them anew elsewhere"
        elif not isinstance(centre.nodes[CENTRE].server, EmbeddedServer):
            why, remedy = "its server is run by someone else", "run it with `leafcast up`"
        elif IN_CLUSTER in place.spaces().named():
            why = "one of its spaces is the cluster in which it runs, and members may run elsewhere"
            remedy = "name that API server by a kubeconfig that lies on each machine"
        elif unfit := _unfit(kept_listen_settings(place.folder)):
            why, remedy = unfit
        elif (place.folder / PENDING).exists():
            why, remedy = "a backup waits to be restored", "run `leafcast up` first"
        elif left := next((it for it in FORMER if (place.folder / it).exists()), ""):
            why = f"{place.folder / left} has its store of before a former change"
            remedy = "move that folder elsewhere, or remove it"
        if why:
            raise ApiError("Conflict", f"the centre cannot have several members: {why}", remedy)

    @verb("node-shrink")
    async def shrink(self, path: str, to: str) -> Json:
        """Have a node that has members run once again, at one of them: `{member}`.

        Raises ApiError.
        """
        settings = kept_member(self._place.folder)
        member = self._centre.options.member
        if not NodePath.parse(path).is_root:
            remedy = "end its members, and add it anew: `leafcast node add PATH --replace --relay`"
            raise ApiError("Invalid", f"{path} holds nothing that its parent has not", remedy)
        if settings is None or member is None:
            raise ApiError("Conflict", "the centre runs once already", "nothing is to be done")
        if to not in settings.keys:
            names = ", ".join(sorted(settings.keys))
            raise ApiError(
                "NotFound", f"the centre has no member {to!r}", f"its members are {names}"
            )
        if (change := member.replacing.change) is not None and change.said:
            remedy = "wait until it is done: `leafcast tree --members` shows it"
            raise ApiError("Conflict", f"its members change: {change.said}", remedy)
        self._seats.forget(CENTRE)
        keep_copying(self._place.folder, Copying(to, alone=True))
        await member.tenure.settled()
        self._changed_kind()
        return {"member": to}


def _described(seat: MemberSeat) -> str:
    assert seat.asked is not None
    return f"{seat.name} at {seat.asked.host} ({seat.asked.host_name})"


def _unfit(listens: ListenSettings | None) -> tuple[str, str] | None:
    """Why a centre that listens so cannot have members, and what to do; None if it can."""
    if listens is None:
        return None
    if listens.is_others:
        why = "a proxy or a file of your own has the certificate that it shows"
        return why, "have it --listen NAME[:PORT] alone: the tree's authority signs for members"
    if listens.of_members:
        why = f"it says that it listens where former members did ({', '.join(listens.urls)})"
        return why, "have it listen here: `leafcast down`, then `leafcast up --listen HOST`"
    return None
