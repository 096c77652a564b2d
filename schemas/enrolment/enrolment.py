"""What a node that asks to be let in says, and what it is answered.

A request is signed with the key that follows from the token, so the centre knows who asks; whoever
sees it cannot make another of it. The key that is asked with signs it, too: nobody asks with the
public half of another's. An answer travels sealed under a key that only the centre and the
token's holder can derive: nobody on the way can make one up, or read it. What cannot be answered
so, because no token is known, is told in a word in clear, for which no one vouches.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from nacl.exceptions import BadSignatureError, CryptoError
from nacl.secret import SecretBox
from nacl.signing import VerifyKey

from schemas.enrolment.tokens import Token, answer_key, is_token_id, pin_of, token_id
from schemas.records.roots import Roots, check_pinned
from schemas.values.identity import NodePath, TreeId
from schemas.values.nkey_signing import nkey_signature, nkey_signed
from schemas.values.refusals import RecordRefused
from schemas.values.wire import Natural, WireRecord, decode, encode

REQUEST_MAX_BYTES = 8 * 1024
ANSWER_MAX_BYTES = 64 * 1024
HOST_NAME_MAX = 64
CERTIFICATE_REQUEST_MAX_BYTES = 4 * 1024
VERSION = 1

PENDING, GRANTED, DENIED, REFUSED = "pending", "granted", "denied", "refused"
STATES = frozenset({PENDING, GRANTED, DENIED, REFUSED})
UNKNOWN_TOKEN, NO_WAY_UP, UNREADABLE = "UnknownToken", "NoWayUp", "Unreadable"
PLAIN_WORDS = frozenset({"", UNKNOWN_TOKEN, NO_WAY_UP, UNREADABLE})


class JoinRequest(WireRecord, frozen=True):
    """Who wants to be the node at a path; all of it is public, the private halves never travel."""

    path: NodePath
    nkey: str
    # What the machine calls itself, for people.
    host_name: str = ""
    # A PKCS#10 request (DER), or empty.
    certificate_request: bytes = b""

    def __post_init__(self) -> None:
        if self.path.is_root:
            raise ValueError("the centre joins nothing")
        if (
            len(self.nkey) > 64
            or len(self.host_name) > HOST_NAME_MAX
            or not self.host_name.isprintable()
        ):
            raise ValueError("its texts are too long, or not printable")
        if len(self.certificate_request) > CERTIFICATE_REQUEST_MAX_BYTES:
            raise ValueError("its certificate request is too long")


class SignedRequest(WireRecord, frozen=True):
    """A request (`payload`), and by which token it is made."""

    version: Natural
    token: str
    payload: bytes
    signature: bytes
    # By the nkey that is asked with.
    proof: bytes = b""

    def __post_init__(self) -> None:
        if self.version != VERSION:
            raise ValueError(f"it has version {self.version}, and this program reads {VERSION}")
        if not is_token_id(self.token):
            raise ValueError("it names no token")

    @property
    def digest(self) -> bytes:
        """Which request this is, for its answer."""
        return hashlib.sha256(self.payload).digest()

    def verified(self, tree: TreeId, public: bytes) -> JoinRequest | None:
        """What is asked, if the token's holder asks it of this tree; raises RecordRefused."""
        if not self.is_by(tree, public):
            return None
        return decode(JoinRequest, self.payload, REQUEST_MAX_BYTES)

    def is_by(self, tree: TreeId, public: bytes) -> bool:
        """Whether the holder of the token with this public key asks it of this tree."""
        if token_id(public) != self.token:
            return False
        try:
            VerifyKey(public).verify(_signed(tree, self.token, self.payload), self.signature)
        except (BadSignatureError, ValueError, TypeError):
            return False
        return True

    def holds(self, tree: TreeId, nkey: str) -> bool:
        """Whether who asks has the private half of the nkey, too."""
        return nkey_signed(nkey, _proven(tree, self.token, self.payload), self.proof)


