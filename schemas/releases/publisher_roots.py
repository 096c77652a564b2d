"""The roots of a publisher: which keys may sign releases, and how the roots change by themselves.

A root is TUF metadata of the role `root`: n of m keys of the role `root` sign the next one, and
those of the role `targets` sign releases. A file of a root brings those before it along (`former`),
and a release brings its root along (`root`): so whoever pinned an older one follows step by step,
each root signed by enough keys of the one before. The clock decides nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tuf.api.exceptions import RepositoryError
from tuf.api.metadata import Key, Metadata, Root, Targets
from tuf.api.serialization import DeserializationError

from schemas.releases.release_manifest import (
    MANIFEST_MAX_BYTES,
    OWN_FIELD,
    ReleaseManifest,
    read_manifest,
    signed_part,
)
from schemas.releases.release_refused import ReleaseRefused
from schemas.releases.release_version import check_version, version_order

ROOT_MAX_BYTES = 256 * 1024
ROOTS_MAX = 64
"""So many versions of a publisher's root one file brings."""
KEYS_MAX = 16
ROOT, RELEASES = "root", "targets"
"""Roles of keys, as TUF names them."""
_FORMER, _ROOT_OF = "former", "root"
_GET_ROOT = "get the publisher's root.json anew"
_NAME_ROOT = "name the root.json that the publisher made by `leafcast release root`"


@dataclass(frozen=True, slots=True)
class PublisherRoots:
    """A publisher as a machine pins it: its newest root, and those before."""

    # The newest one last; the versions follow each other.
    files: tuple[Metadata[Root], ...]

    @classmethod
    def parse(cls, data: bytes) -> PublisherRoots:
        """Read a root's file, with each root signed by the one before; raises ReleaseRefused."""
        signed_part(data, "publisher", ROOT_MAX_BYTES, _NAME_ROOT)
        return cls.from_form(json.loads(data))

    @classmethod
    def from_form(cls, form: object) -> PublisherRoots:
        """The same of what its JSON says."""
        if not isinstance(form, dict):
            raise ReleaseRefused("publisher", "it is no root of a publisher", _GET_ROOT)
        former = form.get(_FORMER, [])
        if not isinstance(former, list) or len(former) >= ROOTS_MAX:
            reason = f"`{_FORMER}` is no list of at most {ROOTS_MAX - 1} roots"
            raise ReleaseRefused("publisher", reason, _GET_ROOT)
        newest = {name: said for name, said in form.items() if name != _FORMER}
        files = tuple(read_root(each) for each in [*former, newest])
        roots = cls(files)
        for before, after in pairwise(files):
            _check_follows(before, after)
        _check_signed(files[0].signed, files[0], ROOT)
        return roots

    @classmethod
    def named_by(cls, data: bytes) -> PublisherRoots | None:
        """Whom the file of a release names as its publisher; raises ReleaseRefused."""
        signed_part(data, "release", MANIFEST_MAX_BYTES)
        form = json.loads(data)
        return cls.from_form(form[_ROOT_OF]) if _ROOT_OF in form else None

    @property
    def newest(self) -> Root:
        return self.files[-1].signed

    @property
    def version(self) -> int:
        return self.newest.version

    @property
    def lowest(self) -> str:
        """The lowest version that may still be installed."""
        return lowest_of(self.newest)

    @property
    def form(self) -> dict[str, Any]:
        """What a file says, as `parse` reads it."""
        former = [it.to_dict() for it in self.files[:-1]]
        return {**self.files[-1].to_dict(), _FORMER: former}

    @property
    def data(self) -> bytes:
        return (json.dumps(self.form, indent=1, sort_keys=True) + "\n").encode()

    def followed_by(self, other: PublisherRoots) -> PublisherRoots:
        """The newest roots to which these lead; raises ReleaseRefused if they do not lead there."""
        later = [it for it in other.files if it.signed.version > self.version]
        files = list(self.files)
        for each in later:
            _check_follows(files[-1], each)
            files.append(each)
        return PublisherRoots(tuple(files[-ROOTS_MAX:]))

    def after(self, data: bytes) -> PublisherRoots:
        """The roots to which the file of a release leads from these; raises ReleaseRefused."""
        named = PublisherRoots.named_by(data)
        return self if named is None else self.followed_by(named)

    def verified(self, data: bytes) -> ReleaseManifest:
        """The release in a file, if the publisher signed it and still means it to be installed.

        Raises ReleaseRefused.
        """
        manifest, roots = read_manifest(data), self.after(data)
        file = _read(data, Targets, "release")
        _check_signed(roots.newest, file, RELEASES)
        if version_order(manifest.version) < version_order(roots.lowest):
            reason = f"{manifest.version} is below {roots.lowest}, the lowest that may be installed"
            raise ReleaseRefused("version", reason, "choose a newer release")
        return manifest


