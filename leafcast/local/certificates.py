"""Certificates of the servers on this machine: who signs them, where they lie, what is due."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from leafcast.local.listening import Listening
from relay.adapters.server.process import ServerFailed
from relay.adapters.server.reach import LOOPBACK, Reach, TlsFiles
from relay.adapters.tls.authority import (
    Authority,
    new_key,
    renewal_due,
    renewal_ms,
    signing_request,
)
from relay.adapters.tls.checking import check_pair
from relay.atomic_file import atomic_write
from relay.ports import BusBroken, Clock
from schemas.codec import from_json
from schemas.identity import NodePath, TreeId

FOLDER, AUTHORITY_FILE = "tls", "authority.pem"
LOOK_SECONDS = 60.0
"""So often it is looked whether a certificate is due, or the user put another one in its place."""

log = logging.getLogger("leafcast")


class NameTaken(Exception):
    """A name that belongs to another node; with it one could pass for that."""

    def __init__(self, name: str, holder: str, path: NodePath) -> None:
        super().__init__(
            f"{path} asks for a certificate for {name}, which is {holder}'s; let it listen at a "
            f"name of its own, or remove {holder} first"
        )


class Reloadable(Protocol):
    """A server that reads its certificate again."""

    async def reload(self) -> None: ...


def load_or_make_authority(folder: Path, tree: TreeId, now_ms: int) -> Authority:
    """The tree's authority, made at its first use; `folder` is the data directory."""
    place = folder / FOLDER
    certificate, key = place / AUTHORITY_FILE, place / "authority.key"
    try:
        return Authority(certificate.read_text(encoding="utf-8"), key.read_text(encoding="utf-8"))
    except FileNotFoundError:
        made = Authority.make(f"leafcast {tree}", now_ms)
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        atomic_write(key, made.key)
        atomic_write(certificate, made.certificate)
        return made


