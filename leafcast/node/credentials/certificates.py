"""Certificates of the servers on this machine: who signs them, where they lie, what is due."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from leafcast.node.credentials.authorities import Authorities
from leafcast.node.credentials.node_certificate import FOLDER, NodeCertificate
from leafcast.node.credentials.own_certificate import (
    OwnCertificate,
    Reloadable,
    reload_all,
    renew_in_time,
)
from leafcast.node.listen_settings import ListenSettings
from relay.adapters.server.leaf_address import LOOPBACK, LeafAddress, TlsFiles
from relay.adapters.tls.authority import fingerprint, renewal_ms
from relay.adapters.tls.names import host_form
from relay.atomic_file import atomic_write
from relay.ports import Clock
from schemas.values.codec import from_json
from schemas.values.identity import NodePath


class NameTaken(Exception):
    """A name that belongs to another node; with it one could pass for that."""

    def __init__(self, name: str, holder: NodePath, path: NodePath) -> None:
        whose = "the centre" if holder.is_root else holder
        other = "" if holder.is_root else f", or remove {holder} first"
        super().__init__(
            f"{path} asks for a certificate for {name}, which is {whose}'s; let it listen at a "
            f"name of its own{other}"
        )


class IssuedUnreadable(ValueError):
    """Nobody knows which names are whose, so nothing is signed; says where it stood, what to do."""

    def __init__(self, file: Path, error: Exception) -> None:
        self.reason = f"{file} does not say which names are whose ({error!r})"
        self.remedy = "restore it from a backup, or remove it: who asks first has a name then"
        super().__init__(f"{self.reason}; {self.remedy}")


class IssuedCertificates:
    """What the tree's authority signed for nodes elsewhere: for which names, and until when.

    A name belongs to the first that had a certificate for it, until that node is removed or asks
    for it no more. While a machine takes the place of a member, the node has two certificates: the
    one that it shows, and the one that is to come. Each change begins with what the file says then:
    others may have written it meanwhile. Raises IssuedUnreadable.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / FOLDER / "issued.json"
        self._issued = self._read()

    def names_of(self, path: NodePath) -> tuple[str, ...]:
        """What its certificate is for, and one that is to come; nothing if it never had one."""
        issued = self._issued.get(str(path))
        return tuple(dict.fromkeys(name for it in _each(issued) for name in it.names))

    def shown_by(self, path: NodePath) -> tuple[str, ...]:
        """What the certificate that it shows is for."""
        issued = self._issued.get(str(path))
        return tuple(issued.names) if issued else ()

    def due(self, now_ms: int, authority: str) -> list[NodePath]:
        """Whose certificates are to be renewed: it is time, or another authority signed them."""
        signer = fingerprint(authority)
        return [
            NodePath.parse(path)
            for path, it in self._issued.items()
            if it.due_ms <= now_ms or it.signer != signer
        ]

    def awaited(self, authority: str | None = None) -> list[NodePath]:
        """Who is to show another one; of an authority's own only those that another one signed."""
        signer = fingerprint(authority) if authority is not None else None
        return [
            NodePath.parse(path)
            for path, it in self._issued.items()
            if it.coming is not None and it.coming.signer != signer
        ]

    def renewals(self) -> dict[str, int]:
        """By path, when each is to be renewed."""
        return {path: it.due_ms for path, it in self._issued.items()}

    def check(self, path: NodePath, names: Iterable[str], centre: Iterable[str]) -> None:
        """Refuse names of another node, and those of the centre; raises NameTaken.

        All are in the form of `host_form`, as whoever reads them brings them to it.
        """
        held = {holder: self.names_of(NodePath.parse(holder)) for holder in self._issued}
        for holder, theirs in {**held, str(NodePath()): centre}.items():
            for name in sorted(set(names) & set(theirs) - {LOOPBACK}):
                if holder != str(path):
                    raise NameTaken(name, NodePath.parse(holder), path)

    def settled(self, path: NodePath, asked: Iterable[str]) -> tuple[str, ...]:
        """For which names a node is to have a certificate that asks for these.

        Who asks for what is to come has it by now, and nothing else any more. Raises OSError.
        """
        names, issued = tuple(asked), self._fresh(path)
        if issued is None:
            return names
        if issued.coming is not None and set(issued.coming.names) == set(names):
            issued = issued.coming
            self._write(path, issued)
        return names if names and set(names) <= set(self.names_of(path)) else tuple(issued.names)

    def keep(self, path: NodePath, names: Iterable[str], certificate: str, authority: str) -> None:
        """Write down what was signed, and by whom; raises OSError."""
        issued, before = _signed(names, certificate, authority), self._fresh(path)
        self._write(path, replace(issued, coming=before.coming if before is not None else None))

    def promise(
        self, path: NodePath, names: Iterable[str], certificate: str, authority: str
    ) -> None:
        """Write down what a node is to show once a change of its members is done."""
        coming, before = _signed(names, certificate, authority), self._fresh(path)
        self._write(path, replace(before, coming=coming) if before is not None else coming)

    def withdraw(self, path: NodePath, names: Iterable[str]) -> None:
        """Nothing for these names is to come: their machine takes no place. Raises OSError."""
        issued = self._fresh(path)
        coming = set(issued.coming.names) if issued is not None and issued.coming else set()
        if issued is not None and coming and set(names) <= coming:
            self._write(path, replace(issued, coming=None))

    def forget_others(self, nodes: Container[str]) -> None:
        """Free the names of nodes that are none any more."""
        issued = self._read()
        left = {path: it for path, it in issued.items() if path in nodes}
        if left != issued:
            self._write_all(left)
        self._issued = left

    def _fresh(self, path: NodePath) -> _Issued | None:
        """What the file says of a node now."""
        self._issued = self._read()
        return self._issued.get(str(path))

    def _read(self) -> dict[str, _Issued]:
        try:
            return _read_issued(from_json(self._file.read_bytes()))
        except FileNotFoundError:
            return {}
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise IssuedUnreadable(self._file, error) from error

    def _write(self, path: NodePath, issued: _Issued) -> None:
        self._write_all({**self._issued, str(path): issued})

    def _write_all(self, issued: dict[str, _Issued]) -> None:
        forms = {path: asdict(it) for path, it in issued.items()}
        atomic_write(self._file, json.dumps(forms))
        self._issued = issued