class Grant(WireRecord, frozen=True):
    """What a node needs besides its own keys to be the one at a path."""

    tree: TreeId
    path: NodePath
    relay: bool
    parents: tuple[str, ...]
    # Those that the token pins, and PEM, "" without TLS.
    roots: Roots
    authority: bytes
    labels: Mapping[str, str]
    former: tuple[NodePath, ...] = ()
    # What became of the certificate request (PEM); empty if there was none.
    certificate: bytes = b""

    def __post_init__(self) -> None:
        check_pinned(self.roots)
        if not self.parents:
            raise ValueError("it names no parent")
        try:
            self.authority.decode("ascii")
        except UnicodeDecodeError as error:
            raise ValueError("its authority is no PEM text") from error

    def fits(self, token: Token) -> bool:
        """Whether it is of the tree, for the path, and has the keys, that the token pins."""
        pin = pin_of(self.tree, self.roots, self.authority)
        return self.tree == token.tree and pin == token.pin and token.path in (None, self.path)


class JoinAnswer(WireRecord, frozen=True):
    """What became of a request: a state, why, what to do, and when to ask again (seconds)."""

    state: str
    digest: bytes
    reason: str = ""
    remedy: str = ""
    again_seconds: Natural = 0
    grant: Grant | None = None

    def __post_init__(self) -> None:
        if self.state not in STATES or (self.state == GRANTED) != (self.grant is not None):
            raise ValueError("its state is none, or does not fit what it grants")


class SealedAnswer(WireRecord, frozen=True):
    """An answer on its way, or the word that says why there is none."""

    version: Natural
    sealed: bytes
    word: str = ""

    def __post_init__(self) -> None:
        if self.version != VERSION or self.word not in PLAIN_WORDS:
            raise ValueError("its version or its word is unknown")


@dataclass(frozen=True, slots=True)
class NoAnswer(Exception):
    """There is no answer of the centre; the word says why, and no one vouches for it."""

    word: str


def sign_request(token: Token, request: JoinRequest, entropy: bytes) -> SignedRequest:
    """The request, as the token's holder makes it, who has the nkey: 32 bytes, as its seed says."""
    payload = encode(request)
    proof = nkey_signature(entropy, _proven(token.tree, token.token_id, payload))
    return sign_payload(token, payload, proof)


def sign_payload(token: Token, payload: bytes, proof: bytes = b"") -> SignedRequest:
    """What the token's holder asks, by its key."""
    signature = token.key.sign(_signed(token.tree, token.token_id, payload)).signature
    return SignedRequest(VERSION, token.token_id, payload, signature, proof)


def seal_answer(public: bytes, answer: WireRecord, nonce: bytes) -> bytes:
    """The bytes of an answer; the nonce (24 bytes) must never come again."""
    box = SecretBox(answer_key(public))
    return encode(SealedAnswer(VERSION, bytes(box.encrypt(encode(answer), nonce))))


def plain_answer(word: str) -> bytes:
    """That there is no answer, and why, in a word."""
    return encode(SealedAnswer(VERSION, b"", word))


def open_answer(token: Token, request: SignedRequest, data: bytes) -> JoinAnswer:
    """What the centre answered to this very request; raises NoAnswer or RecordRefused."""
    answer = decode(JoinAnswer, unseal_answer(token, data), ANSWER_MAX_BYTES)
    if answer.digest != request.digest:
        raise RecordRefused("the answer is one to another request")
    if answer.grant is not None and not answer.grant.fits(token):
        raise RecordRefused("the answer has other keys, or another place, than the token pins")
    return answer


def unseal_answer(token: Token, data: bytes) -> bytes:
    """The bytes that the centre answered a token's holder; raises NoAnswer or RecordRefused."""
    found = decode(SealedAnswer, data, ANSWER_MAX_BYTES)
    if found.word or not found.sealed:
        raise NoAnswer(found.word or UNREADABLE)
    try:
        return bytes(SecretBox(answer_key(token.public)).decrypt(found.sealed))
    except (CryptoError, ValueError, TypeError) as error:
        raise RecordRefused("the answer was not made by the centre of this token") from error


def read_request(data: bytes) -> SignedRequest:
    """A request as it came over the wire, by anybody; raises RecordRefused."""
    return decode(SignedRequest, data, REQUEST_MAX_BYTES)


def read_answer(data: bytes) -> SealedAnswer:
    """An answer on its way through a relay; raises RecordRefused."""
    return decode(SealedAnswer, data, ANSWER_MAX_BYTES)


def _signed(tree: TreeId, token: str, payload: bytes) -> bytes:
    return f"leafcast/enrol/{VERSION}\0{tree}\0{token}\0".encode() + payload


def _proven(tree: TreeId, token: str, payload: bytes) -> bytes:
    return f"leafcast/enrol-key/{VERSION}\0{tree}\0{token}\0".encode() + payload
