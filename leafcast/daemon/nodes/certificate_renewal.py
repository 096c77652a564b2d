"""Certificates of nodes elsewhere are renewed over the tree, from the key that stays where it is.

What is due the centre knows from what it signed. A node is asked for a request, and is given what
was signed of it: both are asks, so they pass only to and from the node that they are for. What of
all certificates expires, and what stands in the way, the doctor is told.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from controllers.issuing.nodes import nodes
from leafcast.ask.api import ApiError
from leafcast.ask.client import CentreAsks, api_error
from leafcast.ask.remote import checked_answer
from leafcast.centre.centre import Centre
from leafcast.data_dir import DataDir
from leafcast.doctor.findings import Check, Expiry
from leafcast.node.credentials.authorities import (
    AUTHORITY_FILE,
    Authorities,
    load_authorities,
    load_or_make_authorities,
)
from leafcast.node.credentials.certificates import IssuedCertificates, IssuedUnreadable, NameTaken
from leafcast.node.credentials.node_certificate import FOLDER
from leafcast.node.credentials.own_certificate import check_files
from leafcast.node.listen_settings import ListenRefused, kept_listen_settings
from relay.adapters.tls.authority import (
    CERTIFICATE_DAYS,
    RENEWED_AFTER,
    RequestRefused,
    requested_names,
    valid_from,
    valid_until,
)
from relay.adapters.tls.refusals import CertificateUnusable
from relay.ports import BusBroken, Clock
from relay.shell.asker import AskFailed
from schemas.records.asks import CERTIFY, NODE
from schemas.values.identity import NodePath

LOOK_SECONDS = 600.0

log = logging.getLogger("leafcast")
DAY_MS = 86_400_000
LATE_MS = DAY_MS
"""A certificate of ours is told of when its renewal is so late."""


class CertificateRenewal:
    """The centre's part: signs for the names that a node had, and for no others."""

    def __init__(self, centre: Centre, asks: CentreAsks, place: DataDir, clock: Clock) -> None:
        self._centre = centre
        self._asks = asks
        self._place = place
        self._clock = clock

    async def run(self) -> None:
        """Renew what is due, without end."""
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            try:
                await self.renew_due(self._clock.now().wall_ms)
            except (BusBroken, OSError, IssuedUnreadable) as error:
                log.warning("certificates are not renewed now: %s", error)

    async def renew_due(self, now_ms: int) -> list[NodePath]:
        """Renew what is due at that time; whose certificates are new."""
        issued, renewed = IssuedCertificates(self._place.folder), list[NodePath]()
        if not issued.renewals():
            return renewed
        known = {str(node.path) for node in nodes(self._centre.issuer())} | {str(NodePath())}
        issued.forget_others(known)
        signer = self._authorities().signing.certificate
        for path in dict.fromkeys([*issued.due(now_ms, signer), *issued.awaited()]):
            try:
                if await self._renew(path, issued, now_ms):
                    renewed.append(path)
                    log.info("the server of %s has a new certificate", path)
            except (AskFailed, RequestRefused) as error:
                log.warning("the certificate of %s is not renewed yet: %s", path, error)
        return renewed

    async def _renew(self, path: NodePath, issued: IssuedCertificates, due_ms: int) -> bool:
        """Whether what it shows was due, by what it says of that now, and is renewed.

        Raises AskFailed, RequestRefused or BusBroken.
        """
        answer = checked_answer(path, await self._asks.ask_signed(path, NODE, {}))
        request, found = answer["certificateRequest"], self._authorities()
        names = issued.settled(path, requested_names(request))
        if path not in issued.due(due_ms, found.signing.certificate):
            return False
        made = found.signing.issue(request, self._clock.now().wall_ms, names=names)
        await self._give_certificate(path, made, found.believed)
        issued.keep(path, names, made, found.signing.certificate)
        return True

    async def first(self, path: NodePath, request: str) -> str:
        """Give a relay its first certificate, for the names that it asks for: who signed it.

        "" if it has one. Raises ApiError or BusBroken.
        """
        try:
            return await self._first(path, request)
        except (RequestRefused, NameTaken) as error:
            remedy = "start that relay with another --listen, and add nodes below it then"
            raise ApiError("Invalid", f"the certificate of {path}: {error}", remedy) from error
        except IssuedUnreadable as error:
            raise ApiError("Failed", error.reason, error.remedy) from error
        except AskFailed as failed:
            raise api_error(failed.fault) from failed

    async def _first(self, path: NodePath, request: str) -> str:
        if not request:
            return ""
        issued, names = IssuedCertificates(self._place.folder), requested_names(request)
        issued.settled(path, names)
        if set(issued.shown_by(path)) == set(names):
            return ""
        here = kept_listen_settings(self._place.folder)
        issued.check(path, names, here.hosts if here is not None else ())
        found = self._authorities()
        made = found.signing.issue(request, self._clock.now().wall_ms)
        await self._give_certificate(path, made, found.believed)
        issued.keep(path, names, made, found.signing.certificate)
        return found.believed

    def _authorities(self) -> Authorities:
        now_ms = self._clock.now().wall_ms
        return load_or_make_authorities(self._place.folder, self._centre.tree_id(), now_ms)

    async def _give_certificate(self, path: NodePath, certificate: str, authorities: str) -> None:
        said = {"certificate": certificate, "authority": authorities}
        await self._asks.ask_signed(path, CERTIFY, said)


