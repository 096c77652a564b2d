"""A node's nats-server configuration is `nats/*.conf`, filled in; equal settings give equal text.

An installed Leafcast has the templates beside this module, a checkout has them at its top.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from relay.adapters.server.cluster_settings import ROUTE_USER, ClusterSettings
from relay.adapters.server.leaf_address import LOOPBACK, TlsFiles, is_loopback
from relay.adapters.server.nkey_pairs import check_public_nkey, derived_seed, public_nkey
from relay.adapters.server.store_key import is_variable
from relay.atomic_file import atomic_write
from schemas.values.identity import NodePath

_INSTALLED = Path(__file__).with_name("server_config")
_CHECKOUT = Path(__file__).parents[3] / "nats"
TLS_SCHEMES = frozenset({"tls", "wss"})
WEB_PORTS = {"ws": 80, "wss": 443}
# Only the form in braces is a placeholder: NATS's own subjects begin with a bare dollar sign.
_COMMANDS = b"leafcast commands"
SYNC_ALWAYS = "\n\n  # What is acknowledged is on the disk.\n  sync_interval: always"
_PLACEHOLDER = re.compile(r"\$\{([a-z_]+)\}")


@dataclass(frozen=True, slots=True)
class AccountNkeys:
    """The public user keys of a server's own accounts; two open SPACE."""

    relay: str
    uplink: str
    space: str
    system: str
    # Who has it may ask the centre in SPACE, and no more.
    commands: str


@dataclass(frozen=True, slots=True)
class AccountSeeds:
    """The secret halves: whoever has one acts as that account."""

    relay: str = field(repr=False)
    uplink: str = field(repr=False)
    space: str = field(repr=False)
    system: str = field(repr=False)

    def public(self) -> AccountNkeys:
        """Raises BadNkey if one of them is no user's seed."""
        seeds = (self.relay, self.uplink, self.space, self.system, self.commands)
        return AccountNkeys(*map(public_nkey, seeds))

    @property
    def commands(self) -> str:
        """With which commands ask; it follows from that of SPACE, and not the other way round."""
        return derived_seed(self.space, _COMMANDS)


@dataclass(frozen=True, slots=True)
class ParentRemote:
    """How this server gets to its parent's."""

    # Where the parent listens for leaf links: nats, tls, ws or wss.
    urls: tuple[str, ...]
    # Of our key there.
    seed: str = field(repr=False)
    # This very server's, by which the parent's knows it again; by its path if empty.
    server_name: str = ""
    # A file with the certificates of those who may have signed the parent's. Without it a server on
    # this machine is taken as it is, and any other by the system's authorities.
    authorities: Path | None = None
    # Whether the parent's server is taken whatever it shows.
    unchecked: bool = False
    # An HTTP proxy to go out through (CONNECT), for WebSockets only.
    proxy: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Whom a server links to: its parent, its children, and strangers who ask to be let in.

    `children` are public nkeys by name, `entrance` is the public nkey of strangers; "": none come.
    With `cluster` it is one of the three members of its node.
    """

    parent: ParentRemote | None = None
    children: Mapping[str, str] = field(default_factory=dict)
    entrance: str = ""
    cluster: ClusterSettings | None = None


NO_NEIGHBOURS = Neighbours()


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """All that a server's configuration depends on."""

    path: NodePath
    port: int
    leaf_port: int
    store_dir: Path
    nkeys: AccountNkeys
    parent: ParentRemote | None = None
    # Their public nkeys by name: two with a space between while one is replaced, none ("") while it
    # is revoked.
    children: Mapping[str, str] = field(default_factory=dict)
    # Where it listens for clients.
    host: str = LOOPBACK
    # Where it listens for children; beyond loopback it needs `tls`.
    leaf_host: str = LOOPBACK
    tls: TlsFiles | None = None
    # Of which a proxy on this machine knows.
    websocket_port: int = 0
    # Of this server alone, so that a second one with the same links cuts off neither; "": by path.
    name: str = ""
    # The public nkey with which strangers ask to be let in; "": they cannot.
    entrance: str = ""
    # Where its environment has the key of the store; "": that is not encrypted.
    store_key_variable: str = ""
    # Whether it acknowledges what is on the disk only; else a loss of power may take two minutes.
    durable: bool = False
    # How it reaches the other members of its node; None: it is alone.
    cluster: ClusterSettings | None = None


class BadServerSettings(ValueError):
    """A setting that no server configuration can be made of; names the setting and the rule."""

    def __init__(self, setting: str, rule: str) -> None:
        super().__init__(f"the server setting {setting} is not usable: {rule}")
        self.setting = setting
        self.rule = rule


