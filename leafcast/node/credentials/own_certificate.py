"""A certificate of the user's own: judged before a server reads it, and taken up when renewed."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from leafcast.node.listen_settings import ListenSettings
from relay.adapters.server.leaf_address import TlsFiles
from relay.adapters.server.logged_process import ServerFailed
from relay.adapters.tls.refusals import CertificateUnusable
from relay.ports import BusBroken, Clock
from schemas.values.identity import NodePath

LOOK_SECONDS = 60.0
"""So often it is looked whether a certificate is due, or the user put another one in its place."""

log = logging.getLogger("leafcast")


class Reloadable(Protocol):
    """A server that reads its certificate again."""

    async def reload(self) -> None: ...


def check_files(settings: ListenSettings, now_ms: int) -> None:
    """Refuse files of the user's that children would not take; raises CertificateUnusable."""
    if not (settings.certificate or settings.authorities):
        return
    # Here, because who brings no files does without the library.
    from relay.adapters.tls.certificate_checks import check_authorities, check_pair  # noqa: PLC0415

    trusted = read_pem(settings.authorities) if settings.authorities else ""
    if trusted:
        check_authorities(trusted, settings.authorities, now_ms)
    if settings.certificate:
        certificate, key = read_pem(settings.certificate), read_pem(settings.key)
        check_pair(certificate, key, trusted, settings.hosts, now_ms, settings.certificate)


def validity(files: TlsFiles) -> dict[str, int]:
    """What a node says of a certificate of the user's own; nothing if it cannot be read."""
    from relay.adapters.tls.authority import valid_from, valid_until  # noqa: PLC0415

    with suppress(OSError, ValueError):
        text = files.certificate.read_text(encoding="utf-8")
        return {"certificateSinceMs": valid_from(text), "certificateUntilMs": valid_until(text)}
    return {}


async def renew_in_time(renew_now: Callable[[], Awaitable[object]], clock: Clock) -> None:
    """Renew what is due now and then, without end."""
    while True:
        await clock.sleep(LOOK_SECONDS)
        try:
            await renew_now()
        except (CertificateUnusable, ServerFailed, BusBroken, OSError, ValueError) as error:
            log.warning("a certificate is not renewed, and will be tried again: %s", error)


async def reload_all(servers: Mapping[NodePath, Reloadable]) -> list[NodePath]:
    """Have servers show what is new; raises ServerFailed or BusBroken."""
    for path, server in servers.items():
        await server.reload()
        log.info("the server of %s has a new certificate", path)
    return list(servers)


class OwnCertificate:
    """Notices that the user put another certificate in the place of the one that servers show.

    They go on with the one before until children would take the new one.
    """

    def __init__(self, settings: ListenSettings) -> None:
        self._settings = settings
        self._shown = self._digest()

    async def renew_now(
        self, servers: Mapping[NodePath, Reloadable], now_ms: int
    ) -> list[NodePath]:
        """Whose servers show another one now.

        Raises CertificateUnusable, ServerFailed, BusBroken or OSError.
        """
        digest = self._digest()
        if digest == self._shown:
            return []
        check_files(self._settings, now_ms)
        renewed = await reload_all(servers)
        self._shown = digest
        return renewed

    def _digest(self) -> bytes:
        files = (Path(self._settings.certificate), Path(self._settings.key))
        return hashlib.sha256(b"".join(file.read_bytes() for file in files)).digest()


def read_pem(file: str) -> str:
    """What a file of the user's says; raises CertificateUnusable."""
    try:
        # What is no text is no certificate either, and is told so by who reads that.
        return Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        remedy = "put it there again, or name another file"
        raise CertificateUnusable(file, error.strerror or str(error), remedy) from error
