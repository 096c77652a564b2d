"""Who and where: node paths, tree and key ids, mail keys, generations, destination ids."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from typing import Final, NewType

from schemas.values.refusals import BadIdentity

TreeId = NewType("TreeId", str)
"""26 lowercase base32 characters, random, fixed when a tree is created."""

KeyId = NewType("KeyId", str)
"""26 lowercase base32 characters, names one signing key."""

MailKey = NewType("MailKey", str)
"""One subject token: 32 lowercase base32hex characters, or a reserved `_snapshot`, `_keys`."""

ContentHash = NewType("ContentHash", str)
"""64 lowercase hexadecimal characters: the address of a blob."""

DestinationId = NewType("DestinationId", str)
"""`<inventory space>-mb-<SyncTarget UID>`: who a destination is, wherever it hangs."""

Generation = NewType("Generation", int)
"""Orders all that the centre signs; milliseconds since 1970 or more, below 2**63."""

SNAPSHOT_KEY = MailKey("_snapshot")
KEYS_KEY = MailKey("_keys")

NAME_MAX = 63
DEPTH_MAX = 16
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")
_ID = re.compile(r"[a-z2-7]{26}\Z")
_MAIL_KEY = re.compile(r"[0-9a-v]{32}\Z")
_HEX_DIGITS = "0123456789abcdefghijklmnopqrstuv"
_ID_DIGITS = "abcdefghijklmnopqrstuvwxyz234567"
_HEX_PAIRS = tuple(first + second for first in _HEX_DIGITS for second in _HEX_DIGITS)
_ID_PAIRS = tuple(first + second for first in _ID_DIGITS for second in _ID_DIGITS)
_HASH = re.compile(r"[0-9a-f]{64}\Z")


class NodePath:
    """A place in the tree, as the names from the centre down; the centre is the empty path.

    Its hash is computed once: many tables are keyed by paths. Paths are ordered name by name.
    """

    __slots__ = ("_hash", "names")

    def __init__(self, names: tuple[str, ...] = ()) -> None:
        if len(names) > DEPTH_MAX:
            rule = f"at most {DEPTH_MAX} names"
            raise BadIdentity("node path", "/" + "/".join(names), rule)
        for name in names:
            if not _NAME.match(name):
                rule = f"each name is a DNS label (a-z, 0-9, '-', at most {NAME_MAX} characters)"
                raise BadIdentity("node path", "/" + "/".join(names), rule)
        self.names: Final = names
        self._hash: Final = hash(names)

    def __eq__(self, other: object) -> bool:
        return self.names == other.names if isinstance(other, NodePath) else NotImplemented

    def __lt__(self, other: NodePath) -> bool:
        return self.names < other.names

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        # The hash of a string is another one in each process.
        return NodePath, (self.names,)

    def __repr__(self) -> str:
        return f"NodePath.parse({str(self)!r})"

    @classmethod
    def parse(cls, text: str) -> NodePath:
        """Read `/`, `/emea`, `/emea/store-1`; raises BadIdentity on anything else."""
        if not text.startswith("/"):
            raise BadIdentity("node path", text, "it starts with '/', as in /emea/store-1")
        return _path_of(tuple(text[1:].split("/")) if len(text) > 1 else ())

    def __str__(self) -> str:
        return "/" + "/".join(self.names)

    @property
    def is_root(self) -> bool:
        return not self.names

    @property
    def name(self) -> str:
        """The last name; the centre has none."""
        return self.names[-1] if self.names else ""

    @property
    def parent(self) -> NodePath:
        """The node one step nearer the centre; raises BadIdentity at the centre."""
        if not self.names:
            raise BadIdentity("node path with a parent", "/", "the centre has no parent")
        return _path_of(self.names[:-1])

    @property
    def prefix(self) -> str:
        """The subject prefix that carries authority over this subtree: `lc`, `lc.emea.s1`."""
        return ".".join(("lc", *self.names))

    @property
    def domain(self) -> str:
        """JetStream domain and server name: `lc`, `lc_emea_s1` (names hold no underscore)."""
        return "_".join(("lc", *self.names))

    def child(self, name: str) -> NodePath:
        return _path_of((*self.names, name))

    def holds(self, other: NodePath) -> bool:
        """Whether `other` is this node or lies below it."""
        return other.names[: len(self.names)] == self.names

    def step_towards(self, other: NodePath) -> str | None:
        """The name of the child on the way to `other`; None if it does not lie below."""
        if len(other.names) <= len(self.names) or not self.holds(other):
            return None
        return other.names[len(self.names)]


@lru_cache(maxsize=4096)
def _path_of(names: tuple[str, ...]) -> NodePath:
    """The path of these names, which need not be looked at again; raises BadIdentity."""
    return NodePath(names)


@lru_cache(maxsize=4096)
def mail_key(api: str, space: str, namespace: str, name: str) -> MailKey:
    """Hash the clear key of a record; `api` is `group/Kind` (protocol.md, "Mail key")."""
    digest = hashlib.sha256("\0".join((api, space, namespace, name)).encode()).digest()
    return short_key(digest[:20])


def short_key(raw: bytes) -> MailKey:
    """Render 20 bytes as a mail key."""
    number = int.from_bytes(raw, "big")
    return MailKey("".join([_HEX_PAIRS[(number >> at) & 1023] for at in range(150, -1, -10)]))


def mail_key_bytes(key: MailKey) -> bytes:
    """The 20 bytes of a mail key; raises BadIdentity."""
    if not _MAIL_KEY.match(key):
        raise BadIdentity("mail key", key, "32 characters of base32hex, lowercase")
    return int(key, 32).to_bytes(20, "big")


def check_mail_key(text: str) -> MailKey:
    """Admit a mail key or a reserved one; raises BadIdentity."""
    if text not in (SNAPSHOT_KEY, KEYS_KEY) and not _MAIL_KEY.match(text):
        raise BadIdentity("mail key", text, "32 characters of base32hex, lowercase")
    return MailKey(text)


def random_id(entropy: bytes) -> str:
    """A tree or key id from 16 random bytes."""
    number = int.from_bytes(entropy[:16], "big") << 2
    return "".join([_ID_PAIRS[(number >> at) & 1023] for at in range(120, -1, -10)])


@lru_cache(maxsize=256)
def check_id(text: str, what: str = "tree or key id") -> str:
    """Admit 26 lowercase base32 characters; raises BadIdentity."""
    if not _ID.match(text):
        raise BadIdentity(what, text, "26 characters of base32, lowercase")
    return text


@lru_cache(maxsize=256)
def check_hash(text: str) -> ContentHash:
    """Admit the address of a blob; raises BadIdentity."""
    if not _HASH.match(text):
        raise BadIdentity("content address", text, "64 lowercase hexadecimal characters")
    return ContentHash(text)


def destination_id(space: str, uid: str) -> DestinationId:
    """Who the SyncTarget with this UID in this inventory space is (spec, 2.4)."""
    return DestinationId(f"{space}-mb-{uid}")


def next_generation(last: Generation, now_ms: int) -> Generation:
    """The generation after `last`, no lower than the clock (docs/protocol.md, "Names")."""
    return Generation(max(last + 1, now_ms))
