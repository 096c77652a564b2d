"""A whole tree on paper: for each node the files that its nats-server and its `leafcast run` need.

Nothing is started. Every server's configuration has its children already, so none is reloaded when
the tree comes up.
"""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from urllib.parse import urlsplit

from controllers.issuing.keys import CentreKeys, load_or_make_keys
from controllers.issuing.node_credentials import NodeCredentials
from leafcast.centre.planned_nodes import PlannedNode, plan_nodes
from leafcast.data_dir import DataDir
from leafcast.local.views import TreeShape
from leafcast.node.credentials.account_seeds import account_seeds
from leafcast.node.credentials.authorities import load_or_make_authorities
from leafcast.node.credentials.certificates import IssuedCertificates
from leafcast.node.credentials.files import keep_credentials
from leafcast.node.credentials.node_certificate import FOLDER, NodeCertificate
from leafcast.node.known_children import KnownChildren
from leafcast.node.run_config import (
    FILE,
    RunConfig,
    ServerForm,
    TlsForm,
    write_run_config,
    written_run_config,
)
from leafcast.pinned_roots import roots_form
from leafcast.space_settings import CentreSpaces
from relay.adapters.server.external_server import ExternalServer
from relay.adapters.server.nats_config import Neighbours
from relay.adapters.server.nkey_pairs import entrance_pair, new_user_nkey
from relay.atomic_file import make_folder
from relay.ports import Dice
from schemas.values.faults import Unusable
from schemas.values.identity import NodePath, random_id

CLIENT_PORT, LEAF_PORT = 4222, 7422
_TLS = TlsForm(
    certificate=Path(FOLDER, "certificate.pem"),
    key=Path(FOLDER, "key.pem"),
    authorities=Path(FOLDER, "authorities.pem"),
)


class LaidOutOtherwise(Unusable):
    """A folder in which a tree lies that is not the one asked for; says what to do."""


def check_laid_out(place: DataDir, host: str, spaces: CentreSpaces | None) -> None:
    """Refuse to take what was written for another host of the centre, or for other spaces.

    "" and None stand for any. Raises LaidOutOtherwise, and RunConfigRefused for a damaged file.
    """
    folder = place.node(NodePath())
    file = folder / FILE
    if not file.exists():
        return
    found = written_run_config(file)
    former = urlsplit(found.server.leaf_url).hostname or ""
    if host not in ("", former):
        reason = f"it was laid out for host {former}, not {host}, and its nodes dial {former}"
        remedy = f"say --host {former} (listen.host in the chart), or begin a tree in a new folder"
        raise LaidOutOtherwise(place.folder, reason, remedy)
    if spaces is not None and spaces != (kept := found.centre_spaces(folder)):
        reason = f"it was laid out for {_named(kept)}, not for {_named(spaces)}"
        remedy = (
            f"name that one (hub.secret and hub.key in the chart), or first write the other one "
            f"into workloads and inventory of {file}"
        )
        raise LaidOutOtherwise(place.folder, reason, remedy)


def _named(spaces: CentreSpaces) -> str:
    named = (*spaces.workloads, *spaces.inventory)
    live = " with allow_live_cluster" if spaces.allow_live else ""
    return ", ".join(dict.fromkeys(one.title for one in named)) + live


class Layout:
    """The files of one tree in a data directory; `host` maps a node to its server's host name.

    Servers are shown to each other by certificates of the tree's own authority.
    """

    def __init__(
        self,
        place: DataDir,
        shape: TreeShape,
        host: str,
        dice: Dice,
        spaces: CentreSpaces | None = None,
        *,
        now_ms: int,
        store_key_variable: str = "",
    ) -> None:
        self._place = place
        self._shape = shape
        self._host = host
        self._dice = dice
        # The centre's; the embedded ones unless others are named.
        self._spaces = spaces or CentreSpaces()
        # When the certificates begin.
        self._now_ms = now_ms
        # Under it each server finds the key of its store in its environment; empty for none.
        self._store_key_variable = store_key_variable

    def write(self) -> list[NodePath]:
        """Write them, if they are not there yet; the tree's nodes, parents first."""
        paths = [NodePath(), *chain(*self._shape.tiers())]
        if (self._place.node(NodePath()) / FILE).exists():
            return paths
        keys = load_or_make_keys(self._place.keys, self._dice)
        credentials = {path: self._credentials(path) for path in paths[1:]}
        self._certify(keys, paths)
        # The centre comes last: its file says that all are written.
        for path in reversed(paths):
            self._write_node(path, keys, credentials)
        return paths

    def _certify(self, keys: CentreKeys, paths: list[NodePath]) -> None:
        found = load_or_make_authorities(self._place.folder, keys.tree, self._now_ms)
        authority = found.signing
        issued = IssuedCertificates(self._place.folder)
        for path in paths:
            names = (self._host_of(path),)
            made = NodeCertificate(self._place.node(path), names)
            certificate = made.certified(authority, self._now_ms, found.believed)
            issued.keep(path, names, certificate, authority.certificate)

    def _credentials(self, path: NodePath) -> NodeCredentials:
        fresh = NodeCredentials(path, *new_user_nkey(self._dice.entropy(32)))
        keep_credentials(self._place.node(path), fresh)
        return fresh

    def _write_node(
        self, path: NodePath, keys: CentreKeys, credentials: dict[NodePath, NodeCredentials]
    ) -> None:
        folder = self._place.node(path)
        make_folder(folder)
        config = self._config(path, keys)
        known = KnownChildren(folder)
        for child in credentials.values():
            if child.path.parent == path:
                known.put(child.path.name, child.nkey)
        link = config.parent_link(folder, credentials[path].seed) if config.parent else None
        entrance = "" if self._is_edge(path) else entrance_pair(keys.tree)[1]
        ExternalServer(
            config.server_place(folder),
            path,
            account_seeds(folder, self._dice),
            Neighbours(link, known.nkeys, entrance),
        ).write_config()
        if path.is_root:
            planned = (
                PlannedNode(node.path, node.nkey, self._is_edge(node.path))
                for node in credentials.values()
            )
            plan_nodes(self._place, planned)
        write_run_config(folder / FILE, config)

    def _config(self, path: NodePath, keys: CentreKeys) -> RunConfig:
        spaces = self._spaces if path.is_root else CentreSpaces()
        return RunConfig(
            path=str(path),
            tree=keys.tree,
            **roots_form(keys.roots),
            home="" if path.is_root else random_id(self._dice.entropy(16)),
            parent=None if path.is_root else self._url(path.parent, LEAF_PORT),
            edge=self._is_edge(path),
            workloads=spaces.workloads,
            inventory=spaces.inventory,
            allow_live_cluster=spaces.allow_live,
            parent_authorities=None if path.is_root else _TLS.authorities,
            server=ServerForm(
                url=self._url(path, CLIENT_PORT),
                leaf_url=self._url(path, LEAF_PORT),
                tls=_TLS,
                store_key_variable=self._store_key_variable,
            ),
        )

    def _url(self, path: NodePath, port: int) -> str:
        return f"tls://{self._host_of(path)}:{port}"

    def _host_of(self, path: NodePath) -> str:
        return self._host.format(node="-".join(path.names) or "centre")

    def _is_edge(self, path: NodePath) -> bool:
        return len(path.names) == 2
