"""Vectors of joining: tokens and what follows from them, requests and answers."""

from __future__ import annotations

from schemas.enrolment.enrolment import (
    Grant,
    JoinAnswer,
    JoinRequest,
    NoAnswer,
    open_answer,
    read_request,
    seal_answer,
    sign_request,
)
from schemas.enrolment.tokens import (
    Token,
    TokenRefused,
    answer_key,
    entrance_entropy,
    pin_of,
    read_token,
)
from schemas.records.roots import Roots
from schemas.values.identity import KeyId, NodePath, TreeId
from schemas.values.refusals import RecordRefused
from schemas.values.wire import encode
from tests.conformance.forms import Case, Json, fields_of

ABOUT = (
    "A token (`token`): what it says and what follows from it; a request (`request`) and whether "
    "the centre believes it; an answer (`answer`) and whether the token's holder believes it."
)
TREE = TreeId("a" * 26)
ROOTS = Roots({KeyId("k" * 26): b"k" * 32})
HERE = NodePath.parse("/emea/s1")
PIN = pin_of(TREE, ROOTS, b"")
TOKEN = Token(b"s" * 16, TREE, PIN, HERE)
MANY = Token(b"m" * 16, TREE, PIN)
SEED = b"n" * 32
NKEY = "UAAU4TMSFRMWUOAK37E65VZC5A2YELYSGZ3BNE7EXK5WDYNPXMCPDMOM"


def request(token: Token = TOKEN, path: NodePath = HERE) -> JoinRequest:
    return JoinRequest(path, NKEY, "host")


def cases() -> list[Case]:
    """All vectors, in the order of the file."""
    return [*_tokens(), *_requests(), *_answers()]


def _tokens() -> list[Case]:
    text = TOKEN.text
    wrong = text[:-1] + ("a" if text[-1] != "a" else "b")
    return [
        Case("a token for one path", "J4", {"token": text}, {"verdict": "read"}),
        Case("a token for any path", "J4", {"token": MANY.text}, {"verdict": "read"}),
        Case("a token in capitals", "J4", {"token": text.upper()}, {"verdict": "read"}),
        Case("a token with a letter mistyped", "J4", {"token": wrong}, {"verdict": "refused"}),
        Case("a token that is cut short", "J4", {"token": text[:40]}, {"verdict": "refused"}),
        Case("no token", "J4", {"token": f"xx{text[2:]}"}, {"verdict": "refused"}),
    ]


def _requests() -> list[Case]:
    good = sign_request(TOKEN, request(), SEED)
    other = sign_request(MANY, request(), SEED)
    forged = encode([1, good.token, good.payload, bytes(64), good.proof])
    unproven = encode([1, good.token, good.payload, good.signature, bytes(64)])
    given = {"public": TOKEN.public.hex(), "tree": TREE}
    listed = [
        ("a request", encode(good), {"verdict": "believed", "proven": True}),
        ("a request of another token's key", encode(other), {"verdict": "refused"}),
        ("a request that nobody signed", forged, {"verdict": "refused"}),
        ("a request without proof", unproven, {"verdict": "believed", "proven": False}),
        ("what is no request", b"\xc1", {"verdict": "unreadable"}),
    ]
    return [Case(name, "J4", {**given, "request": data.hex()}, out) for name, data, out in listed]


def _answers() -> list[Case]:
    asked = sign_request(TOKEN, request(), SEED)
    grant = Grant(TREE, HERE, False, ("tls://centre.example:7422",), ROOTS, b"", {"zone": "x"})
    granted = JoinAnswer("granted", asked.digest, "", "", 0, grant)
    pending = JoinAnswer("pending", asked.digest, "wait", "", 5)
    late = JoinAnswer("pending", bytes(32), "wait", "", 5)
    elsewhere = JoinAnswer(
        "granted",
        asked.digest,
        "",
        "",
        0,
        Grant(TREE, HERE, False, grant.parents, Roots({KeyId("z" * 26): b"z" * 32}), b"", {}),
    )
    given = {"token": TOKEN.text, "asked": encode(asked).hex()}
    listed = [
        ("an answer that grants", granted, TOKEN.public, "believed"),
        ("an answer that says to wait", pending, TOKEN.public, "believed"),
        ("an answer to another request", late, TOKEN.public, "refused"),
        ("an answer whose roots do not fit the pin", elsewhere, TOKEN.public, "refused"),
        ("an answer under another token's key", granted, MANY.public, "refused"),
    ]
    return [
        Case(
            name,
            "J1",
            {**given, "answer": seal_answer(public, said, bytes(24)).hex()},
            {"verdict": verdict},
        )
        for name, said, public, verdict in listed
    ]


def answer(given: Json) -> Json:
    """What our program makes of one case."""
    match given:
        case {"answer": data, "token": text, "asked": asked}:
            return _answered(bytes.fromhex(data), text, bytes.fromhex(asked))
        case {"request": data}:
            return _requested(bytes.fromhex(data), given)
    return _token(given["token"])


def _token(text: str) -> Json:
    try:
        token = read_token(text)
    except TokenRefused:
        return {"verdict": "refused"}
    return {
        "verdict": "read",
        "secret": token.secret.hex(),
        "tree": token.tree,
        "pin": token.pin.hex(),
        "path": "" if token.path is None else str(token.path),
        "public_key": token.public.hex(),
        "token_id": token.token_id,
        "answer_key": answer_key(token.public).hex(),
        "entrance_seed": entrance_entropy(token.tree).hex(),
    }


def _requested(data: bytes, given: Json) -> Json:
    try:
        said = read_request(data)
    except RecordRefused:
        return {"verdict": "unreadable"}
    tree = TreeId(given["tree"])
    request = said.verified(tree, bytes.fromhex(given["public"]))
    if request is None:
        return {"verdict": "refused"}
    return {
        "verdict": "believed",
        "request": fields_of(request),
        "proven": said.holds(tree, request.nkey),
        "digest": said.digest.hex(),
    }


def _answered(data: bytes, text: str, asked: bytes) -> Json:
    try:
        said = open_answer(read_token(text), read_request(asked), data)
    except (NoAnswer, RecordRefused):
        return {"verdict": "refused"}
    return {"verdict": "believed", "answer": fields_of(said)}
