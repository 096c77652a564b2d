"""Who may be let in: tokens that were handed out, requests that came of them, what became of each.

A token is no node: until a request of it is granted there is neither a record nor inventory.
Judging is idempotent: the same request by the same key gets the same verdict, whenever it comes
again. Times are milliseconds since 1970, and arguments.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace

from schemas.enrolment.enrolment import DENIED, GRANTED, PENDING, REFUSED, JoinRequest
from schemas.enrolment.tokens import token_id
from schemas.records.roots import Roots
from schemas.values.identity import NodePath

TOKENS_MAX = 20_000
USES_MAX = 1_000
WAITING_MAX = 20_000
"""Requests that are not decided, of all tokens together: as many as one answer lists."""
KEPT_MS = 30 * 86_400_000
"""So long it is told what became of a token: who comes with it afterwards holds an unknown one."""
AGAIN_SECONDS_MIN = 2
ASKED_A_SECOND = 50
"""How many requests that wait for a person come again in a second, all together."""


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """A request of a token: who asked with it first, and what became of that."""

    path: NodePath
    nkey: str
    host_name: str
    asked_ms: int
    state: str = PENDING
    decided_ms: int = 0


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token as the centre knows it."""

    # The half of its key that cannot ask.
    public: bytes
    # Its path, or with more than one use a pattern of paths.
    path_pattern: str
    # The root keys that it pins.
    roots: Roots = field(hash=False)
    made_ms: int
    expires_ms: int
    uses: int = 1
    # Whether its requests are granted without asking a person.
    approved: bool = False
    relay: bool = False
    # Whether who joins with it takes the place of a node that joined.
    replaces: bool = False
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    # The certificate authority that it pins, PEM.
    authority: bytes = b""
    void_ms: int = 0
    requests: tuple[TokenRequest, ...] = ()

    @property
    def token(self) -> str:
        return token_id(self.public)

    @property
    def reusable(self) -> bool:
        return "*" in self.path_pattern

    @property
    def waiting(self) -> int:
        """How many of its requests wait to be decided."""
        return 0 if self.void_ms else sum(it.state == PENDING for it in self.requests)

    def admits(self, path: NodePath) -> bool:
        """Whether it is for this path; a star stands for any part of one name."""
        wanted, names = self.path_pattern.split("/")[1:], path.names
        pairs = zip(wanted, names, strict=False)
        return len(wanted) == len(names) and all(fnmatch.fnmatchcase(n, w) for w, n in pairs)

    def request_at(self, path: NodePath) -> TokenRequest | None:
        return next((it for it in self.requests if it.path == path), None)

    def usable(self, now_ms: int) -> bool:
        """Whether someone new may still ask with it."""
        left = len(self.requests) < self.uses
        return left and not self.void_ms and now_ms < self.expires_ms

    @property
    def is_sound(self) -> bool:
        """Whether its parts fit each other."""
        uses_fit = 0 < self.uses <= USES_MAX if self.reusable else self.uses == 1
        return (
            uses_fit
            and len({it.path for it in self.requests}) == len(self.requests) <= self.uses
            and all(self.admits(it.path) for it in self.requests)
            and not (self.approved and self.reusable)
            and all(it.state in (PENDING, GRANTED, DENIED) for it in self.requests)
            and all(bool(it.decided_ms) == (it.state != PENDING) for it in self.requests)
        )

    def state(self, now_ms: int) -> str:
        """Its state, in one word for people."""
        if self.void_ms:
            return "void"
        if self.waiting:
            return "asked"
        if len(self.requests) >= self.uses:
            return "used"
        return "open" if now_ms < self.expires_ms else "expired"

    def ended_ms(self, now_ms: int) -> int:
        """Since when nothing can come of it any more; 0 while something can."""
        match self.state(now_ms):
            case "void":
                return self.void_ms
            case "used":
                return max(it.decided_ms for it in self.requests)
            case "expired":
                return self.expires_ms
            case _:
                return 0


@dataclass(frozen=True, slots=True)
class JoinVerdict:
    """What a request is answered; `changed` is whether the token is another than before."""

    state: str
    reason: str = ""
    remedy: str = ""
    changed: bool = False


class TooManyTokens(Exception):
    """No token can be handed out; says why, and what to do."""