def render(settings: ServerSettings) -> str:
    """The text of the configuration file; it holds the seed of the parent link, so keep it private.

    Raises BadIdentity, BadNkey or BadServerSettings.
    """
    _check_users(settings, settings.children)
    _check_hosts(settings)
    prefix, web_port = settings.path.prefix, settings.websocket_port
    tls = "" if settings.tls is None else _tls(settings.tls)
    return _fill(
        "node",
        name=_quotable("name", settings.name or settings.path.domain),
        domain=settings.path.domain,
        prefix=prefix,
        host=_quotable("host", settings.host),
        port=str(settings.port),
        client_tls="" if is_loopback(settings.host) else tls,
        leaf_host=_quotable("leaf_host", settings.leaf_host),
        leaf_port=str(settings.leaf_port),
        leaf_tls=tls,
        cluster=_cluster(settings.cluster, settings.path),
        websocket=_fill("websocket", port=str(web_port)) if web_port else "",
        store_dir=_quotable("store_dir", str(settings.store_dir)),
        cipher=_cipher(settings.store_key_variable),
        sync=SYNC_ALWAYS if settings.durable else "",
        # `lc`, then the node's own names, then the child's; NATS counts from 1.
        child_position=str(len(settings.path.names) + 2),
        relay_nkey=settings.nkeys.relay,
        uplink_nkey=settings.nkeys.uplink,
        space_nkey=settings.nkeys.space,
        system_nkey=settings.nkeys.system,
        commands_nkey=settings.nkeys.commands,
        remote=_remote(settings.parent),
        children="".join(
            _fill(
                "child",
                name=settings.path.child(name).name,
                users=",".join(_fill("user", nkey=nkey) for nkey in keys.split()),
                prefix=prefix,
            )
            for name, keys in sorted(settings.children.items())
        ),
        entrance=_fill("entrance", nkey=settings.entrance) if settings.entrance else "",
    )


def write_config(file: Path, settings: ServerSettings) -> None:
    """Render into the file, whole or not at all, readable by the owner only; raises as `render`."""
    atomic_write(file, render(settings), durable=False)


def check_child(settings: ServerSettings, name: str, nkey: str) -> None:
    """Refuse, without the cost of rendering, a child that `render` would refuse; same errors."""
    settings.path.child(name)
    others = {child: key for child, key in settings.children.items() if child != name}
    _check_users(replace(settings, children={}), {name: nkey})
    for key in nkey.split():
        holder = next((child for child, keys in others.items() if key in keys.split()), None)
        if holder is not None:
            raise BadServerSettings(f"nkey of {name}", f"{holder} has the same; make a new one")


def loses_key(before: str, after: str) -> bool:
    """Whether a child's link may be one of a key that it has no more."""
    return not set(before.split()) <= set(after.split())


def _remote(parent: ParentRemote | None) -> str:
    if parent is None:
        return ""
    public_nkey(parent.seed)
    if not parent.urls:
        raise BadServerSettings("parent urls", "there is none; name where the parent listens")
    return _fill(
        "remote",
        urls=", ".join(f'"{_quotable("parent url", _dialled(url))}"' for url in parent.urls),
        seed=parent.seed,
        tls=_remote_tls(parent),
        proxy=_proxy(parent),
    )


def _dialled(url: str) -> str:
    """The URL with its port: without one the server dials 7422, even for a WebSocket.

    Of that it wants no slash at the end, behind which it says what it asks for.
    """
    try:
        parts = urlsplit(url)
        named = parts.port
    except ValueError as error:
        raise BadServerSettings("parent url", f"{url} is no address ({error})") from error
    port = WEB_PORTS.get(parts.scheme)
    if port is None:
        return url
    at = parts.netloc if named is not None else f"{parts.netloc.rstrip(':')}:{port}"
    return parts._replace(netloc=at, path=parts.path.rstrip("/")).geturl()


def check_proxy(proxy: str, urls: Sequence[str]) -> None:
    """Raise BadServerSettings for a way out to these URLs that a server refuses, or goes past."""
    if other := next((url for url in urls if urlsplit(url).scheme not in WEB_PORTS), None):
        # The server would dial it past the proxy, and say nothing of that.
        rule = f"only WebSockets go through one: leave it out, or dial wss:// and not {other}"
        raise BadServerSettings("proxy", rule)
    rule = "it is an HTTP proxy, as in http://proxy.example:3128"
    try:
        parts = urlsplit(proxy)
        port = parts.port
    except ValueError as error:
        raise BadServerSettings("proxy", rule) from error
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise BadServerSettings("proxy", rule)
    if bool(parts.username) != bool(parts.password):
        raise BadServerSettings("proxy", "write both name and password, or none of them")


