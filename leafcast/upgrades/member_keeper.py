"""Beside each member of a node on three machines: its release, and whose turn it is.

The active one tells the others what the tree wants. Each fetches it from the content that all three
servers hold, into a folder of its own machine, and tells its launcher when it may go.
"""

from __future__ import annotations

import asyncio
import logging
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from leafcast.members.membership import MembershipDamaged, kept_membership
from leafcast.members.settings import MemberSettings
from leafcast.node.member_change import UnderWay
from leafcast.upgrades.chosen import ChosenHere, generations
from leafcast.upgrades.fetching import NotHere, ReleaseFetching
from leafcast.upgrades.held_back import why_held_back
from leafcast.upgrades.member_words import (
    RELEASE,
    UPGRADE,
    Told,
    told_by,
    upgrade_form,
    words_in,
)
from leafcast.upgrades.release_folder import ReleaseFolder, here, wanted_by
from leafcast.upgrades.standing import NEEDS_FILES, ReleaseStanding, standing_of
from leafcast.upgrades.turns import MemberWord, Turn, together, turn_of
from relay.adapters.jetstream.blobs import Blobs
from relay.adapters.jetstream.connection import Connection
from relay.adapters.jetstream.member_presence import MemberPresence
from relay.adapters.jetstream.member_servers import MemberServer, member_servers
from relay.adapters.jetstream.streams import last_message
from relay.adapters.server.cluster_settings import MEMBERS
from relay.core.events import RunningStated
from relay.ports import BusBroken, Clock
from relay.shell.driver import Driver
from schemas.content.blobs import Reference, open_value
from schemas.records.records import ReleaseRecord
from schemas.records.release_body import ReleaseBody
from schemas.records.signed_records import read_signed
from schemas.records.signing import decode_envelope
from schemas.releases.release_folder import (
    RELEASES,
    WHY_MAX,
    LaunchNote,
    LaunchState,
    ReleaseTurn,
    WantedRelease,
)
from schemas.reports.running import ReleaseState, Running, running_here
from schemas.values import subjects
from schemas.values.identity import MailKey
from schemas.values.refusals import BlobRefused, RecordRefused

LOOK_SECONDS, LOOK_SELDOM_SECONDS = 1.0, 5.0
"""How often the others are asked: while a release is on its way here, and else."""
log = logging.getLogger("leafcast.upgrades")


