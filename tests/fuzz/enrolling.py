"""What those say who ask to be let in, and are answered; and what both sides write down of that."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from nacl.secret import SecretBox

from controllers.core.access.issued_tokens import IssuedToken, IssuedTokens, TokenRequest
from leafcast.ask.api import ApiError
from leafcast.daemon.nodes.certificate_renewal import certificates
from leafcast.daemon.nodes.token_files import TokenFiles, read_token_file, token_file_text
from leafcast.daemon.nodes.token_wishes import read_wishes
from leafcast.data_dir import DataDir
from leafcast.join.invitation import InvitationUnusable, invitation_of, read_invitation
from leafcast.join.join_request import JoinRequester, read_pending, request_text
from leafcast.node.credentials.own_certificate import validity
from leafcast.node.credentials.own_key import OwnKey
from leafcast.node.listen_settings import ListenSettings, keep_listen_settings
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.server.leaf_address import TlsFiles
from relay.adapters.server.link_trouble import trouble_of
from relay.adapters.server.nkey_pairs import BadNkey, public_nkey, seed_entropy
from relay.adapters.tls.authority import Authority
from schemas.enrolment.enrolment import (
    GRANTED,
    PENDING,
    VERSION,
    Grant,
    JoinAnswer,
    JoinRequest,
    NoAnswer,
    SealedAnswer,
    open_answer,
    plain_answer,
    read_answer,
    read_request,
    seal_answer,
    sign_request,
)
from schemas.enrolment.tokens import Token, TokenRefused, answer_key, pin_of, read_token
from schemas.records.records import API_ASK, AskRecord, Source
from schemas.records.signed_answers import is_signed, signed
from schemas.values import codec
from schemas.values.codec import from_json
from schemas.values.refusals import BadIdentity, CodecError, RecordRefused, WireRefused
from schemas.values.wire import encode
from tests.fuzz.files import SEED, file
from tests.fuzz.inputs import text_of
from tests.fuzz.target import Form, Target
from tests.property.test_hostile_bytes import GRANT as KEPT
from tests.property.test_hostile_bytes import PATH

PIN = pin_of(KEPT.tree, KEPT.roots, b"")
TOKEN = Token(b"s" * 16, KEPT.tree, PIN, PATH)
ANY = Token(b"s" * 16, KEPT.tree, PIN)
REQUEST = JoinRequest(PATH, "U" * 56, "till", b"csr")
ASKED = sign_request(TOKEN, REQUEST, b"e" * 32)
GRANT = Grant(KEPT.tree, PATH, False, ("nats://x",), KEPT.roots, b"", {"a": "b"}, (PATH,))
ANSWERS = (
    JoinAnswer(PENDING, ASKED.digest, "why", "what to do", 7),
    JoinAnswer(GRANTED, ASKED.digest, grant=GRANT),
)
CERTIFICATE = Authority.make("tree", 1_800_000_000_000).certificate
ASK = AskRecord(Source(API_ASK, KEPT.tree, "", "ask"), 1, "", "", "node", PATH, 9, {"make": "next"})
SAID = signed(seed_entropy(SEED), KEPT.tree, ASK, {"nkey": public_nkey(SEED), "next": ""})
ONE = IssuedToken(
    TOKEN.public,
    str(PATH),
    KEPT.roots,
    7,
    9,
    labels={"a": "b"},
    requests=(TokenRequest(PATH, "U" * 56, "till", 8),),
)


def token(data: bytes) -> None:
    text = text_of(data)
    with suppress(TokenRefused):
        found = read_token(text)
        assert read_token(found.text) == found


def request(data: bytes) -> None:
    """Whoever may say it: it is read or refused, and believed only if the holder said it."""
    with suppress(RecordRefused):
        found = read_request(data)
        assert read_request(encode(found)) == found
        said = found.verified(KEPT.tree, TOKEN.public)
        if said is not None:
            found.holds(KEPT.tree, said.nkey)
            admissions = IssuedTokens([ONE])
            admissions.judge(ONE.token, said, 8)
            admissions.assert_invariants()


def answer(data: bytes) -> None:
    """On its way it may be anything; also sealed by who has the key."""
    with suppress(RecordRefused):
        read_answer(data)
    with suppress(RecordRefused, NoAnswer):
        open_answer(TOKEN, ASKED, data)


def holders(data: bytes) -> None:
    """What the holder of the token seals, which may be another holder's answer to this one."""
    sealed = bytes(SecretBox(answer_key(TOKEN.public)).encrypt(data, b"n" * 24))
    with suppress(RecordRefused, NoAnswer):
        found = open_answer(TOKEN, ASKED, encode(SealedAnswer(VERSION, sealed)))
        assert found.grant is None or found.grant.fits(TOKEN)


