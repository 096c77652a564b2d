"""What of a tree's certificates expires, and when, for the doctor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from leafcast.data_dir import DataDir
from leafcast.doctor.findings import Expiry, Trouble
from leafcast.node.credentials.authorities import AUTHORITY_FILE, load_authorities
from leafcast.node.credentials.certificates import IssuedCertificates, IssuedUnreadable
from leafcast.node.credentials.node_certificate import FOLDER
from leafcast.node.credentials.own_certificate import check_files
from leafcast.node.listen_settings import ListenRefused, kept_listen_settings
from relay.adapters.tls.authority import CERTIFICATE_DAYS, RENEWED_AFTER, valid_from, valid_until
from relay.adapters.tls.refusals import CertificateUnusable

DAY_MS = 86_400_000
LATE_MS = DAY_MS
"""A certificate of ours is told of when its renewal is so late."""


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


def troubles(place: DataDir, now_ms: int) -> Iterator[Trouble]:
    """What waits for somebody before certificates are all as they should be."""
    yield from _own_files(place, now_ms)
    try:
        IssuedCertificates(place.folder)
    except IssuedUnreadable as error:
        cause = "it was damaged; no certificate of a node elsewhere is renewed"
        yield Trouble(error.reason, cause, error.remedy, fails=True)
    found = load_authorities(place.folder)
    if found is not None and found.changing:
        yield Trouble(
            "another certificate authority takes the place of the tree's, and waits",
            "nodes are away that must be told of it, or get a certificate of it, first",
            "leafcast keys rotate authority names them; with --force it waits for nobody",
        )


def _own_files(place: DataDir, now_ms: int) -> Iterator[Trouble]:
    """Files of the user's that no server can show."""
    cause = "servers go on with what they had, and no start can use it"
    try:
        if (said := kept_listen_settings(place.folder)) is not None:
            check_files(said, now_ms)
    except ListenRefused:
        return
    except CertificateUnusable as error:
        yield Trouble(f"{error.what}: {error.reason}", cause, error.remedy, fails=True)


def _read(file: Path, what: str, cause: str, remedy: str) -> Iterator[Expiry]:
    """A certificate in a file; nothing if there is none that can be read."""
    with suppress(OSError, ValueError):
        text = file.read_text(encoding="utf-8")
        yield Expiry(what, valid_from(text), valid_until(text), cause, remedy)
