"""The files of a publisher: key pairs, and roots and releases that go from holder to holder.

All are JSON; roots and releases are TUF metadata. Whoever holds a key adds a signature, until there
are enough of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nacl.signing import SigningKey
from securesystemslib.signer import Key, Signature, SSlibKey
from tuf.api.metadata import Metadata, Root
from tuf.api.serialization import DeserializationError

from leafcast.key_form import KeyFileRefused, half_key, read_key_form, write_key_pair
from relay.atomic_file import atomic_write_bytes
from schemas.releases.publisher_roots import (
    RELEASES,
    ROOT,
    PublisherRoots,
    read_root,
    signatures_of,
)
from schemas.releases.release_manifest import MANIFEST_MAX_BYTES, signed_part
from schemas.releases.release_refused import ReleaseRefused
from schemas.values.faults import Unusable

PRIVATE, PUBLIC = "leafcast publisher key", "leafcast public publisher key"
FORMER, ROOT_OF = "former", "root"
_KEYGEN = "name a file that `leafcast release keygen` wrote"


class PublisherFileUnusable(Unusable):
    """A file of a publisher that cannot be read or written."""


@dataclass(frozen=True, slots=True)
class PublisherKey:
    """A private key; its id follows from the public half."""

    seed: bytes

    @property
    def public(self) -> Key:
        return public_key(bytes(SigningKey(self.seed).verify_key))

    def signature(self, data: bytes) -> Signature:
        return Signature(self.public.keyid, SigningKey(self.seed).sign(data).signature.hex())


def public_key(public: bytes) -> Key:
    """The public half, as TUF says it."""
    keyid = hashlib.sha256(public).hexdigest()
    return SSlibKey(keyid, "ed25519", "ed25519", {"public": public.hex()})


def write_publisher_key(file: Path, seed: bytes) -> tuple[Key, Path]:
    """Write a new key for its holder, and its public half beside it; raises KeyFileRefused."""
    key = PublisherKey(seed).public
    public = {"kind": PUBLIC, "public_key": key.keyval["public"]}
    return key, write_key_pair(file, {"kind": PRIVATE, "seed": seed.hex()}, public)


def read_publisher_key(file: Path) -> PublisherKey:
    """A private key; raises KeyFileRefused."""
    return read_key_form(file, PRIVATE, _KEYGEN, lambda form: PublisherKey(half_key(form["seed"])))


def read_public_keys(files: Iterable[Path]) -> list[Key]:
    """The public keys of these files; raises KeyFileRefused, also where one comes twice."""
    keys: list[Key] = []
    for file in files:
        key = _read_public_key(file)
        if key in keys:
            raise KeyFileRefused(file, "a file named before has this key", "name each key once")
        keys.append(key)
    return keys


def _read_public_key(file: Path) -> Key:
    """A public key; raises KeyFileRefused."""
    remedy = f"{_KEYGEN}, with .pub"
    return read_key_form(
        file, PUBLIC, remedy, lambda form: public_key(half_key(form["public_key"]))
    )


def read_file(file: Path, bytes_max: int = MANIFEST_MAX_BYTES) -> bytes:
    """What a file holds; raises PublisherFileUnusable."""
    try:
        with file.open("rb") as opened:
            found = opened.read(bytes_max + 1)
    except OSError as error:
        raise PublisherFileUnusable(file, str(error.strerror), "name another file") from error
    if len(found) > bytes_max:
        raise PublisherFileUnusable(file, f"it has more than {bytes_max} bytes", "is it the file?")
    return found


def write_file(file: Path, data: bytes) -> None:
    """Write it whole, readable by its owner; raises PublisherFileUnusable."""
    try:
        atomic_write_bytes(file, data)
    except OSError as error:
        raise PublisherFileUnusable(file, str(error.strerror), "name another file") from error


def file_data(file: Metadata[Any]) -> bytes:
    """The bytes of a root's or a release's file."""
    return (json.dumps(file.to_dict(), indent=1, sort_keys=True) + "\n").encode()


@dataclass(frozen=True, slots=True)
class Signable:
    """A root or a release, signed or not yet, and by whose keys it is to be signed."""

    file: Metadata[Any]
    # Roots that must agree, each with the role of keys that does.
    asked: tuple[tuple[Root, str], ...]

    @classmethod
    def parse(cls, data: bytes) -> Signable:
        """Read it, whoever signed it; raises ReleaseRefused."""
        signed_part(data, "file", MANIFEST_MAX_BYTES)
        form = json.loads(data)
        try:
            file: Metadata[Any] = Metadata.from_bytes(data)
        except (DeserializationError, RecursionError) as error:
            why = f"it is neither a root nor a release: {error.__cause__ or error}"
            raise ReleaseRefused("file", why, "name what `leafcast release` wrote") from error
        if isinstance(file.signed, Root):
            former = form.get(FORMER) or []
            own = (read_root(form).signed, ROOT)
            if not isinstance(former, list) or not former:
                return cls(file, (own,))
            return cls(file, ((read_root(former[-1]).signed, ROOT), own))
        if ROOT_OF not in form:
            raise ReleaseRefused("file", "it names no root", "make it with `leafcast release make`")
        return cls(file, ((PublisherRoots.from_form(form[ROOT_OF]).newest, RELEASES),))

    def signed_by(self, key: PublisherKey) -> Signable:
        """With a signature more; raises ReleaseRefused if nobody asks for that key."""
        keyid = key.public.keyid
        if not any(keyid in root.roles[role].keyids for root, role in self.asked):
            raise ReleaseRefused("key", f"no root names {keyid[:12]} for this", "use another key")
        self.file.signatures[keyid] = key.signature(self.file.signed_bytes)
        return self

    def lacks(self) -> Iterator[str]:
        """What is lacking still, for people; nothing if enough have signed."""
        for root, role in self.asked:
            signed, threshold = signatures_of(root, self.file, role)
            if len(signed) < threshold:
                said = "releases" if role == RELEASES else "roots"
                yield f"{threshold - len(signed)} of the keys for {said} of root {root.version}"
