"""Certificates of nodes elsewhere are renewed over the tree, from the key that stays where it is.

What is due the centre knows from what it signed. A node is asked for a request, and is given what
was signed of it: both are asks, so they pass only to and from the node that they are for.
"""

from __future__ import annotations

import logging

from controllers.issuing.nodes import nodes
from leafcast.ask.api import ApiError
from leafcast.ask.client import CentreAsks, api_error
from leafcast.ask.remote import checked_answer
from leafcast.centre.centre import Centre
from leafcast.data_dir import DataDir
from leafcast.node.credentials.authorities import Authorities, load_or_make_authorities
from leafcast.node.credentials.certificates import IssuedCertificates, IssuedUnreadable, NameTaken
from leafcast.node.listen_settings import kept_listen_settings
from relay.adapters.tls.authority import RequestRefused, requested_names
from relay.ports import BusBroken, Clock
from relay.shell.asker import AskFailed
from schemas.records.asks import CERTIFY, NODE, AskFault
from schemas.values.identity import NodePath

LOOK_SECONDS = 600.0

log = logging.getLogger("leafcast")


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
        for path in issued.due(now_ms, signer):
            try:
                await self._renew(path, issued)
                renewed.append(path)
                log.info("the server of %s has a new certificate", path)
            except (AskFailed, RequestRefused) as error:
                log.warning("the certificate of %s is not renewed yet: %s", path, error)
        return renewed

    async def _renew(self, path: NodePath, issued: IssuedCertificates) -> None:
        """Raises AskFailed, RequestRefused or BusBroken."""
        answer = checked_answer(path, await self._asks.ask_signed(path, NODE, {}))
        if isinstance(answer, AskFault):
            raise AskFailed(answer)
        now_ms, names = self._clock.now().wall_ms, issued.names_of(path)
        found = self._authorities()
        made = found.signing.issue(answer["certificateRequest"], now_ms, names=names)
        await self._give_certificate(path, made, found.believed)
        issued.keep(path, names, made, found.signing.certificate)

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
        issued = IssuedCertificates(self._place.folder)
        if not request or issued.names_of(path) == (names := requested_names(request)):
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
