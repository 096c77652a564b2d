"""Where a page is served: to this machine alone, or elsewhere by TLS at names of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from leafcast.ui.access import Address
from relay.adapters.server.leaf_address import TlsFiles, is_loopback
from relay.adapters.tls.names import is_host
from schemas.values.faults import Unusable

LOOPBACK = "127.0.0.1"


class PagePlaceRefused(Unusable):
    """A place where no page is served; says why, and what to do."""

    word = "page at "


@dataclass(frozen=True, slots=True)
class PagePlace:
    """A host and a port to listen at; `names` are those by which browsers come by TLS."""

    host: str = LOOPBACK
    port: int = 0
    names: tuple[str, ...] = ()
    tls: TlsFiles | None = None

    @property
    def is_here(self) -> bool:
        """Whether nobody but this machine reaches it."""
        return is_loopback(self.host)

    def address(self, port: int) -> Address:
        """How browsers say it, once it listens at a port."""
        return Address(self.host, port, self.names, secure=self.tls is not None)


def page_place(
    host: str, port: int, names: Sequence[str], certificate: Path | None, key: Path | None
) -> PagePlace:
    """The place that is named; raises PagePlaceRefused."""
    where = f"{host}:{port}"
    if (certificate is None) is not (key is None):
        raise PagePlaceRefused(where, "a certificate goes with its key", "name both, or none")
    tls = None
    if certificate is not None and key is not None:
        tls = TlsFiles(certificate.absolute(), key.absolute())
    place = PagePlace(host, port, tuple(names), tls)
    if place.tls is None and not place.is_here:
        remedy = "name a certificate and its key, or serve it to this machine, at 127.0.0.1"
        raise PagePlaceRefused(where, "others reach it, and it would be sent in clear", remedy)
    if place.tls is None and names:
        remedy = "leave the names out, or name a certificate for them and its key"
        raise PagePlaceRefused(where, "without a certificate it has no names", remedy)
    if place.tls is not None and not names:
        remedy = "name the one that is in the certificate, such as leafcast.example"
        raise PagePlaceRefused(where, "no name is said by which browsers come", remedy)
    for name in names:
        if not is_host(name):
            remedy = "write it as in leafcast.example, without a scheme and a port"
            raise PagePlaceRefused(where, f"{name!r} is no name of a host", remedy)
    return place


def check_page_certificate(place: PagePlace, now_ms: int) -> None:
    """Refuse a certificate that no browser takes at its names; raises CertificateUnusable."""
    if place.tls is None:
        return
    # Here, as a page of this machine does without the library.
    from leafcast.node.credentials.own_certificate import read_pem  # noqa: PLC0415
    from relay.adapters.tls.certificate_checks import check_pair  # noqa: PLC0415

    files = [str(place.tls.certificate), str(place.tls.key)]
    certificate, key = map(read_pem, files)
    check_pair(certificate, key, "", place.names, now_ms, files[0])