class IssuedTokens:
    """All tokens of a tree, by id, as far as anything may still come of them or be asked about."""

    def __init__(self, tokens: Iterable[IssuedToken] = ()) -> None:
        self.tokens: dict[str, IssuedToken] = {}
        # How many requests of each token wait to be decided; those of which none does are left out.
        self._waiting: dict[str, int] = {}
        self._waiting_all = 0
        self._newest: dict[str, str] = {}
        # The tokens that a path, or a pattern, is of; and those with a pattern.
        self._by_path: dict[str, dict[str, None]] = {}
        self._reusable: dict[str, None] = {}
        for one in tokens:
            self._put(one)
            for request in one.requests:
                self._by_path.setdefault(str(request.path), {})[one.token] = None

    def demand_room(self, more: int) -> None:
        """Raises TooManyTokens unless so many more can be handed out."""
        if len(self.tokens) + more > TOKENS_MAX:
            known = f"there are {len(self.tokens)} tokens, and at most {TOKENS_MAX} can be"
            days = KEPT_MS // 86_400_000
            raise TooManyTokens(f"{known}; each is kept for {days} days after its end")

    def issue(self, one: IssuedToken, now_ms: int) -> list[str]:
        """Admit a token; the ids of those that it makes void, as they are for the same path.

        Raises TooManyTokens.
        """
        self.demand_room(1)
        before = self._newest.get(one.path_pattern)
        void = []
        if before is not None and not one.reusable and not self.tokens[before].ended_ms(now_ms):
            self.void(before, now_ms)
            void.append(before)
        self._put(one)
        return void

    def _put(self, one: IssuedToken) -> None:
        self.tokens[one.token] = one
        newest = self.tokens.get(self._newest.get(one.path_pattern, ""))
        if newest is None or newest.made_ms <= one.made_ms:
            self._newest[one.path_pattern] = one.token
        self._by_path.setdefault(one.path_pattern, {})[one.token] = None
        if one.reusable:
            self._reusable[one.token] = None
        self._count(one.token, one.waiting)

    def _count(self, token: str, waiting: int) -> None:
        self._waiting_all += waiting - self._waiting.pop(token, 0)
        if waiting:
            self._waiting[token] = waiting

    def judge(self, token: str, request: JoinRequest, now_ms: int) -> JoinVerdict:
        """What a request comes to, made by who holds the token; it is remembered if it is new."""
        one, path = self.tokens[token], request.path
        if not one.admits(path):
            return _refused(
                f"the token is for {one.path_pattern}, not {path}", f"ask for a token for {path}"
            )
        known = one.request_at(path)
        if known is not None:
            return self._known(one, known, request)
        if one.void_ms:
            return _refused("the token is void", _another(path))
        if now_ms >= one.expires_ms:
            return _refused(
                f"the token for {one.path_pattern} expired "
                f"{(now_ms - one.expires_ms) // 1000} s ago",
                _another(path),
            )
        if len(one.requests) >= one.uses:
            used = ", ".join(str(it.path) for it in one.requests[:3])
            return _refused(f"the token is used up: {used} came with it", _another(path))
        if self._waiting_all >= WAITING_MAX:
            return JoinVerdict(
                PENDING,
                f"{self._waiting_all} others wait, and no more are noted until some of them are "
                "approved or denied at the centre: `leafcast node requests` shows them",
            )
        # What else it says is for nobody yet, and long: it is not kept.
        asked = TokenRequest(path, request.nkey, request.host_name, now_ms)
        self._put(replace(one, requests=(*one.requests, asked)))
        self._by_path.setdefault(str(path), {})[token] = None
        return JoinVerdict(PENDING, changed=True)

    def _known(self, one: IssuedToken, known: TokenRequest, request: JoinRequest) -> JoinVerdict:
        path = known.path
        if known.nkey != request.nkey:
            # It is a node only once it was granted.
            undo = {
                PENDING: f"run `leafcast node deny {path}`, and ",
                GRANTED: f"run `leafcast node revoke {path}`, and ",
            }
            return _refused(
                f"the token for {path} was used already, by {known.host_name or 'another node'}",
                f"if that was you, join in the folder that it has; else "
                f"{undo.get(known.state, '')}{_another(path)}",
            )
        if known.state == DENIED:
            return JoinVerdict(DENIED, f"the request for {path} was denied", _another(path))
        if known.state == PENDING and one.void_ms:
            return _refused("the token is void", _another(path))
        return JoinVerdict(known.state)

    def waiting(self) -> list[tuple[IssuedToken, TokenRequest]]:
        """All requests that are not decided, the oldest first."""
        found = [
            (one, it)
            for one in (self.tokens[token] for token in self._waiting)
            for it in one.requests
            if it.state == PENDING
        ]
        return sorted(found, key=lambda pair: (pair[1].asked_ms, pair[1].path, pair[0].public))

    def invited(self, path: NodePath, now_ms: int) -> str:
        """What is to be done until a path that a token was made for joins; "" if none was."""
        said = ""
        for one in self._of(str(path), *self._reusable):
            asked = one.request_at(path)
            if asked is not None and asked.state == PENDING and not one.void_ms:
                return "wait for it" if one.approved else f"leafcast node approve {path}"
            if asked is None and one.admits(path) and one.usable(now_ms):
                said = "leafcast join there with its token"
        return said

    def named(self, what: str, now_ms: int) -> list[IssuedToken]:
        """The tokens that a path, a pattern or an id means, of which something may still come."""
        return [
            one
            for one in self._of(what, what)
            if not one.ended_ms(now_ms)
            and (
                what in (one.token, one.path_pattern)
                or any(it.state == PENDING and str(it.path) == what for it in one.requests)
            )
        ]

    def _of(self, path: str, *others: str) -> list[IssuedToken]:
        """The tokens of a path, and these others, each once; what is unknown is left out."""
        found = dict.fromkeys((*self._by_path.get(path, ()), *others))
        return [self.tokens[token] for token in found if token in self.tokens]

    def decide(
        self, token: str, paths: Container[NodePath], state: str, now_ms: int
    ) -> list[NodePath]:
        """Grant or deny requests that wait: whose; what is decided stays so."""
        one = self.tokens[token]
        decided = [it for it in one.requests if it.state == PENDING and it.path in paths]
        done = {it.path: replace(it, state=state, decided_ms=now_ms) for it in decided}
        if done:
            others = [it for it in one.requests if it.path not in done]
            self._put(replace(one, requests=(*others, *done.values())))
        return list(done)

    def void(self, token: str, now_ms: int) -> None:
        """Let nobody come with it any more; who was let in by it stays."""
        one = self.tokens[token]
        if not one.void_ms:
            self._put(replace(one, void_ms=now_ms))

    def forget_old(self, now_ms: int) -> list[str]:
        """Drop what ended long ago; the ids of it."""
        gone = [
            it.token for it in self.tokens.values() if 0 < it.ended_ms(now_ms) <= now_ms - KEPT_MS
        ]
        for token in gone:
            one = self.tokens.pop(token)
            self._count(token, 0)
            self._reusable.pop(token, None)
            for path in (one.path_pattern, *(str(it.path) for it in one.requests)):
                self._unfind(path, token)
            if self._newest.get(one.path_pattern) == token:
                del self._newest[one.path_pattern]
        return gone

    def _unfind(self, path: str, token: str) -> None:
        tokens = self._by_path.get(path, {})
        tokens.pop(token, None)
        if not tokens:
            self._by_path.pop(path, None)

    def again_seconds(self) -> int:
        """When one that waits is to ask again, so that many do not ask too often."""
        return max(AGAIN_SECONDS_MIN, self._waiting_all // ASKED_A_SECOND)

    def assert_invariants(self) -> None:
        """Assert what always holds."""
        assert len(self.tokens) <= TOKENS_MAX
        assert self._waiting_all == sum(self._waiting.values())
        assert all(self._waiting.values())
        for token, one in self.tokens.items():
            assert token == one.token
            assert one.waiting == self._waiting.get(token, 0)
            assert one.is_sound
            for path in (one.path_pattern, *(str(it.path) for it in one.requests)):
                assert token in self._by_path[path]
        found = {token for tokens in self._by_path.values() for token in tokens}
        assert found | self._reusable.keys() == self.tokens.keys()


def _refused(reason: str, remedy: str) -> JoinVerdict:
    return JoinVerdict(REFUSED, reason, remedy)


def _another(path: NodePath) -> str:
    return f"make another with `leafcast node add {path}` at the centre"
