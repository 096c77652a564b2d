"""Whatever is asked, decided and forgotten in whatever order: one token never lets in two."""

from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from controllers.core.access.issued_tokens import KEPT_MS, IssuedToken, IssuedTokens
from schemas.enrolment.enrolment import DENIED, GRANTED, PENDING, REFUSED, JoinRequest
from schemas.enrolment.tokens import Token, TokenRefused, read_token
from schemas.records.roots import Roots
from schemas.values.identity import KeyId, NodePath, TreeId, random_id
from tests.property.examples import examples

ROOTS = Roots({KeyId(random_id(b"r" * 16)): b"k" * 32})
TREE = TreeId(random_id(b"t" * 16))
NAMES = st.sampled_from(["/a/x", "/a/y", "/b/x"])
WHERE = st.sampled_from(["/a/x", "/a/y", "/a/*", "/*"])
KEYS = st.sampled_from("AB")
LIFE_MS = 1_000


class Asking(RuleBasedStateMachine):
    """Tokens are handed out, used by anyone, decided, made void, forgotten; centres start again."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1
        self.admissions = IssuedTokens()
        self.count = 0
        self.let_in: dict[tuple[str, NodePath], str] = {}

    @rule(where=WHERE, sure=st.booleans(), uses=st.integers(1, 3))
    def hand_out(self, where, sure, uses):
        many = "*" in where
        self.count += 1
        one = IssuedToken(
            self.count.to_bytes(32, "big"),
            where,
            ROOTS,
            self.now,
            self.now + LIFE_MS,
            uses=uses if many else 1,
            approved=sure and not many,
        )
        self.admissions.issue(one, self.now)

    @rule(data=st.data(), path=NAMES, key=KEYS)
    def ask(self, data, path, key):
        if not self.admissions.tokens:
            return
        token = data.draw(st.sampled_from(sorted(self.admissions.tokens)))
        before, where = self.admissions.tokens[token], NodePath.parse(path)
        request = JoinRequest(where, "U" + key * 55)
        verdict = self.admissions.judge(token, request, self.now)
        again = self.admissions.judge(token, request, self.now)
        assert (again.state, again.changed) == (verdict.state, False), "again is harmless"
        if verdict.changed:
            assert before.usable(self.now)
            assert before.admits(where)
            assert verdict.state == PENDING
        if verdict.state == GRANTED:
            assert self.let_in[token, where] == request.nkey
        if verdict.state in (REFUSED, DENIED):
            assert verdict.reason
            assert verdict.remedy

    @rule(data=st.data(), state=st.sampled_from([GRANTED, DENIED]))
    def decide(self, data, state):
        waiting = self.admissions.waiting()
        if not waiting:
            return
        one, request = data.draw(st.sampled_from(waiting))
        self.admissions.decide(one.token, {request.path}, state, self.now)
        if state == GRANTED:
            assert (one.token, request.path) not in self.let_in
            self.let_in[one.token, request.path] = request.nkey

    @rule(data=st.data())
    def void(self, data):
        if self.admissions.tokens:
            token = data.draw(st.sampled_from(sorted(self.admissions.tokens)))
            self.admissions.void(token, self.now)

    @rule(ms=st.sampled_from([1, LIFE_MS, KEPT_MS]))
    def wait(self, ms):
        self.now += ms

    @rule()
    def forget(self):
        waiting = self.admissions.waiting()
        self.admissions.forget_old(self.now)
        assert self.admissions.waiting() == waiting, "nobody who waits is forgotten"

    @rule()
    def start_again(self):
        former = self.admissions
        self.admissions = IssuedTokens(former.tokens.values())
        assert self.admissions.waiting() == former.waiting()
        assert self.admissions.again_seconds() == former.again_seconds()

    @invariant()
    def holds(self):
        self.admissions.assert_invariants()
        for token, one in self.admissions.tokens.items():
            granted = [it for it in one.requests if it.state == GRANTED]
            assert len(granted) <= one.uses
            assert all(self.let_in[token, it.path] == it.nkey for it in granted)


TestAsking = Asking.TestCase
TestAsking.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)


@given(st.text(max_size=300) | st.from_regex(r"lc1[a-z2-7]{80,200}", fullmatch=True))
def test_any_text_is_a_token_or_is_refused(text):
    with suppress(TokenRefused):
        token = read_token(text)
        assert read_token(token.text) == token


def test_a_token_holds_any_path_there_can_be():
    longest = NodePath(tuple("n" * 63 for _ in range(16)))
    token = Token(b"s" * 16, TREE, b"p" * 16, longest)
    assert read_token(token.text) == token