@dataclass(frozen=True, slots=True)
class _Issued:
    names: list[str]
    due_ms: int
    signer: str = ""
    # What it is to show once a change of its members is done.
    coming: _Issued | None = None


def _each(issued: _Issued | None) -> Iterator[_Issued]:
    """What a node shows, and what it is to show."""
    while issued is not None:
        yield issued
        issued = issued.coming


def _signed(names: Iterable[str], certificate: str, authority: str) -> _Issued:
    return _Issued(list(names), renewal_ms(certificate), fingerprint(authority))


def _read_issued(form: Mapping[str, Any]) -> dict[str, _Issued]:
    """By the path of the node; raises ValueError, TypeError, KeyError or AttributeError."""
    return {str(NodePath.parse(path)): _read_one(it) for path, it in form.items()}


def _read_one(form: Mapping[str, Any]) -> _Issued:
    coming = form.get("coming")
    return _Issued(
        [host_form(str(name)) for name in form["names"]],
        int(form["due_ms"]),
        str(form.get("signer", "")),
        # Of one that is to come nothing more is to come.
        _read_one({**coming, "coming": None}) if coming is not None else None,
    )


class LocalListening:
    """How the relays of one program are reached; certificates of the tree's own, or the user's."""

    def __init__(
        self,
        settings: ListenSettings,
        relays: list[NodePath],
        folder_of: Callable[[NodePath], Path],
        authorities: Callable[[], Authorities],
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._places = {path: at for at, path in enumerate(relays)}
        self._folder_of = folder_of
        self._authorities = authorities
        self._clock = clock
        self._own = OwnCertificate(settings) if settings.own_files is not None else None
        # Whose certificate was renewed while its server may run: it shows the one before.
        self._unshown = set[NodePath]()

    def leaf_address(self, path: NodePath) -> LeafAddress | None:
        """How servers of its children dial in; None for a node that has none."""
        if path not in self._places:
            return None
        return self._settings.leaf_address(self._places[path], path, self._files(path))

    def authorities(self) -> str:
        """Whom a child is to believe, as PEM text; "" for the authorities of its system."""
        if self._settings.behind_proxy or self._settings.own_files is not None:
            return self._settings.authorities_text()
        return self._authorities().believed

    async def renew(self, servers: Callable[[], Mapping[NodePath, Reloadable]]) -> None:
        """Renew what is due, and take what the user renewed, under open links; without end."""
        await renew_in_time(lambda: self.renew_now(servers()), self._clock)

    async def renew_now(self, servers: Mapping[NodePath, Reloadable]) -> list[NodePath]:
        """Do it once; whose certificates were renewed.

        Raises CertificateUnusable, ServerFailed, BusBroken, OSError or ValueError.
        """
        if self._settings.behind_proxy:
            return []
        here = {path: servers[path] for path in self._places if path in servers}
        if self._own is not None:
            return await self._own.renew_now(here, self._clock.now().wall_ms)
        self._unshown |= {path for path in here if self._renewed(path)}
        shown = await reload_all({path: here[path] for path in here if path in self._unshown})
        self._unshown -= set(shown)
        return shown

    def _files(self, path: NodePath) -> TlsFiles | None:
        if self._settings.behind_proxy:
            return None
        if (own := self._settings.own_files) is not None:
            return own
        kept = self._certificate(path)
        was_there = kept.there
        if self._renewed(path) and was_there:
            self._unshown.add(path)
        return kept.files

    def _renewed(self, path: NodePath) -> bool:
        own, now_ms = self._certificate(path), self._clock.now().wall_ms
        authorities = self._authorities()
        if not own.due(now_ms, authorities.signing.certificate):
            return False
        own.certified(authorities.signing, now_ms, authorities.believed)
        return True

    def _certificate(self, path: NodePath) -> NodeCertificate:
        return NodeCertificate(self._folder_of(path), self._settings.served_names)
