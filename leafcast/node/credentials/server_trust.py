"""The certificate that a node's server shows, and who is believed on both sides of it."""

from __future__ import annotations

from enum import Enum, auto

from leafcast.node.certificate_lists import overlap
from leafcast.node.credentials.node_certificate import NodeCertificate
from leafcast.node.options import Listening, NodeIdentity, ParentAccess
from relay.adapters.server.external_server import ServerPlace
from relay.atomic_file import atomic_write


class ServerStep(Enum):
    """What the server is to do, that it shows and believes what lies in the files."""

    NOTHING = auto()
    RELOAD = auto()
    LISTEN = auto()
    """With its first certificate it lets children in from elsewhere."""


class ServerTrust:
    """Takes certificates and lists of authorities, and knows those of one node.

    `authorities` are whom its children are to believe: PEM text, "" for their system's.
    """

    def __init__(
        self, identity: NodeIdentity, serving: Listening | ServerPlace, uplink: ParentAccess | None
    ) -> None:
        self._uplink = uplink
        if isinstance(serving, ServerPlace):
            self.certificate = NodeCertificate.kept(identity.folder)
            self.authorities = serving.authorities_text()
            self._listens = False
            return
        self.certificate, self.authorities = serving.certificate, serving.authorities
        self._listens = serving.leaf_address is not None
        if self.certificate is not None and self.certificate.there:
            self.authorities = self.certificate.authorities.read_text(encoding="utf-8")

    @property
    def awaits_certificate(self) -> bool:
        """Whether no certificate has come yet, without which children elsewhere cannot come in."""
        return self.certificate is not None and not self.certificate.there

    def request(self) -> str:
        """What the tree's authority is to sign anew; "" if it signs nothing for this server."""
        return self.certificate.request() if self.certificate is not None else ""

    def take(self, certificate: str, authorities: str, now_ms: int) -> ServerStep:
        """Take them up, as PEM text; without a certificate only the authorities change.

        With a certificate the node must have one of the tree's. Raises CertificateUnusable or
        OSError.
        """
        own, is_first = self.certificate, self.awaits_certificate
        is_changed = self._believe_at_parent(authorities)
        if certificate and own is not None:
            own.take(certificate, authorities, now_ms)
            self.authorities = authorities
            return ServerStep.LISTEN if is_first and self._listens else ServerStep.RELOAD
        if overlap(self.authorities, authorities):
            if own is not None:
                atomic_write(own.authorities, authorities)
            self.authorities = authorities
        return ServerStep.RELOAD if is_changed else ServerStep.NOTHING

    def _believe_at_parent(self, authorities: str) -> bool:
        """Go over to another list, if it comes of the one believed now; whether it is another."""
        file = self._uplink.link.authorities if self._uplink is not None else None
        if self._uplink is None or file is None:
            return False
        before = file.read_text(encoding="utf-8")
        if before == authorities or not overlap(before, authorities):
            return False
        self._uplink.keep_authorities(authorities)
        atomic_write(file, authorities)
        return True
