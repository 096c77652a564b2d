"""What a joined node keeps of its grant: path, key, its parent's addresses, whom to believe.

The file holds the node's secret key, so it is written for its owner only. Its hash finds damage,
not malice: whoever can alter the file has the key in it anyway. A join bundle of a former release
has the same form.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from leafcast.pinned_roots import roots_form, roots_from
from relay.adapters.server.leaf_address import is_loopback
from relay.adapters.server.nats_config import TLS_SCHEMES
from relay.adapters.server.nkey_pairs import BadNkey, public_nkey
from relay.atomic_file import atomic_write
from schemas.enrolment.enrolment import Grant
from schemas.records.roots import Roots
from schemas.values import codec
from schemas.values.faults import Unusable
from schemas.values.identity import NodePath, TreeId, check_id
from schemas.values.refusals import CodecError

FORMAT = 1
KIND = "leafcast join bundle"
"""As former releases call it, whose folders go on."""
SIZE_MAX_BYTES = 64 * 1024
_DAMAGED = (
    "copy it again as it was, or make a token with `leafcast node add PATH --replace` at the centre"
)


class GrantUnreadable(Unusable):
    """A file that is no kept grant; says which, why, and what to do."""


@dataclass(frozen=True, slots=True)
class KeptGrant:
    """What a node runs with."""

    tree: TreeId
    path: NodePath
    relay: bool
    # Leaf URLs of its parent's servers.
    parents: tuple[str, ...]
    seed: str = field(repr=False)
    # Those in force then.
    roots: Roots = field(hash=False)
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    # The paths at which this very node hung before, the latest last.
    former: tuple[NodePath, ...] = ()
    # The certificates (PEM) of those who may have signed its parent's; "" for the system's own.
    authorities: str = field(default="", repr=False)
    # The id of the token by which it was granted; "" of a bundle.
    token: str = ""
    # Where its parent listens besides, as that said last.
    told: tuple[str, ...] = ()

    @property
    def dialled(self) -> tuple[str, ...]:
        """Where it looks for its parent: nobody vouches for what that told, so the others stay."""
        return tuple(dict.fromkeys((*self.parents, *self.told)))

    def learnt(self, addresses: Sequence[str]) -> KeptGrant:
        """The same, as its parent tells where it listens; in clear to this machine only."""
        parts = urlsplit(self.parents[0])
        told = tuple(it for it in addresses if it not in self.parents and _fits(it, parts))
        return replace(self, told=told) if addresses else self

    def to_text(self) -> str:
        """The file's content, with its hash."""
        form = {
            "kind": KIND,
            "format": FORMAT,
            **asdict(self),
            "path": str(self.path),
            "parents": list(self.parents),
            "told": list(self.told),
            **roots_form(self.roots),
            "labels": dict(self.labels),
            "former": [str(path) for path in self.former],
        }
        return json.dumps({**form, "sha256": _digest(form)}, indent=2) + "\n"


def kept_grant(grant: Grant, seed: str, token: str) -> KeptGrant:
    """What a node keeps that was granted its place by a token (its id), with its own seed."""
    return KeptGrant(
        tree=grant.tree,
        path=grant.path,
        relay=grant.relay,
        parents=grant.parents,
        seed=seed,
        roots=grant.roots,
        labels=grant.labels,
        former=grant.former,
        authorities=grant.authority.decode(errors="replace"),
        token=token,
    )


def write_grant(file: Path, grant: KeptGrant) -> None:
    """Write it whole or not at all, readable by the owner only."""
    atomic_write(file, grant.to_text())


def read_grant(file: Path) -> KeptGrant:
    """Read and check a file; raises GrantUnreadable, whatever it holds."""
    try:
        data = file.read_bytes() if file.stat().st_size <= SIZE_MAX_BYTES else b""
    except FileNotFoundError as error:
        made = f"`leafcast node add PATH -o {file.name}` writes at the centre"
        remedy = f"bring here the token that {made}"
        raise GrantUnreadable(file, "there is no such file", remedy) from error
    except OSError as error:
        remedy = "name the file of a token"
        raise GrantUnreadable(file, error.strerror or str(error), remedy) from error
    try:
        form = codec.from_json(data)
    except CodecError as error:
        raise GrantUnreadable(file, "it is damaged, or holds no token", _DAMAGED) from error
    if not isinstance(form, dict) or form.get("kind") != KIND:
        raise GrantUnreadable(file, "it holds no token", _DAMAGED)
    if form.get("format") != FORMAT:
        reason = f"it has format {form.get('format')!r}, and this program reads {FORMAT}"
        raise GrantUnreadable(file, reason, "join with the version of leafcast that made it")
    said = form.pop("sha256", None)
    try:
        digest, grant = _digest(form), _grant(form)
    except (ValueError, KeyError, TypeError, AttributeError, BadNkey) as error:
        raise GrantUnreadable(file, f"it is damaged: {error}", _DAMAGED) from error
    if said != digest:
        raise GrantUnreadable(file, "it is damaged: its hash does not fit", _DAMAGED)
    return grant


def _grant(form: Mapping[str, Any]) -> KeptGrant:
    seed = form["seed"]
    public_nkey(seed)
    if not form["parents"]:
        raise ValueError("it names no parent")
    return KeptGrant(
        tree=TreeId(check_id(form["tree"], "tree id")),
        path=NodePath.parse(form["path"]),
        relay=bool(form["relay"]),
        parents=tuple(map(str, form["parents"])),
        seed=seed,
        roots=roots_from(form),
        labels={str(key): str(value) for key, value in form["labels"].items()},
        former=tuple(map(NodePath.parse, form.get("former", ()))),
        authorities=str(form.get("authorities", "")),
        token=str(form.get("token", "")),
        told=tuple(map(str, form.get("told", ()))),
    )


def _fits(url: str, granted: SplitResult) -> bool:
    """Whether a link may be dialled there, as it is where it was granted."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    return parts.scheme == granted.scheme and (parts.scheme in TLS_SCHEMES or is_loopback(host))


def _digest(form: Mapping[str, Any]) -> str:
    return hashlib.sha256(codec.canonical(dict(form))).hexdigest()
