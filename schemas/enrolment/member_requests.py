"""What a machine that asks to be a member of a node says, and what it is answered.

They travel as requests of nodes do: signed by the key of a token, and answered under its answer
key. What a member is told is sealed once more, to the key that it asked with: whoever saw the token
cannot read it.
"""

from __future__ import annotations

from schemas.enrolment.enrolment import (
    ANSWER_MAX_BYTES,
    GRANTED,
    HOST_NAME_MAX,
    REQUEST_MAX_BYTES,
    STATES,
    SignedRequest,
    sign_payload,
    unseal_answer,
)
from schemas.enrolment.tokens import Token
from schemas.values.identity import NodePath
from schemas.values.refusals import RecordRefused
from schemas.values.wire import Natural, WireRecord, decode, encode

KEY_BYTES = 32
HOST_MAX = 253
LISTENS_MAX, URL_MAX = 8, 255
_PORT_MAX = 65535


class MemberRequest(WireRecord, frozen=True):
    """A machine that wants to be a member of the node at a path, and where the others reach it.

    `key` is an X25519 public key of its own; `now_ms` is what its clock shows. With `has_state` it
    runs the node now. `listens` are where servers of children elsewhere dial in, with TLS; none on
    a machine that nobody else reaches.
    """

    path: NodePath
    key: bytes
    release: str
    now_ms: Natural
    host: str
    route_port: Natural
    leaf_port: Natural
    client_port: Natural
    host_name: str = ""
    has_state: bool = False
    listens: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        ports = (self.route_port, self.leaf_port, self.client_port)
        if len(self.key) != KEY_BYTES or not all(0 < port <= _PORT_MAX for port in ports):
            raise ValueError("its key or its ports are none")
        texts = (
            (self.host_name, HOST_NAME_MAX),
            (self.release, HOST_NAME_MAX),
            (self.host, HOST_MAX),
            *((url, URL_MAX) for url in self.listens),
        )
        if not all(len(text) <= most and text.isprintable() for text, most in texts):
            raise ValueError("its texts are too long, or not printable")
        if len(self.listens) > LISTENS_MAX:
            raise ValueError(f"it listens at more than {LISTENS_MAX} addresses")


class MemberAnswer(WireRecord, frozen=True):
    """What became of it; `settings`, where it is granted, are sealed to the key it asked with."""

    state: str
    digest: bytes
    reason: str = ""
    remedy: str = ""
    again_seconds: Natural = 0
    settings: bytes = b""

    def __post_init__(self) -> None:
        if self.state not in STATES or (self.state == GRANTED) != bool(self.settings):
            raise ValueError("its state is none, or does not fit what it grants")


def sign_member_request(token: Token, request: MemberRequest) -> SignedRequest:
    """The request, as the token's holder makes it."""
    return sign_payload(token, encode(request))


def read_member_request(payload: bytes) -> MemberRequest:
    """What a request of a member's token says; raises RecordRefused."""
    return decode(MemberRequest, payload, REQUEST_MAX_BYTES)


def open_member_answer(token: Token, request: SignedRequest, data: bytes) -> MemberAnswer:
    """What the centre answered to this very request; raises NoAnswer or RecordRefused."""
    answer = decode(MemberAnswer, unseal_answer(token, data), ANSWER_MAX_BYTES)
    if answer.digest != request.digest:
        raise RecordRefused("the answer is one to another request")
    return answer