def read_root(form: object) -> Metadata[Root]:
    """One root, whoever signed it; raises ReleaseRefused."""
    try:
        data = json.dumps(form).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ReleaseRefused("publisher", f"it is no root: {error}", _GET_ROOT) from error
    file = _read(data, Root, "publisher")
    root = file.signed
    lowest_of(root)
    for role in (ROOT, RELEASES):
        said = root.roles[role]
        lacking = [it for it in said.keyids if it not in root.keys]
        if not 1 <= said.threshold <= len(said.keyids) <= KEYS_MAX or lacking:
            reason = f"{said.threshold} of {len(said.keyids)} keys of role {role} must sign"
            raise ReleaseRefused("publisher", reason, f"name 1 to {KEYS_MAX} keys, and not more")
    if len({_public(key) for key in root.keys.values()}) < len(root.keys):
        raise ReleaseRefused("publisher", "it has a key twice", _GET_ROOT)
    return file


def lowest_of(root: Root) -> str:
    said = root.unrecognized_fields.get(OWN_FIELD)
    lowest = said.get("lowest") if isinstance(said, dict) else None
    return check_version(lowest, "lowest")


def signatures_of(root: Root, file: Metadata[Any], role: str) -> tuple[Sequence[str], int]:
    """The ids of the keys of a role that signed a file, and how many must."""
    found = root.get_verification_result(role, file.signed_bytes, file.signatures)
    return sorted(found.signed), found.threshold


def _read(data: bytes, kind: type[Root] | type[Targets], what: str) -> Metadata[Any]:
    try:
        file: Metadata[Any] = Metadata.from_bytes(data)
    except (DeserializationError, RecursionError) as error:
        raise ReleaseRefused(what, f"it is no TUF metadata: {_first(error)}", _GET_ROOT) from error
    if not isinstance(file.signed, kind):
        remedy = _NAME_ROOT if kind is Root else _GET_ROOT
        raise ReleaseRefused(what, f"it is of the role {file.signed.type!r}", remedy)
    return file


def _check_follows(before: Metadata[Root], after: Metadata[Root]) -> None:
    """Raise ReleaseRefused unless a root is the next one, and both say so by enough keys."""
    old, new = before.signed, after.signed
    if new.version != old.version + 1:
        reason = f"root {new.version} does not follow root {old.version}"
        raise ReleaseRefused("publisher", reason, f"{_GET_ROOT}, with all between")
    _check_signed(old, after, ROOT)
    _check_signed(new, after, ROOT)


def _check_signed(root: Root, file: Metadata[Any], role: str) -> None:
    """Raise ReleaseRefused unless enough keys of a role signed the file."""
    what = "release" if role == RELEASES else f"root {file.signed.version}"
    try:
        signed, threshold = signatures_of(root, file, role)
    except (RepositoryError, ValueError) as error:
        raise ReleaseRefused(what, f"it cannot be verified: {error}", _GET_ROOT) from error
    if len(signed) < threshold:
        by = f"the publisher's root {root.version}"
        reason = f"{len(signed)} of the {threshold} signatures that {by} asks for are there"
        if idle := len(set(file.signatures) & set(root.roles[role].keyids) - set(signed)):
            reason += f", and {idle} that does not hold: it was altered since it was signed"
        raise ReleaseRefused(what, reason, "have the holders of its keys sign it")


def _public(key: Key) -> str:
    return json.dumps(key.keyval, sort_keys=True)


def _first(error: BaseException) -> str:
    return str(error.__cause__ or error)
