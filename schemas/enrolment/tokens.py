"""Tokens: one line of text with which a node asks to be let in, and what both sides derive of it.

`lc1` and base32 of: the secret (16 bytes), the tree id (16), a pin (16), the path if it is for one
path, and a checksum (4). One that begins with `lcm1` asks to be a member of the node at its path.
From the secret follows an ed25519 key pair: the centre keeps the public half alone, so who reads
what it keeps cannot ask with it. The public half is shown to nobody else,
so that both sides can derive from it the key under which answers travel.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass, field
from functools import cached_property

from nacl.signing import SigningKey

from schemas.records.roots import Roots
from schemas.values.identity import NodePath, TreeId, check_id, random_id
from schemas.values.refusals import BadIdentity, WireRefused
from schemas.values.wire import encode

MARK, MEMBER_MARK = "lc1", "lcm1"
SECRET_BYTES, PIN_BYTES, ID_BYTES = 16, 16, 10
TEXT_MAX = 2_048
"""Above the text of the longest path there can be."""
_CHECK_BYTES = 4
_FIXED_BYTES = SECRET_BYTES + 16 + PIN_BYTES
_DIGIT = re.compile(r"[a-z2-7]\Z")
_TOKEN_ID = re.compile(r"[0-9a-f]{20}\Z")


class TokenRefused(WireRefused):
    """A text that is no token; says what is wrong with it, never the text: it may be a secret."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"the token {reason}; copy the whole line that `leafcast node add` printed"
        )


@dataclass(frozen=True)
class Token:
    """What its holder has: a secret, of which tree, and what its answer is held against."""

    secret: bytes = field(repr=False)
    tree: TreeId
    pin: bytes
    # None if it is for several paths.
    path: NodePath | None = None
    # Whether its holder asks to be one of the machines of that node.
    member: bool = False

    @property
    def text(self) -> str:
        """What is handed over; as good as a password until it is used."""
        path = str(self.path).encode() if self.path else b""
        tree = base64.b32decode(self.tree.upper() + "=" * 6)
        body = self.secret + tree + self.pin + path
        digits = base64.b32encode(body + _checksum(body)).decode()
        return (MEMBER_MARK if self.member else MARK) + digits.rstrip("=").lower()

    @cached_property
    def key(self) -> SigningKey:
        """Signs the requests."""
        return SigningKey(hashlib.sha256(b"leafcast/token-key/1\0" + self.secret).digest())

    @property
    def public(self) -> bytes:
        """What the centre keeps of it."""
        return bytes(self.key.verify_key)

    @property
    def token_id(self) -> str:
        return token_id(self.public)


def read_token(text: str) -> Token:
    """The token that a person typed or pasted; raises TokenRefused."""
    plain = text.strip().lower()
    mark = next((it for it in (MARK, MEMBER_MARK) if plain.startswith(it)), None)
    if mark is None:
        raise TokenRefused(f"begins with {MARK!r}, and this does not")
    digits = plain.removeprefix(mark)
    if len(digits) > TEXT_MAX:
        raise TokenRefused("is far too long")
    odd = next((at for at, digit in enumerate(digits) if not _DIGIT.match(digit)), None)
    if odd is not None:
        at = len(mark) + odd + 1
        raise TokenRefused(f"has letters and the digits 2 to 7 only, and another at place {at}")
    try:
        raw = base64.b32decode(digits.upper() + "=" * (-len(digits) % 8))
    except binascii.Error:
        raise TokenRefused("is cut short, or has a character too many") from None
    body, check = raw[:-_CHECK_BYTES], raw[-_CHECK_BYTES:]
    if len(body) < _FIXED_BYTES:
        raise TokenRefused("is cut short")
    if _checksum(body) != check:
        raise TokenRefused("is mistyped or cut short: its checksum does not fit")
    return _token(body, member=mark == MEMBER_MARK)


def _token(body: bytes, *, member: bool) -> Token:
    secret, rest = body[:SECRET_BYTES], body[SECRET_BYTES:]
    tree, pin, path = rest[:16], rest[16 : 16 + PIN_BYTES], rest[16 + PIN_BYTES :]
    try:
        said = NodePath.parse(path.decode()) if path else None
    except (UnicodeDecodeError, BadIdentity) as error:
        raise TokenRefused(f"names no path ({error})") from error
    if said is None and member:
        raise TokenRefused("names no node of which to be a member")
    if said is not None and said.is_root and not member:
        raise TokenRefused("names the centre, which joins nothing")
    return Token(secret, TreeId(random_id(tree)), pin, said, member)


def token_id(public: bytes) -> str:
    """What a token is called where people and relays see it: 20 hexadecimal characters."""
    return hashlib.sha256(b"leafcast/token-id/1\0" + public).hexdigest()[: 2 * ID_BYTES]


def is_token_id(text: str) -> bool:
    return bool(_TOKEN_ID.match(text))


def answer_key(public: bytes) -> bytes:
    """Under which answers travel: 32 bytes, known to the centre and to the token's holder."""
    return hashlib.sha256(b"leafcast/token-answer/1\0" + public).digest()


def pin_of(tree: TreeId, roots: Roots, authority: bytes) -> bytes:
    """What root keys, and the certificate authority if there is one, are held against."""
    told = [tree, roots, authority]
    return hashlib.sha256(b"leafcast/token-pin/1\0" + encode(told)).digest()[:PIN_BYTES]


def entrance_entropy(tree: TreeId) -> bytes:
    """What the key of a tree's entrance is made of: whoever holds a token of the tree has it.

    It opens an account that can do nothing but ask, and keeps out who knows nothing of the tree.
    """
    return hashlib.sha256(b"leafcast/entrance/1\0" + check_id(tree).encode()).digest()


def _checksum(body: bytes) -> bytes:
    return hashlib.sha256(b"leafcast/token/1\0" + body).digest()[:_CHECK_BYTES]
