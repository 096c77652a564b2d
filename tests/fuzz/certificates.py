"""Certificates, requests and what is written down of them: read, or refused by name."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from leafcast.node.credentials.authorities import load_or_make_authorities
from leafcast.node.credentials.certificates import (
    IssuedCertificates,
    IssuedUnreadable,
)
from leafcast.node.credentials.node_certificate import NodeCertificate
from leafcast.node.listen_settings import ListenRefused, kept_listen_settings
from relay.adapters.server.link_trouble import cause_of, trouble_of
from relay.adapters.tls.authority import (
    Authority,
    RequestRefused,
    new_key,
    requested_names,
    signing_request,
)
from relay.adapters.tls.certificate_checks import check_pair
from relay.adapters.tls.refusals import CertificateUnusable
from schemas.values.identity import NodePath
from tests.fuzz.files import file, folder
from tests.fuzz.target import Target

NOW_MS = 1_800_000_000_000
TREE = Authority.make("leafcast tree", NOW_MS)
KEY = new_key()
REQUEST = signing_request(KEY, ["centre.example", "10.0.0.7"])
CERTIFICATE = TREE.issue(REQUEST, NOW_MS)


def requested(data: bytes) -> None:
    """Anyone may send a request."""
    with suppress(RequestRefused):
        text = data.decode(errors="replace")
        requested_names(text)
        TREE.issue(text, NOW_MS)


def paired(data: bytes) -> None:
    """A person may name any file."""
    text = data.decode(errors="replace")
    for certificate, key, authorities in (
        (text, KEY, TREE.certificate),
        (CERTIFICATE, text, TREE.certificate),
        (CERTIFICATE, KEY, text),
    ):
        with suppress(CertificateUnusable):
            check_pair(certificate, key, authorities, ["centre.example"], NOW_MS, "it")


def issued(at: Path) -> None:
    """What the centre wrote down of its own, damaged."""
    place = folder() / "tls"
    place.mkdir(exist_ok=True)
    (place / "issued.json").write_bytes((at / "issued.json").read_bytes())
    try:
        found = IssuedCertificates(folder())
    except IssuedUnreadable:
        return
    for path in found.due(NOW_MS, TREE.certificate):
        found.names_of(path)
    found.keep(NodePath.parse("/emea"), ["emea.example"], CERTIFICATE, TREE.certificate)


def owned(data: bytes) -> None:
    """What a node keeps of its certificate, damaged."""
    place = folder() / "tls"
    place.mkdir(exist_ok=True)
    own = NodeCertificate(folder(), ("centre.example",))
    own.files.key.write_text(KEY)
    own.take(CERTIFICATE, TREE.certificate, NOW_MS)
    own.files.certificate.write_bytes(data)
    (place / "names").write_bytes(data)
    assert own.due(NOW_MS, TREE.certificate) in (True, False)
    assert own.there in (True, False)
    own.certified(TREE, NOW_MS, TREE.certificate)
    assert not own.due(NOW_MS, TREE.certificate)
    load_or_make_authorities(folder(), "t" * 26, NOW_MS)  # type: ignore[arg-type]


def logged(data: bytes) -> None:
    """A server's log has what others said to it."""
    lines = data.decode(errors="replace").splitlines()
    assert isinstance(trouble_of(lines), str)
    assert len(cause_of(lines)) == 2


LISTEN = {"urls": ["tls://a.example:7422"], "certificate": "", "key": "", "authorities": ""}
ISSUED = {"/emea": {"names": ["emea.example"], "due_ms": 7}}
TARGETS = {
    "listening": file("listen.json", kept_listen_settings, ListenRefused, LISTEN),
    "issued": file("issued.json", issued, (), ISSUED),
    "request": Target(requested, lambda: [REQUEST.encode()]),
    "certificate": Target(paired, lambda: [CERTIFICATE.encode(), KEY.encode()]),
    "own certificate": Target(owned, lambda: [CERTIFICATE.encode(), b"centre.example"]),
    "server log": Target(logged, lambda: [b"[ERR] proxy CONNECT failed: 403 Forbidden"]),
}
