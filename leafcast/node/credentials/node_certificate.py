"""The certificate of one node's server: its files, how it is asked for and taken.

What reads certificates takes 12 MB: it is loaded by those who have one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from relay.adapters.server.leaf_address import TlsFiles
from relay.adapters.tls.names import host_form
from relay.atomic_file import atomic_write, make_folder

if TYPE_CHECKING:
    from relay.adapters.tls.authority import Authority

FOLDER = "tls"
NAMES_FILE = "names"
CERTIFICATE_FILES = tuple(
    f"{FOLDER}/{it}" for it in ("certificate.pem", "key.pem", "authorities.pem", NAMES_FILE)
)
"""Beside a server's data."""


@dataclass(frozen=True, slots=True)
class NodeCertificate:
    """One server's key, which stays in its folder, and the certificate that it was given."""

    folder: Path
    names: tuple[str, ...]

    @property
    def files(self) -> TlsFiles:
        place = self.folder / FOLDER
        return TlsFiles(place / "certificate.pem", place / "key.pem")

    @classmethod
    def kept(cls, folder: Path) -> NodeCertificate | None:
        """The one that the tree's authority gave the node of this folder, if it did."""
        try:
            names = (folder / FOLDER / NAMES_FILE).read_text(encoding="utf-8").split()
        except (FileNotFoundError, ValueError):
            return None
        return cls(folder, tuple(map(host_form, names)))

    @property
    def authorities(self) -> Path:
        """Who signs it."""
        return self.folder / FOLDER / "authorities.pem"

    def request(self) -> str:
        """What is to be signed; makes the key if there is none."""
        from relay.adapters.tls import authority  # noqa: PLC0415

        key = self.files.key
        if not key.exists():
            make_folder(key.parent)
            atomic_write(key, authority.new_key())
        return authority.signing_request(key.read_text(encoding="utf-8"), self.names)

    @property
    def there(self) -> bool:
        """Whether it was ever given one, for these names."""
        kept = NodeCertificate.kept(self.folder)
        return kept == self and self.files.certificate.exists()

    def take(self, certificate: str, authorities: str, now_ms: int) -> None:
        """Put it in the place of the one before; raises CertificateUnusable."""
        from relay.adapters.tls.certificate_checks import check_pair  # noqa: PLC0415

        key = self.files.key.read_text(encoding="utf-8")
        check_pair(certificate, key, authorities, self.names, now_ms, "the new certificate")
        self._keep(certificate, authorities)

    def keep(self, key: str, certificate: str, authorities: str) -> None:
        """Have its folder hold these, as PEM text; raises OSError."""
        make_folder(self.files.key.parent)
        atomic_write(self.files.key, key)
        self._keep(certificate, authorities)

    def _keep(self, certificate: str, authorities: str) -> None:
        atomic_write(self.authorities, authorities)
        atomic_write(self.files.certificate, certificate)
        atomic_write(self.folder / FOLDER / NAMES_FILE, "\n".join(self.names))

    def due(self, now_ms: int, authority: str) -> bool:
        """Whether it needs one: there is none, or for other names, or of another authority.

        Or two thirds of its time are over.
        """
        from relay.adapters.tls.authority import renewal_due, signed_by  # noqa: PLC0415

        try:
            text = self.files.certificate.read_text(encoding="utf-8")
            fits = NodeCertificate.kept(self.folder) == self and signed_by(text, authority)
            return renewal_due(text, now_ms) or not fits
        except (FileNotFoundError, ValueError):
            return True

    def certified(self, authority: Authority, now_ms: int, believed: str) -> str:
        """Have it signed right here, for those who believe these; the certificate."""
        made = authority.issue(self.request(), now_ms)
        self.take(made, believed, now_ms)
        return made