def _proxy(parent: ParentRemote) -> str:
    """The way out; the server wants name and password apart."""
    if not parent.proxy:
        return ""
    check_proxy(parent.proxy, parent.urls)
    parts = urlsplit(parent.proxy)
    at = _quotable("proxy", parts.netloc.rpartition("@")[2])
    said = [f'url: "{parts.scheme}://{at}"']
    if parts.username:
        for name, text in (("username", parts.username), ("password", parts.password or "")):
            said.append(f'{name}: "{_quoted(f"{name} of proxy", unquote(text))}"')
    return f", proxy: {{ {', '.join(said)} }}"


def _remote_tls(parent: ParentRemote) -> str:
    parts = [urlsplit(url) for url in parent.urls]
    clear = [it for it in parts if it.scheme not in TLS_SCHEMES]
    if away := next((it for it in clear if not is_loopback(it.hostname or "")), None):
        rule = (
            f"{away.scheme}://{away.netloc} is in clear, and leads to another machine; use tls://"
        )
        raise BadServerSettings("parent urls", rule)
    schemes = {it.scheme for it in parts}
    if len(schemes) > 1:
        raise BadServerSettings("parent urls", "a link has one way in: name URLs of one scheme")
    if not schemes <= TLS_SCHEMES:
        return ""
    # Over WebSockets TLS always comes first.
    said = ["handshake_first: true"] if "tls" in schemes else []
    if parent.authorities is not None and not parent.unchecked:
        said.append(f'ca_file: "{_quotable("authorities", str(parent.authorities))}"')
    elif parent.unchecked or all(is_loopback(urlsplit(url).hostname or "") for url in parent.urls):
        said.append("insecure: true")
    return f", tls: {{ {', '.join([*said, 'timeout: 10'])} }}"


def _check_hosts(settings: ServerSettings) -> None:
    """What others reach is for those who can tell whom they reach, and unread on the way."""
    for setting in ("host", "leaf_host"):
        host = getattr(settings, setting)
        if not is_loopback(host) and settings.tls is None:
            rule = f"{host} is reached from elsewhere, which needs a certificate and a key"
            raise BadServerSettings(setting, rule)


def _tls(files: TlsFiles) -> str:
    return _fill(
        "tls",
        certificate=_quotable("certificate", str(files.certificate)),
        key=_quotable("key", str(files.key)),
    )


def _cluster(cluster: ClusterSettings | None, path: NodePath) -> str:
    if cluster is None:
        return ""
    tls = ""
    if cluster.tls is not None:
        files = cluster.tls.files
        tls = _fill(
            "route_tls",
            certificate=_quotable("certificate", str(files.certificate)),
            key=_quotable("key", str(files.key)),
            authorities=_quotable("authorities", str(cluster.tls.authorities)),
        )
    return _fill(
        "cluster",
        name=_quotable("cluster", cluster.cluster_name(path)),
        host=_quotable("host", cluster.host),
        port=str(cluster.port),
        user=ROUTE_USER,
        password=cluster.password,
        tls=tls,
        routes=", ".join(f'"{url}"' for url in cluster.route_urls),
    )


def _cipher(variable: str) -> str:
    if not variable:
        return ""
    if not is_variable(variable):
        rule = "it is the name of an environment variable, as in LEAFCAST_STORE_KEY"
        raise BadServerSettings("store_key_variable", rule)
    return _fill("cipher", variable=variable)


def _check_users(settings: ServerSettings, children: Mapping[str, str]) -> None:
    """A key opens one account; the server would refuse the whole file otherwise."""
    own = settings.nkeys
    users = {"RELAY": own.relay, "UPLINK": own.uplink, "SPACE": own.space, "SYS": own.system}
    users |= {"SPACE's commands": own.commands}
    users |= {"ENROL": settings.entrance} if settings.entrance else {}
    holder: dict[str, str] = {}
    each = [(name, nkey) for name, keys in children.items() for nkey in keys.split()]
    for name, nkey in [*users.items(), *each]:
        check_public_nkey(nkey, name)
        if nkey in holder:
            rule = f"{holder[nkey]} has the same; make a new one"
            raise BadServerSettings(f"nkey of {name}", rule)
        holder[nkey] = name


def _quotable(setting: str, text: str) -> str:
    """What no name, address or path has is refused."""
    if '"' in text:
        raise BadServerSettings(setting, "it has a quotation mark")
    return _quoted(setting, text)


def _quoted(setting: str, text: str) -> str:
    """A text as it stands between quotation marks in the file."""
    if any(ord(character) < 32 or character == "\x7f" for character in text):
        raise BadServerSettings(setting, "it has a control character")
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _fill(template: str, **values: str) -> str:
    return _PLACEHOLDER.sub(lambda match: values[match[1]], _template(template))


@cache
def _template(name: str) -> str:
    folder = _INSTALLED if _INSTALLED.is_dir() else _CHECKOUT
    return (folder / f"{name}.conf").read_text(encoding="utf-8")