def token_record(data: bytes) -> None:
    with suppress(WireRefused, ValueError, KeyError, TypeError, AttributeError):
        found = read_token_file(data)
        assert read_token_file(token_file_text(found).encode()) == found
        IssuedTokens([found]).assert_invariants()


def kept(at: Path) -> None:
    place = at / "tokens"
    place.mkdir(exist_ok=True)
    (place / "any.json").write_bytes((at / "token.json").read_bytes())
    TokenFiles(at).read()


def asked(data: bytes) -> None:
    with suppress(ValueError, KeyError, TypeError, AttributeError, BadNkey):
        found = read_pending(data)
        assert read_pending(request_text(found).encode()) == found


def remembered(at: Path) -> None:
    JoinRequester(("nats://x",), TOKEN, PATH, at, SystemClock(), SystemDice(), str).granted_before()


def next_key(at: Path) -> None:
    OwnKey(at, SEED, str, SystemClock(), SystemDice())._next()


def invitation(at: Path) -> None:
    place = at / "any.join"
    read_invitation(place.read_bytes())
    with suppress(BadIdentity):
        invitation_of(str(place), None, None)


def wishes(data: bytes) -> None:
    with suppress(CodecError, ApiError, BadIdentity):
        said: Any = from_json(data)
        if isinstance(said, str):
            for uses in (1, 7):
                for wish in read_wishes(
                    [{"path": said, "labels": {}}],
                    relay=False,
                    replace=False,
                    sure=False,
                    uses=uses,
                ):
                    one = IssuedToken(b"k" * 32, wish.path_pattern, {}, 0, 1, uses=wish.uses)
                    assert one.admits(wish.node.path)


def signed_answer(data: bytes) -> None:
    """What came as a node's answer; whoever is on the way may have made it."""
    with suppress(CodecError):
        value = codec.unpack(data, lists=True)
        believed = is_signed([public_nkey(SEED)], KEPT.tree, ASK, value)
        assert not believed or value == SAID


def expiring(at: Path) -> None:
    """A certificate that the user keeps himself."""
    validity(TlsFiles(at / "own.pem", at / "own.key"))
    keep_listen_settings(at, ListenSettings(("tls://x:7422",), str(at / "own.pem"), "own.key"))
    try:
        list(certificates(DataDir(at)))
    finally:
        (at / "listen.json").unlink()


def log(data: bytes) -> None:
    trouble_of(text_of(data).splitlines())


TARGETS = {
    "token": Target(token, lambda: [TOKEN.text.encode(), ANY.text.encode()], bytes_max=4096),
    "join_request": Target(request, lambda: [encode(ASKED)], Form.MSGPACK),
    "join_answer": Target(
        answer,
        lambda: [
            plain_answer("UnknownToken"),
            *(seal_answer(TOKEN.public, it, b"n" * 24) for it in ANSWERS),
        ],
        Form.MSGPACK,
    ),
    "join_holder": Target(holders, lambda: [encode(it) for it in ANSWERS], Form.MSGPACK),
    "token_record": Target(token_record, lambda: [token_file_text(ONE).encode()], Form.JSON),
    "token_file": file("token.json", kept, (), token_file_text(ONE)),
    "asked": Target(
        asked,
        lambda: [
            request_text(read_pending(b'{"format":1,"token":"t","path":"/a","seed":""}')).encode()
        ],
        Form.JSON,
    ),
    "asked_file": file(
        "request.json",
        remembered,
        (),
        {"format": 1, "token": TOKEN.token_id, "path": "/a", "seed": ""},
    ),
    "next_key": file("next_key.json", next_key, (), {"seed": SEED}),
    "invitation": file(
        "any.join", invitation, (InvitationUnusable, TokenRefused), f"nats://x:1 {TOKEN.text}"
    ),
    "expiring": file("own.pem", expiring, (), CERTIFICATE),
    "signed_answer": Target(signed_answer, lambda: [codec.pack(SAID)], Form.MSGPACK),
    "wishes": Target(wishes, lambda: [b'"/emea/store-*"', b'"/emea/s1"'], Form.JSON),
    "link_log": Target(
        log, lambda: [b"[1] Leafnode connection created", b"Authorization Violation"]
    ),
}
