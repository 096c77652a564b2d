"""Where the servers of this machine are reached from elsewhere, and by which certificates."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from relay.adapters.server.leaf_address import LOOPBACK, LeafAddress, TlsFiles
from relay.adapters.tls.names import host_form, is_host
from relay.atomic_file import atomic_write
from schemas.values.codec import from_json
from schemas.values.identity import NodePath

FILE = "listen.json"
LEAF_PORT = 7422
WEBSOCKET_PORT = 8422
"""Of 127.0.0.1, where a proxy finds the centre; relays below it have those that follow."""
URLS_MAX, PORT_MAX = 8, 65535


NAME_ONE = (
    "name a host as in centre.example or centre.example:7422, or what a proxy serves, as in "
    "wss://centre.example/leaf"
)


class ListenRefused(ValueError):
    """An address that nobody can be told; names it, and says what one looks like."""

    def __init__(self, text: str, reason: str, remedy: str = NAME_ONE) -> None:
        super().__init__(f"{text!r}: {reason}; {remedy}")


@dataclass(frozen=True, slots=True)
class ListenSettings:
    """Where a node listens for children elsewhere."""

    # Of the centre, or of the one relay that joined; all tls, or all wss: then a proxy has the
    # certificate.
    urls: tuple[str, ...]
    # Files of the user's own; "" without.
    certificate: str = ""
    key: str = ""
    # A file with those who signed what children are shown; "" without.
    authorities: str = ""
    # Whether they are those of several members, of which each has some.
    of_members: bool = False

    @property
    def behind_proxy(self) -> bool:
        return urlsplit(self.urls[0]).scheme == "wss"

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names that children call."""
        return tuple(dict.fromkeys(host_form(urlsplit(url).hostname or "") for url in self.urls))

    @property
    def served_names(self) -> tuple[str, ...]:
        """What a certificate is made for: children on this machine call it by its address."""
        return tuple(dict.fromkeys([*self.hosts, LOOPBACK]))

    @property
    def own_files(self) -> TlsFiles | None:
        """The user's own certificate, if there is one."""
        if not self.certificate:
            return None
        return TlsFiles(Path(self.certificate), Path(self.key))

    @property
    def is_others(self) -> bool:
        """Whether it is not the tree's authority that signs what children are shown."""
        return self.behind_proxy or self.own_files is not None

    def authorities_text(self) -> str:
        """Who signed what children are shown, as the user says; "" for the system's authorities."""
        return Path(self.authorities).read_text(encoding="utf-8") if self.authorities else ""

    def leaf_address(self, at: int, path: NodePath, tls: TlsFiles | None) -> LeafAddress:
        """How the relay at this place of those on this machine is reached; the centre is at 0.

        Raises ListenRefused if there is no such port.
        """
        if self.behind_proxy:
            urls = ["/".join([url.rstrip("/"), *path.names]) for url in self.urls]
            return LeafAddress(tuple(urls), WEBSOCKET_PORT + at)
        ports = [(urlsplit(url).port or LEAF_PORT) + at for url in self.urls]
        if max(ports) > PORT_MAX:
            reason = f"the relays here have the ports that follow, up to {max(ports)}"
            raise ListenRefused(self.urls[ports.index(max(ports))], reason, "name a lower port")
        urls = [
            f"tls://{_host(urlsplit(url).hostname or '')}:{port}"
            for url, port in zip(self.urls, ports, strict=True)
        ]
        return LeafAddress(tuple(urls), ports[0], tls)


def listen_settings(
    texts: Sequence[str], certificate: str, key: str, authorities: str
) -> ListenSettings:
    """What the user said, judged; raises ListenRefused."""
    urls = tuple(map(_url, texts))
    if not urls:
        raise ListenRefused("", "there is no address")
    if len(urls) > URLS_MAX:
        raise ListenRefused(texts[URLS_MAX], f"{URLS_MAX} addresses are the most")
    if len({urlsplit(url).scheme for url in urls}) > 1:
        raise ListenRefused(texts[-1], "all addresses of a tree are of one kind")
    found = ListenSettings(urls, certificate, key, authorities)
    if bool(certificate) is not bool(key):
        remedy = "say both --tls-cert and --tls-key"
        raise ListenRefused(certificate or key, "a certificate and its key go together", remedy)
    if authorities and not certificate and not found.behind_proxy:
        remedy = "say --tls-cert and --tls-key, too, or leave out --tls-ca"
        raise ListenRefused(authorities, "the tree's own authority signs here", remedy)
    if found.behind_proxy and certificate:
        remedy = "give it to that, and leave out --tls-cert and --tls-key"
        raise ListenRefused(texts[0], "the proxy there has the certificate", remedy)
    return found


def kept_listen_settings(folder: Path) -> ListenSettings | None:
    """What the last start was told; None if it keeps to this machine. Raises ListenRefused."""
    try:
        form = from_json((folder / FILE).read_bytes())
        files = [str(form[name]) for name in ("certificate", "key", "authorities")]
        found = listen_settings(list(map(str, form["urls"])), *files)
        return replace(found, of_members=bool(form.get("ofMembers")))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise ListenRefused(str(folder / FILE), "it is damaged: say --listen again") from error


def keep_listen_settings(folder: Path, settings: ListenSettings | None) -> None:
    """Remember it for the next start, or (None) that nobody comes from elsewhere."""
    if settings is None:
        (folder / FILE).unlink(missing_ok=True)
        return
    form = {
        "urls": list(settings.urls),
        "certificate": settings.certificate,
        "key": settings.key,
        "authorities": settings.authorities,
        "ofMembers": settings.of_members,
    }
    atomic_write(folder / FILE, json.dumps(form, indent=2) + "\n")


def _url(text: str) -> str:
    whole = text if "://" in text else f"tls://{text}"
    try:
        parts = urlsplit(whole)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ListenRefused(text, str(error)) from error
    if parts.scheme not in ("tls", "wss"):
        raise ListenRefused(text, f"{parts.scheme}:// is in clear, or no way to a server")
    said = whole.strip() != whole or '"' in whole or parts.query or parts.fragment or parts.username
    # Who is told of several addresses finds a comma between them.
    path = "," in parts.path or (parts.scheme == "tls" and parts.path not in ("", "/"))
    if not host or said or path:
        raise ListenRefused(text, "it is no address")
    if not is_host(host):
        raise ListenRefused(text, f"{host!r} is no name or address that a node elsewhere can call")
    if port == 0:
        raise ListenRefused(text, "nothing listens on port 0")
    if parts.scheme == "wss":
        return whole
    return f"tls://{_host(host_form(host))}:{port or LEAF_PORT}"


def _host(name: str) -> str:
    return f"[{name}]" if ":" in name else name
