"""Tokens and requests: what their holder can do and nobody else, and how typing errors are told."""

import pytest

from leafcast.join.invitation import InvitationUnusable, invitation_of
from schemas.enrolment.enrolment import (
    DENIED,
    GRANTED,
    PENDING,
    UNKNOWN_TOKEN,
    Grant,
    JoinAnswer,
    JoinRequest,
    NoAnswer,
    open_answer,
    plain_answer,
    read_request,
    seal_answer,
    sign_request,
)
from schemas.enrolment.tokens import Token, TokenRefused, pin_of, read_token, token_id
from schemas.records.roots import Roots
from schemas.values.identity import KeyId, NodePath, TreeId, random_id
from schemas.values.refusals import RecordRefused
from schemas.values.wire import encode, replace

TREE, OTHER_TREE = (TreeId(random_id(bytes([number]) * 16)) for number in (1, 2))
ROOTS = Roots({KeyId(random_id(b"r" * 16)): b"k" * 32})
PATH = NodePath.parse("/region-1/store-7")
TOKEN = Token(b"s" * 16, TREE, pin_of(TREE, ROOTS, b""), PATH)
REQUEST = JoinRequest(PATH, "U" + "A" * 55, "till-7")
GRANT = Grant(TREE, PATH, False, ("nats://127.0.0.1:7422",), ROOTS, b"", {"env": "prod"})
NONCE, KEY = b"n" * 24, b"e" * 32


def granted(grant: Grant, token: Token = TOKEN) -> bytes:
    request = sign_request(token, REQUEST, KEY)
    return seal_answer(token.public, JoinAnswer(GRANTED, request.digest, grant=grant), NONCE)


def test_an_invitation_names_all_addresses_and_none_that_is_no_address(tmp_path):
    both = ("tls://a.example:7422", "tls://b.example:7423")
    found = invitation_of(",".join(both), TOKEN.text, None)
    assert (found.urls, found.token, found.path) == (both, TOKEN, PATH)
    file = tmp_path / "store-7.join"
    file.write_text(f"{','.join(both)} {TOKEN.text}\n")
    assert invitation_of(str(file), None, None) == found
    for wrong in ("tls://a.example,", "tls://a.example,b.example", "tls://a.example:port,tls://b"):
        with pytest.raises(InvitationUnusable, match="no address of a server"):
            invitation_of(wrong, TOKEN.text, None)
    with pytest.raises(InvitationUnusable, match="no address of a server"):
        invitation_of("centre.example", TOKEN.text, None)
    for clear in ("nats://a.example:7422", "ws://10.1.2.3/leaf", f"{both[0]},nats://b.example"):
        with pytest.raises(InvitationUnusable, match="in clear, and leads to another machine"):
            invitation_of(clear, TOKEN.text, None)
    assert invitation_of("nats://127.0.0.1:7422", TOKEN.text, None)


@pytest.mark.parametrize("path", [PATH, None])
def test_a_token_is_read_as_it_was_written_however_it_was_pasted(path):
    token = replaced(path=path)
    assert read_token(token.text) == token
    assert read_token(f"  {token.text.upper()}\n") == token


def replaced(**changes) -> Token:
    form = {"secret": TOKEN.secret, "tree": TREE, "pin": TOKEN.pin, "path": PATH, **changes}
    return Token(**form)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "begins with 'lc1'"),
        ("store-7.join.json", "begins with 'lc1'"),
        (TOKEN.text[:-1], "cut short"),
        (TOKEN.text[:-8], "cut short"),
        (TOKEN.text[:12], "cut short"),
        (TOKEN.text + "aaaaaaaa", "mistyped"),
        (TOKEN.text[:30] + "1" + TOKEN.text[31:], "another at place 31"),
        (TOKEN.text.replace(TOKEN.text[40], "a" if TOKEN.text[40] != "a" else "b", 1), "mistyped"),
        ("lc1" + "a" * 10_000, "too long"),
    ],
)
def test_a_typing_error_is_told_with_its_place_and_never_with_the_token(text, reason):
    with pytest.raises(TokenRefused) as refused:
        read_token(text)
    assert reason in str(refused.value)
    assert "leafcast node add" in str(refused.value)
    assert len(text) < 9 or text[4:] not in str(refused.value)