class IssuedCertificates:
    """What the tree's authority signed for nodes elsewhere: for which names, and until when.

    A name belongs to the first that had a certificate for it, until that node is removed.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / FOLDER / "issued.json"
        try:
            self._issued = _read_issued(from_json(self._file.read_bytes()))
        except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError):
            self._issued = {}

    def names_of(self, path: NodePath) -> tuple[str, ...]:
        """What its certificate is for; nothing if it never had one."""
        issued = self._issued.get(str(path))
        return tuple(issued.names) if issued else ()

    def due(self, now_ms: int) -> list[NodePath]:
        """Whose certificates are to be renewed."""
        return [NodePath.parse(path) for path, it in self._issued.items() if it.due_ms <= now_ms]

    def renewals(self) -> dict[str, int]:
        """By path, when each is to be renewed."""
        return {path: it.due_ms for path, it in self._issued.items()}

    def check(self, path: NodePath, names: Iterable[str]) -> None:
        """Refuse names of another node; raises NameTaken."""
        for holder, issued in self._issued.items():
            for name in set(names) & set(issued.names) - {LOOPBACK}:
                if holder != str(path):
                    raise NameTaken(name, holder, path)

    def keep(self, path: NodePath, names: Iterable[str], certificate: str) -> None:
        """Write down what was signed."""
        issued = _Issued(list(names), renewal_ms(certificate))
        self._write({**self._issued, str(path): issued})

    def forget_others(self, nodes: Container[str]) -> None:
        """Free the names of nodes that are none any more."""
        left = {path: it for path, it in self._issued.items() if path in nodes}
        if left != self._issued:
            self._write(left)

    def _write(self, issued: dict[str, _Issued]) -> None:
        self._issued = issued
        forms = {path: asdict(it) for path, it in issued.items()}
        atomic_write(self._file, json.dumps(forms))


@dataclass(frozen=True, slots=True)
class _Issued:
    names: list[str]
    due_ms: int


def _read_issued(form: Mapping[str, Any]) -> dict[str, _Issued]:
    """By the path of the node; raises ValueError, TypeError, KeyError or AttributeError."""
    return {
        str(NodePath.parse(path)): _Issued(list(map(str, it["names"])), int(it["due_ms"]))
        for path, it in form.items()
    }


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
            names = (folder / FOLDER / "names").read_text(encoding="utf-8").split()
        except (FileNotFoundError, ValueError):
            return None
        return cls(folder, tuple(names))

    @property
    def authorities(self) -> Path:
        """Who signs it."""
        return self.folder / FOLDER / "authorities.pem"

    def request(self) -> str:
        """What is to be signed; makes the key if there is none."""
        key = self.files.key
        if not key.exists():
            key.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            atomic_write(key, new_key())
        return signing_request(key.read_text(encoding="utf-8"), self.names)

    @property
    def there(self) -> bool:
        """Whether it was ever given one, for these names."""
        kept = NodeCertificate.kept(self.folder)
        return kept == self and self.files.certificate.exists()

    def take(self, certificate: str, authority: str, now_ms: int) -> None:
        """Put it in the place of the one before; raises CertificateUnusable."""
        key = self.files.key.read_text(encoding="utf-8")
        check_pair(certificate, key, authority, self.names, now_ms, "the new certificate")
        atomic_write(self.authorities, authority)
        atomic_write(self.files.certificate, certificate)
        atomic_write(self.folder / FOLDER / "names", "\n".join(self.names))

    def due(self, now_ms: int) -> bool:
        """Whether it needs one: there is none, or for other names, or two thirds are over."""
        try:
            text = self.files.certificate.read_text(encoding="utf-8")
            served = (self.folder / FOLDER / "names").read_text(encoding="utf-8").split()
            return renewal_due(text, now_ms) or tuple(served) != self.names
        except (FileNotFoundError, ValueError):
            return True

    def certified(self, authority: Authority, now_ms: int) -> str:
        """Have it signed right here; the certificate."""
        made = authority.issue(self.request(), now_ms)
        self.take(made, authority.certificate, now_ms)
        return made


class LocalListening:
    """How the relays of one program are reached; certificates of the tree's own, or the user's."""

    def __init__(
        self,
        said: Listening,
        relays: list[NodePath],
        folder_of: Callable[[NodePath], Path],
        authority: Callable[[], Authority],
        clock: Clock,
    ) -> None:
        self._said = said
        self._places = {path: at for at, path in enumerate(relays)}
        self._folder_of = folder_of
        self._authority = authority
        self._clock = clock
        self._seen = self._digest()

    def reach(self, path: NodePath) -> Reach | None:
        """How servers of its children dial in; None for a node that has none."""
        if path not in self._places:
            return None
        return self._said.reach(self._places[path], path, self._files(path))

    def authorities(self) -> str:
        """Whom a child is to believe, as PEM text; "" for the authorities of its system."""
        if self._said.behind_proxy or self._said.own_files is not None:
            return self._said.authorities_text()
        return self._authority().certificate

    async def renew(self, servers: Callable[[], Mapping[NodePath, Reloadable]]) -> None:
        """Renew what is due, and take what the user renewed, under open links; without end."""
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            try:
                await self.renew_now(servers())
            except (ServerFailed, BusBroken, OSError, ValueError) as error:
                log.warning("a certificate is not renewed, and will be tried again: %s", error)

    async def renew_now(self, servers: Mapping[NodePath, Reloadable]) -> list[NodePath]:
        """Do it once; whose certificates were renewed."""
        if self._said.behind_proxy:
            return []
        due = [path for path in self._places if path in servers and self._renewed(path)]
        digest = self._digest()
        if digest != self._seen:
            due = [path for path in self._places if path in servers]
        for path in due:
            await servers[path].reload()
            log.info("the server of %s has a new certificate", path)
        self._seen = digest
        return due

    def _files(self, path: NodePath) -> TlsFiles | None:
        if self._said.behind_proxy:
            return None
        if (own := self._said.own_files) is not None:
            return own
        self._renewed(path)
        return self._certificate(path).files

    def _renewed(self, path: NodePath) -> bool:
        own, now_ms = self._certificate(path), self._clock.now().wall_ms
        if self._said.own_files is not None or not own.due(now_ms):
            return False
        own.certified(self._authority(), now_ms)
        return True

    def _certificate(self, path: NodePath) -> NodeCertificate:
        return NodeCertificate(self._folder_of(path), self._said.served_names)

    def _digest(self) -> bytes:
        """Of the user's own files, to see that they were replaced."""
        own = self._said.own_files
        if own is None:
            return b""
        both = own.certificate.read_bytes() + own.key.read_bytes()
        return hashlib.sha256(both).digest()