def certificates(place: DataDir) -> Iterator[Expiry]:
    """The tree's authority, what that signed for nodes elsewhere, and the user's own."""
    ends = "no node believes the servers of this tree any more"
    yield from _read(
        place.folder / FOLDER / AUTHORITY_FILE,
        "the tree's certificate authority",
        ends,
        "replace it: leafcast keys rotate authority",
    )
    with suppress(ListenRefused):
        said = kept_listen_settings(place.folder)
        if said is not None and said.certificate:
            remedy = "put a new one in its place: it is read within a minute"
            cause = "nodes elsewhere do not reach this tree any more"
            yield from _read(Path(said.certificate), said.certificate, cause, remedy)
        if said is not None and said.authorities:
            remedy = "put the next one into that file, start the tree again, and make new tokens"
            yield from _read(Path(said.authorities), said.authorities, ends, remedy)
    left_ms = int(CERTIFICATE_DAYS * (1 - RENEWED_AFTER) * DAY_MS)
    renewals = dict[str, int]()
    with suppress(IssuedUnreadable):
        renewals = IssuedCertificates(place.folder).renewals()
    for path, due_ms in renewals.items():
        until = due_ms + left_ms
        yield Expiry(
            f"the certificate of {path}",
            until - 2 * (left_ms - LATE_MS),
            until,
            "it could not be renewed over the tree; children elsewhere will not reach it",
            f"see whether {path} is up, and what daemon.log says of its certificate",
            about=path,
        )


def troubles(place: DataDir, now_ms: int) -> Iterator[Check]:
    """What waits for somebody before certificates are all as they should be."""
    yield from _own_files(place, now_ms)
    try:
        IssuedCertificates(place.folder)
    except IssuedUnreadable as error:
        cause = "it was damaged; no certificate of a node elsewhere is renewed"
        yield Check("Certificates", "failure", error.reason, cause, error.remedy)
    found = load_authorities(place.folder)
    if found is not None and found.changing:
        yield Check(
            "Certificates",
            "warning",
            "another certificate authority takes the place of the tree's, and waits",
            "nodes are away that must be told of it, or get a certificate of it, first",
            "leafcast keys rotate authority names them; with --force it waits for nobody",
        )


def _own_files(place: DataDir, now_ms: int) -> Iterator[Check]:
    """Files of the user's that no server can show."""
    cause = "servers go on with what they had, and no start can use it"
    try:
        if (said := kept_listen_settings(place.folder)) is not None:
            check_files(said, now_ms)
    except ListenRefused:
        return
    except CertificateUnusable as error:
        reason = f"{error.what}: {error.reason}"
        yield Check("Certificates", "failure", reason, cause, error.remedy)


def _read(file: Path, what: str, cause: str, remedy: str) -> Iterator[Expiry]:
    """A certificate in a file; nothing if there is none that can be read."""
    with suppress(OSError, ValueError):
        text = file.read_text(encoding="utf-8")
        yield Expiry(what, valid_from(text), valid_until(text), cause, remedy)