class MemberReleases:
    """Keeps the folder of releases of one member, and says what the node runs while active."""

    def __init__(
        self,
        folder: Path,
        settings: Callable[[], MemberSettings],
        clock: Clock,
        platform: str = "",
        *,
        of_centre: bool = False,
    ) -> None:
        """`folder` is the member's data directory."""
        self._place, self._settings, self._clock = folder, settings, clock
        self._folder = ReleaseFolder(folder / RELEASES, of_centre)
        self._fetching = ReleaseFetching(self._folder, platform or here(), clock)
        # What the tree wants, as the active member said last.
        self._told: Told | None = None
        self._claims = False
        self._trouble = "it is not known yet whether it has caught up"
        # What each member said last, and what this one tells while it is active.
        self._words: dict[str, MemberWord] = {}
        self._tells: Mapping[str, Any] | None = None

    def facts(self) -> Mapping[str, Any]:
        """What this member says to the others of releases."""
        launcher = self._folder.launcher()
        choice = self._told.choice if self._told is not None else None
        form = upgrade_form(self._standing(launcher), choice, launcher, claims=self._claims)
        return {UPGRADE: form, RELEASE: self._tells}

    @property
    def out_of_step(self) -> str:
        """Why what runs here is not good yet, to a launcher that tries it; "" if it is."""
        launcher = self._folder.launcher()
        return self._trouble if launcher is not None and _is_judged(launcher) else ""

    async def keep(self, url: str, seed: str, presence: MemberPresence) -> None:
        """Look without end, by the member's own server at this address; see `run`."""
        settings = self._settings()
        label = f"leafcast {settings.path} {settings.name} releases"
        connection = Connection(url, seed, label, "_INBOX.releases")
        await connection.open()
        try:
            await self.run(presence, connection)
        finally:
            await connection.close()

    async def run(self, presence: MemberPresence, connection: Connection) -> None:
        """Look without end."""
        await asyncio.to_thread(self._folder.clear_drafts)
        while True:
            soon = False
            try:
                soon = await self._look(presence, connection)
            except OSError as error:
                log.warning("the folder of releases cannot be used: %s", error)
            await self._clock.sleep(LOOK_SECONDS if soon else LOOK_SELDOM_SECONDS)

    async def _look(self, presence: MemberPresence, connection: Connection) -> bool:
        """Ask the others, take turns, and fetch; whether to look again soon."""
        facts = await presence.look()
        told = self._told = told_by(facts, self._told)
        launcher = self._folder.launcher()
        standing = self._standing(launcher)
        is_judged = launcher is not None and _is_judged(launcher)
        is_tried = is_judged or standing.state is ReleaseState.INSTALLING
        words = words_in(facts, await _servers(connection) if is_tried else (), self._change())
        self._note(words, facts)
        if launcher is None:
            return False
        turn = Turn(may_go=False, why="nothing is there to be tried")
        if told is not None and standing.state is ReleaseState.INSTALLING:
            own, choice = self._settings().name, told.choice
            turn = turn_of(own, words, choice.wanted, may_begin=choice.may_begin)
        self._take(turn, told)
        if not standing.fetches:
            self._fetching.rest()
        if told is not None and (
            standing.fetches or await self._is_lost(connection, told, standing)
        ):
            await self._fetch(connection, told)
        return is_tried or standing.fetches

    def _take(self, turn: Turn, told: Told | None) -> None:
        """Tell the launcher, and after that the others; raises OSError."""
        about = told.choice.wanted if told is not None else None
        manifest, attempt = (about.manifest, about.attempt) if about is not None else ("", 0)
        self._folder.turn(ReleaseTurn(manifest, attempt, turn.may_go, turn.why[:WHY_MAX]))
        self._claims = turn.claims

    def _note(self, words: Sequence[MemberWord], facts: Mapping[str, Any]) -> None:
        """Of a member that is silent counts what it said last."""
        settings = self._settings()
        self._words |= {word.name: word for word in words if word.name in facts}
        self._words = {name: it for name, it in self._words.items() if name in settings.keys}
        own = next((word for word in words if word.name == settings.name), None)
        self._trouble = own.trouble if own is not None else "is not heard"

    def _standing(self, launcher: LaunchNote | None) -> ReleaseStanding:
        choice = self._told.choice if self._told is not None else None
        found = standing_of(
            choice, launcher, self._folder.wanted(), is_pinned=self._folder.is_pinned
        )
        if found.fetches and self._fetching.refused:
            return ReleaseStanding(ReleaseState.REFUSED, self._fetching.refused, fetches=True)
        return found

    def _change(self) -> UnderWay | None:
        # Whoever runs the node says what is amiss with the file.
        with suppress(MembershipDamaged):
            return kept_membership(self._place)
        return None

    async def _is_lost(self, connection: Connection, told: Told, standing: ReleaseStanding) -> bool:
        """Whether the launcher cannot have it, as files are gone that were here."""
        if standing.state not in NEEDS_FILES or not told.choice.may_begin:
            return False
        try:
            return await self._fetching.lacks(await self._body(connection, told))
        except NotHere:
            return False

    async def _fetch(self, connection: Connection, told: Told) -> None:
        blobs = Blobs(connection, self._settings().path, None, MEMBERS)
        try:
            body = await self._body(connection, told)
        except NotHere as lacking:
            log.info("release %s is not here yet: %s", told.choice.wanted.version, lacking)
            return
        await self._fetching.fetch(body, partial(_loaded, blobs))

    async def _body(self, connection: Connection, told: Told) -> ReleaseBody:
        """What the record says that the active member named; raises NotHere."""
        subject = subjects.own(self._settings().path, told.key)
        try:
            found = await last_message(connection, "OWN", subject)
        except BusBroken as error:
            raise NotHere(f"its record: {error}") from error
        return read_body(str(found.get("data", "")) if found else "", told.choice.wanted)

    async def lead(self, driver: Driver) -> None:
        """While the node runs here: tell the others what is wanted, and the tree what runs."""
        await driver.started.wait()
        chosen, said = ChosenHere(self._clock), Running()
        try:
            while True:
                seen, record = generations(driver.node), driver.node.release
                choice, told = chosen.of(driver), None
                if record is not None and choice is not None:
                    told = Told(choice, MailKey(record.source.key))
                self._tells = told.form() if told is not None else {}
                now = self._running(driver, told)
                # Nothing is known before the first look.
                if self._words and now != said:
                    said = now
                    await driver.observe(RunningStated(said))
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        while generations(driver.node) == seen:
                            await driver.progress()
        finally:
            self._tells = None

    def _running(self, driver: Driver, told: Told | None) -> Running:
        """What the node says of itself: what its members say together."""
        wanted = told.choice.wanted if told is not None else None
        found = together([*self._words.values()], wanted, of_centre=self._folder.is_source)
        why = found.why or why_held_back(found.state, driver.node.lacks_wire)
        wave = told.choice.wave if told is not None else 0
        version = wanted.version if wanted is not None else ""
        path = str(driver.config.path)
        return running_here(path, found.version, version, wave, found.state, why)


def _is_judged(launcher: LaunchNote) -> bool:
    """Whether its launcher looks at what runs here, before it goes on."""
    return launcher.is_on_trial or launcher.state is LaunchState.INSTALLING


def read_body(text: str, wanted: WantedRelease) -> ReleaseBody:
    """What a record in Base64 says, if it is of that release; raises NotHere."""
    try:
        record = read_signed(decode_envelope(b64decode(text))).record
    except (RecordRefused, ValueError) as error:
        raise NotHere(f"its record: {error}") from error
    if not isinstance(record, ReleaseRecord) or wanted_by(record.release) != wanted:
        raise NotHere("another release was chosen")
    return record.release


async def _servers(connection: Connection) -> Sequence[MemberServer]:
    """None is known while its streams have no leader."""
    try:
        return await member_servers(connection)
    except BusBroken as error:
        log.debug("the servers of the members are not known: %s", error)
        return ()


async def _loaded(blobs: Blobs, reference: Reference) -> bytes:
    """Content that a server of the node has; raises NotHere."""
    found = await blobs.load(reference)
    if found.value is None:
        raise NotHere(f"this node has not all of it yet: {reference.address[:12]}")
    try:
        return open_value(reference, found.value, dict(found.parts))
    except BlobRefused as error:
        raise NotHere(str(error)) from error