def test_every_single_typing_error_is_found():
    for at in range(3, len(TOKEN.text) - 1):
        typed = "b" if TOKEN.text[at] == "a" else "a"
        with pytest.raises(TokenRefused):
            read_token(TOKEN.text[:at] + typed + TOKEN.text[at + 1 :])


def test_no_secret_shows_in_a_representation():
    assert "ssss" not in repr(TOKEN)
    assert TOKEN.public not in TOKEN.text.encode()


def test_only_the_tokens_holder_can_ask_and_only_this_tree():
    asked = sign_request(TOKEN, REQUEST, KEY)
    assert read_request(encode(asked)).verified(TREE, TOKEN.public) == REQUEST
    assert asked.verified(OTHER_TREE, TOKEN.public) is None
    other = replaced(secret=b"t" * 16)
    assert asked.verified(TREE, other.public) is None
    stolen_id = replace(sign_request(other, REQUEST, KEY), token=TOKEN.token_id)
    assert stolen_id.verified(TREE, TOKEN.public) is None
    altered = replace(asked, payload=encode(replace(REQUEST, nkey="U" + "B" * 55)))
    assert altered.verified(TREE, TOKEN.public) is None


def test_what_the_centre_keeps_is_not_enough_to_ask():
    """The public half names the token and opens answers; a request needs the secret one."""
    assert token_id(TOKEN.public) == TOKEN.token_id
    fake = sign_request(replaced(secret=TOKEN.public[:16]), REQUEST, KEY)
    assert replace(fake, token=TOKEN.token_id).verified(TREE, TOKEN.public) is None


def test_an_answer_is_believed_only_from_who_knows_the_token_and_for_this_request():
    asked = sign_request(TOKEN, REQUEST, KEY)
    assert open_answer(TOKEN, asked, granted(GRANT)).grant == GRANT
    with pytest.raises(RecordRefused, match="not made by the centre"):
        open_answer(replaced(secret=b"t" * 16), asked, granted(GRANT))
    another = sign_request(TOKEN, replace(REQUEST, nkey="U" + "B" * 55), KEY)
    with pytest.raises(RecordRefused, match="another request"):
        open_answer(TOKEN, another, granted(GRANT))
    with pytest.raises(RecordRefused, match="not made by the centre"):
        open_answer(TOKEN, asked, _flipped(granted(GRANT)))


def _flipped(data: bytes) -> bytes:
    return data[:40] + bytes([data[40] ^ 1]) + data[41:]


@pytest.mark.parametrize(
    "change",
    [
        {"roots": Roots({KeyId(random_id(b"r" * 16)): b"x" * 32})},
        {"roots": Roots({**ROOTS.keys, KeyId(random_id(b"x" * 16)): b"x" * 32})},
        {"roots": replace(ROOTS, since=1)},
        {"authority": b"-----BEGIN"},
        {"tree": OTHER_TREE},
        {"path": NodePath.parse("/region-1/store-8")},
    ],
)
def test_an_answer_with_other_keys_or_another_place_than_the_token_pins_is_refused(change):
    with pytest.raises(RecordRefused, match="than the token pins"):
        open_answer(TOKEN, sign_request(TOKEN, REQUEST, KEY), granted(replace(GRANT, **change)))


def test_a_word_in_clear_is_no_answer():
    with pytest.raises(NoAnswer) as none:
        open_answer(TOKEN, sign_request(TOKEN, REQUEST, KEY), plain_answer(UNKNOWN_TOKEN))
    assert none.value.word == UNKNOWN_TOKEN


@pytest.mark.parametrize("state", [PENDING, DENIED])
def test_only_what_is_granted_has_a_grant(state):
    with pytest.raises(ValueError, match="does not fit"):
        JoinAnswer(state, b"", grant=GRANT)
    with pytest.raises(ValueError, match="does not fit"):
        JoinAnswer(GRANTED, b"")
