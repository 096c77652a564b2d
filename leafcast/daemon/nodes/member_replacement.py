"""A machine takes the place of a lost member: its token, and its request on the way to the node.

The node itself carries that out, whoever is active there. What is known here lies with the seats:
a centre that is started again goes on.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace
from typing import Any

from leafcast.ask.api import ApiError, verb
from leafcast.ask.client import CentreAsks, api_error
from leafcast.centre.centre import Centre
from leafcast.daemon.nodes.enrolment import Enrolment
from leafcast.data_dir import DataDir
from leafcast.members.addresses import leaf_urls_of, served_names
from leafcast.members.replacing import ReplacementWish
from leafcast.members.seats import MemberSeat, MemberSeats
from leafcast.node.credentials.authorities import load_or_make_authorities
from leafcast.node.credentials.certificates import IssuedCertificates, IssuedUnreadable, NameTaken
from leafcast.node.listen_settings import kept_listen_settings
from leafcast.node.member_change import NOT_LOST
from relay.adapters.tls.authority import RequestRefused, requested_names
from relay.ports import BusBroken, Clock, Dice
from relay.shell.asker import AskFailed
from schemas.enrolment.tokens import SECRET_BYTES, Token, pin_of
from schemas.records.asks import REPLACE, AskFault
from schemas.values.identity import NodePath

LOOK_SECONDS = 1.0
BEGUN_MS = 86_400_000
"""A token is good for so long after its node said last that it waits for the machine."""
SETTINGS_MAX_BYTES = 256 * 1024

Json = dict[str, Any]

log = logging.getLogger("leafcast")


@dataclass(slots=True)
class MemberReplacement:
    """The verb `member-replace`, and what follows once a machine asked with its token."""

    _centre: Centre
    _place: DataDir
    _enrolling: Enrolment
    _asks: CentreAsks
    _seats: MemberSeats
    _clock: Clock
    _dice: Dice

    @verb("member-replace")
    async def invite(self, path: str, member: str, *, valid_seconds: int = 86_400) -> Json:
        """Hand out a token for the place of a lost member: path, name, token, url, untilMs.

        An earlier token for that place is void. Raises ApiError.
        """
        where = NodePath.parse(path)
        if not where.is_root and self._enrolling.record(where) is None:
            remedy = "name the centre (/) or a relay; `leafcast node list` shows them"
            raise ApiError("NotFound", f"node {where}: there is no such node", remedy)
        try:
            name = _text(where, await self._asked(where, ReplacementWish(member)), "name")
        except AskFailed as failed:
            raise api_error(failed.fault) from failed
        if where.is_root:
            urls = self._centre.nodes[where].hosted.leaf_urls
        else:
            urls = tuple((await self._enrolling.parent(where))["leafUrls"])
        tree, until_ms = self._centre.tree_id(), self._clock.now().wall_ms + valid_seconds * 1000
        pin = pin_of(tree, self._centre.roots(), b"")
        token = Token(self._dice.entropy(SECRET_BYTES), tree, pin, where, member=True)
        self._seats.put(MemberSeat(where, name, token.public, until_ms, replaces=member))
        return {
            "path": str(where),
            "name": name,
            "token": token.text,
            "url": ",".join(urls),
            "untilMs": until_ms,
        }

    async def run(self) -> None:
        """Bring what machines ask to their nodes, and back what they are told, without end.

        A node that does not answer holds up no other one.
        """
        asking: dict[tuple[NodePath, str], asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as group:
            while True:
                await self._clock.sleep(LOOK_SECONDS)
                asking = {at: task for at, task in asking.items() if not task.done()}
                for seat in self._seats.replacing(self._clock.now().wall_ms):
                    at = seat.path, seat.name
                    if at not in asking:
                        asking[at] = group.create_task(self._try(seat), name=f"member {at}")

    async def _try(self, seat: MemberSeat) -> None:
        try:
            if seat.path.is_root or self._enrolling.record(seat.path) is not None:
                await self._go_on(seat)
            else:
                self._void(seat, "there is no such node any more")
        except AskFailed as failed:
            self._seats.wait(seat, failed.fault.message)
            if failed.fault.reason == NOT_LOST:
                self._void(seat, failed.fault.message)
        except (NameTaken, RequestRefused, IssuedUnreadable, BusBroken) as error:
            self._seats.wait(seat, str(error))
        except (OSError, ValueError) as error:  # Its disk may be full, or a file damaged.
            log.warning("member %s of %s waits: %s", seat.name, seat.path, error)
            self._seats.wait(seat, str(error))

    def _void(self, seat: MemberSeat, why: str) -> None:
        """Have the machine of a seat be told that its token is none any more.

        A member that is back and ends once more, weeks later, would be replaced by it.
        """
        try:
            self._seats.drop(seat)
            if seat.asked is not None:
                names = served_names(leaf_urls_of(seat.asked))
                IssuedCertificates(self._place.folder).withdraw(seat.path, names)
        except (OSError, IssuedUnreadable) as error:
            why = f"{why}; {error}"
        log.warning("no machine takes the place of %s of %s: %s", seat.replaces, seat.path, why)

    async def _go_on(self, seat: MemberSeat) -> None:
        """Raises AskFailed, NameTaken, RequestRefused, IssuedUnreadable, BusBroken or OSError."""
        path, wish = seat.path, ReplacementWish(seat.replaces, seat.name, seat.asked)
        answer = await self._asked(path, wish)
        if "certificateRequest" in answer:
            made, believed = self._signed(seat, _text(path, answer, "certificateRequest"))
            answer = await self._asked(path, replace(wish, certificate=made, authorities=believed))
        if "settings" not in answer:
            self._seats.wait(seat, _text(path, answer, "waits"))
            self._renew(seat)
            return
        try:
            settings = bytes.fromhex(_text(path, answer, "settings"))
        except ValueError as error:
            raise _no_answer(path) from error
        # It may have asked anew meanwhile, or its token may be void.
        if self._seats.is_asking(seat):
            self._seats.put(replace(seat, settings=settings))
            log.info("a machine is told what makes it member %s of %s", seat.name, path)

    def _renew(self, seat: MemberSeat) -> None:
        """Have a token be good for as long as a change that began takes; raises OSError."""
        now_ms = self._clock.now().wall_ms
        if seat.until_ms < now_ms + BEGUN_MS // 2 and self._seats.is_asking(seat):
            self._seats.put(replace(seat, until_ms=now_ms + BEGUN_MS))

    def _signed(self, seat: MemberSeat, request: str) -> tuple[str, str]:
        """What all members are to show to children, and who is believed that signs it."""
        folder, now_ms, path = self._place.folder, self._clock.now().wall_ms, seat.path
        names, here = requested_names(request), kept_listen_settings(folder)
        issued = IssuedCertificates(folder)
        # The names of the centre are its own anyway.
        centre = here.hosts if here is not None else ()
        known = centre if path.is_root else issued.names_of(path)
        assert seat.asked is not None, "its machine asked"
        its = {*known, *served_names(leaf_urls_of(seat.asked))}
        if others := [name for name in names if name not in its]:
            raise RequestRefused(
                f"the members of {path} ask for a certificate for {', '.join(others)}, where "
                f"none of them and no machine that asked is reached"
            )
        issued.check(path, names, () if path.is_root else centre)
        found = load_or_make_authorities(folder, self._centre.tree_id(), now_ms)
        made = found.signing.issue(request, now_ms)
        if not path.is_root:
            # All show the former one until the change is done.
            issued.promise(path, names, made, found.signing.certificate)
        return made, found.believed

    async def _asked(self, path: NodePath, wish: ReplacementWish) -> Json:
        """What the node answers; raises AskFailed or BusBroken."""
        answer = await self._asks.ask_signed(path, REPLACE, wish.arguments())
        if not isinstance(answer, dict):
            raise _no_answer(path)
        return answer


def _text(path: NodePath, answer: Json, name: str) -> str:
    text = answer.get(name, "")
    if not isinstance(text, str) or len(text) > SETTINGS_MAX_BYTES:
        raise _no_answer(path)
    return text


def _no_answer(path: NodePath) -> AskFailed:
    return AskFailed(AskFault("BadAnswer", f"what {path} answers is no answer", str(path)))
