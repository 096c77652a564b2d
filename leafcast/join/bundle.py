"""Join bundles: one file with all that a new node needs, whose damage, age and origin are noticed.

It holds the node's secret key, so it is written for its owner only and travels as a secret does.
Its hash finds damage, not malice: whoever can alter the file has the key in it anyway. What comes
over the wire later is believed by the root keys that the bundle pins.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from leafcast.pinned_roots import roots_form, roots_from
from relay.adapters.server.nkey_pairs import BadNkey, public_nkey
from relay.atomic_file import atomic_write
from schemas.records.roots import Roots
from schemas.values import codec
from schemas.values.identity import NodePath, TreeId, check_id
from schemas.values.refusals import CodecError

FORMAT = 1
KIND = "leafcast join bundle"
SIZE_MAX_BYTES = 64 * 1024


class BundleRefused(Exception):
    """A file that cannot be joined with; says which, why, and what to do."""

    def __init__(self, file: Path | str, reason: str, remedy: str) -> None:
        super().__init__(f"{file}: {reason}; {remedy}")
        self.file = file
        self.reason = reason
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class Bundle:
    """What a node joins with; times are milliseconds since 1970."""

    tree: TreeId
    path: NodePath
    relay: bool
    # Leaf URLs of its parent's servers.
    parents: tuple[str, ...]
    seed: str = field(repr=False)
    # Those in force then.
    roots: Roots = field(hash=False)
    issued_ms: int
    expires_ms: int
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    # The paths at which this very node hung before, the latest last.
    former: tuple[NodePath, ...] = ()
    # The certificates (PEM) of those who may have signed its parent's; "" for the system's own.
    authorities: str = field(default="", repr=False)

    def to_text(self) -> str:
        """The file's content, with its hash."""
        form = {
            "kind": KIND,
            "format": FORMAT,
            **asdict(self),
            "path": str(self.path),
            "parents": list(self.parents),
            **roots_form(self.roots),
            "labels": dict(self.labels),
            "former": [str(path) for path in self.former],
        }
        return json.dumps({**form, "sha256": _digest(form)}, indent=2) + "\n"


def write_bundle(file: Path, bundle: Bundle) -> None:
    """Write it whole or not at all, readable by the owner only."""
    atomic_write(file, bundle.to_text())


def read_bundle(file: Path) -> Bundle:
    """Read and check a file; raises BundleRefused, whatever it holds."""
    again = "make a new one with `leafcast node add --replace`"
    try:
        data = file.read_bytes() if file.stat().st_size <= SIZE_MAX_BYTES else b""
    except FileNotFoundError as error:
        made = f"`leafcast node add PATH -o {file.name}` writes at the centre"
        remedy = f"bring here what {made}: a token, or with --bundle a bundle"
        raise BundleRefused(file, "there is no such file", remedy) from error
    except OSError as error:
        raise BundleRefused(file, error.strerror or str(error), "name a join bundle") from error
    try:
        form = codec.from_json(data)
    except CodecError as error:
        remedy = f"copy it again as it was, or {again}"
        raise BundleRefused(file, "it is damaged, or no join bundle", remedy) from error
    if not isinstance(form, dict) or form.get("kind") != KIND:
        raise BundleRefused(file, "it is no join bundle", again)
    if form.get("format") != FORMAT:
        reason = f"it has format {form.get('format')!r}, and this program reads {FORMAT}"
        raise BundleRefused(file, reason, "join with the version of leafcast that made it")
    said = form.pop("sha256", None)
    remedy = f"copy it again as it was, or {again}"
    try:
        digest, bundle = _digest(form), _bundle(form)
    except (ValueError, KeyError, TypeError, AttributeError, BadNkey) as error:
        raise BundleRefused(file, f"it is damaged: {error}", remedy) from error
    if said != digest:
        raise BundleRefused(file, "it is damaged: its hash does not fit", remedy)
    return bundle


def check_expiry(file: Path, bundle: Bundle, now_ms: int) -> None:
    """Refuse a bundle that nobody joined with in time; raises BundleRefused."""
    late = now_ms - bundle.expires_ms
    if late > 0:
        reason = f"it expired {_span(late // 1000)} ago"
        remedy = f"make a new one with `leafcast node add {bundle.path} --replace`"
        raise BundleRefused(file, reason, remedy)


def _bundle(form: Mapping[str, Any]) -> Bundle:
    seed = form["seed"]
    public_nkey(seed)
    if not form["parents"]:
        raise ValueError("it names no parent")
    return Bundle(
        tree=TreeId(check_id(form["tree"], "tree id")),
        path=NodePath.parse(form["path"]),
        relay=bool(form["relay"]),
        parents=tuple(map(str, form["parents"])),
        seed=seed,
        roots=roots_from(form),
        issued_ms=int(form["issued_ms"]),
        expires_ms=int(form["expires_ms"]),
        labels={str(key): str(value) for key, value in form["labels"].items()},
        former=tuple(map(NodePath.parse, form.get("former", ()))),
        authorities=str(form.get("authorities", "")),
    )


def _digest(form: Mapping[str, Any]) -> str:
    return hashlib.sha256(codec.canonical(dict(form))).hexdigest()


def _span(seconds: int) -> str:
    for size, name in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds // size} {name}"
    return f"{seconds} s"
