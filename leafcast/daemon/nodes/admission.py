"""Nodes that ask to be let in by a token: what the daemon does for those, and for who decides.

A node's keys are made where it runs; what comes here is a request with their public halves. Many
are granted as one, so that their parents' servers take in all their accounts with few reloads.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from controllers.core.access.issued_tokens import (
    IssuedToken,
    IssuedTokens,
    JoinVerdict,
    TokenRequest,
    TooManyTokens,
)
from controllers.issuing.nodes import NodeRefused
from leafcast.ask.api import ApiError, verb
from leafcast.centre.centre import Centre
from leafcast.daemon.nodes.enrolment import (
    THEN,
    Enrolment,
    EnrolmentFault,
    EnrolmentPlan,
    NodeSpec,
    key_taken,
)
from leafcast.daemon.nodes.token_files import TokenFiles
from leafcast.daemon.nodes.token_wishes import TokenWish, read_wishes
from leafcast.doctor.findings import Expiry
from leafcast.node.certificate_lists import overlap
from relay.adapters.server.nkey_pairs import BadNkey, check_public_nkey
from relay.ports import BusBroken, Clock, Dice, first_of
from relay.space_errors import SpaceError
from relay.waiting import in_turns
from schemas.enrolment.enrolment import (
    DENIED,
    GRANTED,
    PENDING,
    REFUSED,
    UNKNOWN_TOKEN,
    Grant,
    JoinAnswer,
    JoinRequest,
    SignedRequest,
    plain_answer,
    read_request,
    seal_answer,
)
from schemas.enrolment.tokens import SECRET_BYTES, Token, pin_of
from schemas.records.moves import former_paths
from schemas.values.identity import NodePath
from schemas.values.refusals import RecordRefused

GATHER_SECONDS, GATHER_SECONDS_MAX = 0.25, 15.0
"""So long requests are gathered that nobody has to be asked about, to be granted as one."""
SURE_SECONDS = 5.0
"""So long one waits for its answer who will be granted what it asks."""
GRANTED_AT_ONCE = 500
AGAIN_SECONDS = 5.0
PARENT_KNOWN_SECONDS = 10.0

Json = dict[str, Any]

log = logging.getLogger("leafcast")


class JoinApproval:
    """The verbs about tokens and requests, and the answers to the requests themselves."""

    def __init__(
        self,
        centre: Centre,
        enrolling: Enrolment,
        changing: asyncio.Lock,
        files: TokenFiles,
        clock: Clock,
        dice: Dice,
        note: Callable[[str, str, str], None] = lambda *_: None,
    ) -> None:
        self._centre = centre
        self._enrolling = enrolling
        # Held by whoever changes which nodes there are.
        self._changing = changing
        self._files = files
        self._clock = clock
        self._dice = dice
        self._note = note
        self._admissions = IssuedTokens(files.read())
        enrolling.invited = self._invited
        self._parents: dict[NodePath, tuple[float, Json]] = {}
        self._to_grant = asyncio.Event()
        self._granted = asyncio.Event()
        # What a former run did not come to.
        self._to_grant.set()

    def _invited(self, path: NodePath) -> str:
        remedy = self._admissions.invited(path, self._clock.now().wall_ms)
        return remedy and f"{remedy}; {THEN}"

    async def run(self) -> None:
        """Grant what nobody has to be asked about, until cancelled.

        The longer that takes, the longer the next ones are gathered: a server with many children
        reads its configuration for a second.
        """
        gather = GATHER_SECONDS
        while True:
            await self._to_grant.wait()
            await self._clock.sleep(gather)
            self._to_grant.clear()
            began = self._clock.now().seconds
            try:
                await self._grant_approved()
                took = self._clock.now().seconds - began
                gather = min(max(GATHER_SECONDS, 2 * took), GATHER_SECONDS_MAX)
            except* (ApiError, NodeRefused, BusBroken, SpaceError, OSError) as broken:
                first = first_of(broken)
                log.warning("requests that are approved in advance wait: %s", first)
                self._to_grant.set()
                await self._clock.sleep(AGAIN_SECONDS)

    async def decide(self, data: bytes) -> bytes:
        """The answer to a request, whoever made it; never raises."""
        try:
            request = read_request(data)
            one = self._admissions.tokens[request.token]
        except (RecordRefused, KeyError):
            return plain_answer(UNKNOWN_TOKEN)
        try:
            asked = request.verified(self._centre.tree_id(), one.public)
            if asked is None:
                return plain_answer(UNKNOWN_TOKEN)
            answer = await self._answer(one, request, asked)
        except RecordRefused as error:
            answer = JoinAnswer(REFUSED, request.digest, str(error)[:500], "join with this version")
        except (BusBroken, ApiError, NodeRefused, SpaceError, OSError) as error:
            log.info("a request to join waits: %s", error)
            again = self._admissions.again_seconds()
            answer = JoinAnswer(PENDING, request.digest, str(error)[:500], again_seconds=again)
        return seal_answer(one.public, answer, self._dice.entropy(24))

    async def _answer(
        self, one: IssuedToken, request: SignedRequest, asked: JoinRequest
    ) -> JoinAnswer:
        if not request.holds(self._centre.tree_id(), asked.nkey):
            reason = "it does not show that it has the key with which it asks"
            remedy = "join with this version of leafcast"
            return JoinAnswer(REFUSED, request.digest, reason, remedy)
        verdict = self._judged(one, asked)
        if verdict.state == PENDING and one.approved:
            with suppress(TimeoutError):
                async with asyncio.timeout(SURE_SECONDS):
                    await self._granted.wait()
            verdict = self._judged(one, asked)
        state, grant = verdict.state, None
        if state == PENDING and one.approved:
            verdict = replace(verdict, reason="it is approved, and nobody has to do anything")
        if state == GRANTED:
            grant = await self._grant(self._admissions.tokens[one.token], asked)
            if grant is None:
                verdict = _let_go(asked.path)
                state = REFUSED
        again = self._admissions.again_seconds() if state == PENDING else 0
        return JoinAnswer(state, request.digest, verdict.reason, verdict.remedy, again, grant)

    def _judged(self, one: IssuedToken, asked: JoinRequest) -> JoinVerdict:
        """The verdict, written down if it is news; raises OSError."""
        try:
            check_public_nkey(asked.nkey, str(asked.path))
        except BadNkey as error:
            return JoinVerdict(REFUSED, str(error), "join again with this version of leafcast")
        verdict = self._admissions.judge(one.token, asked, self._clock.now().wall_ms)
        if not verdict.changed:
            return verdict
        now = self._admissions.tokens[one.token]
        self._files.keep([now])
        if now.approved:
            self._to_grant.set()
        else:
            said = f"{asked.path} asks to be let in: leafcast node approve {asked.path}"
            self._note("JoinRequested", str(asked.path), said)
        return verdict

    async def _grant(self, one: IssuedToken, asked: JoinRequest) -> Grant | None:
        """What the node needs; None if it was let in, and was removed or replaced since."""
        path = asked.path
        if not self._enrolling.has_key(path, asked.nkey):
            return None
        labels, annotations = self._enrolling.known_of(path)
        return Grant(
            tree=self._centre.tree_id(),
            path=path,
            relay=one.relay,
            parents=await self._leaf_urls(path),
            roots=one.roots,
            authority=one.authority,
            labels=labels,
            former=former_paths(annotations),
        )

    async def _leaf_urls(self, path: NodePath) -> tuple[str, ...]:
        """Where the parent of a path listens for it, as it said not long ago; raises ApiError."""
        now = self._clock.now().seconds
        until, said = self._parents.get(path.parent, (0.0, {}))
        if now >= until:
            said = await self._enrolling.parent(path)
            self._parents[path.parent] = (now + PARENT_KNOWN_SECONDS, said)
        return tuple(said["leafUrls"])

    @verb("node-token-add")
    async def add(
        self,
        nodes: list[Json],
        *,
        relay: bool = False,
        replace: bool = False,
        sure: bool = False,
        uses: int = 1,
        valid_seconds: int = 86_400,
        dry_run: bool = False,
    ) -> Json:
        """Hand out a token for each `{path, labels}`, all or none: `{faults, added}`.

        Of each added: path, token, url (several with commas between), untilMs, and how many earlier
        tokens are void. A path may end with a pattern (`/region-1/store-*`), then `uses` is how
        many may come with its token. Raises ApiError.
        """
        wishes = read_wishes(nodes, relay=relay, replace=replace, sure=sure, uses=uses)
        async with self._changing:
            plan = await self._enrolling.plan([it.node for it in wishes])
            if plan.faults or dry_run:
                return {"faults": [fault.form for fault in plan.faults], "added": []}
            made = [self._token(plan, wish, valid_seconds) for wish in wishes]
            return {"faults": [], "added": self._handed_out(plan, wishes, made)}

    async def invite(self, wish: TokenWish, valid_seconds: int) -> Json:
        """Hand out one token for who holds `changing`, as `add` has it; raises ApiError."""
        plan = await self._enrolling.plan([wish.node])
        for fault in plan.faults:
            raise fault.error
        (invited,) = self._handed_out(plan, [wish], [self._token(plan, wish, valid_seconds)])
        return invited

    def _token(
        self, plan: EnrolmentPlan, wish: TokenWish, valid_seconds: int
    ) -> tuple[Token, IssuedToken]:
        tree, roots, now = self._centre.tree_id(), self._centre.roots(), self._clock.now().wall_ms
        authority = str(plan.parents[wish.node.path.parent]["authorities"]).encode()
        pin = pin_of(tree, roots, authority)
        token = Token(self._dice.entropy(SECRET_BYTES), tree, pin, wish.path)
        return token, IssuedToken(
            public=token.public,
            path_pattern=wish.path_pattern,
            roots=roots,
            authority=authority,
            made_ms=now,
            expires_ms=now + valid_seconds * 1000,
            uses=wish.uses,
            approved=wish.approved,
            relay=wish.node.relay,
            replaces=wish.node.replaces and wish.path is not None,
            labels=dict(wish.node.labels),
        )

    def demand_room(self, more: int) -> None:
        """Raises ApiError unless so many more tokens can be handed out, and OSError."""
        self._files.forget(self._admissions.forget_old(self._clock.now().wall_ms))
        try:
            self._admissions.demand_room(more)
        except TooManyTokens as error:
            raise ApiError("TooMany", str(error), "ask fewer at a time") from error

    def _handed_out(
        self,
        plan: EnrolmentPlan,
        wishes: Sequence[TokenWish],
        made: Sequence[tuple[Token, IssuedToken]],
    ) -> list[Json]:
        now, found, void = self._clock.now().wall_ms, [], []
        self.demand_room(len(made))
        for wish, (token, one) in zip(wishes, made, strict=True):
            old = self._admissions.issue(one, now)
            void += old
            url = ",".join(plan.parents[wish.node.path.parent]["leafUrls"])
            form = {"path": wish.path_pattern, "token": token.text, "id": one.token, "url": url}
            found.append({**form, "untilMs": one.expires_ms, "void": len(old)})
        self._files.keep([one for _, one in made])
        self._files.keep([self._admissions.tokens[token] for token in void])
        return found

    @verb("node-requests")
    async def requests(self) -> Json:
        """Who waits for a person, the oldest first: `{requests: [{path, said, nkey, ...}]}`."""
        return {"requests": [_request_form(*pair) for pair in self._admissions.waiting()]}

    @verb("node-tokens")
    async def tokens(self) -> Json:
        """All tokens of which anything is known, the newest first; none can be joined with."""
        now = self._clock.now().wall_ms
        ones = sorted(self._admissions.tokens.values(), key=lambda it: -it.made_ms)
        return {
            "tokens": [
                {
                    "id": one.token,
                    "path": one.path_pattern,
                    "state": one.state(now),
                    "uses": one.uses,
                    "used": len(one.requests),
                    "approved": one.approved,
                    "relay": one.relay,
                    "madeMs": one.made_ms,
                    "untilMs": one.expires_ms,
                }
                for one in ones
            ]
        }

    def expiries(self) -> list[Expiry]:
        """The tokens that someone may still come with, for the doctor."""
        now = self._clock.now().wall_ms
        return [
            Expiry(
                f"the token for {one.path_pattern}",
                one.made_ms,
                one.expires_ms,
                "nobody joined with it yet, and nobody can afterwards",
                f"join with it, make another with leafcast node add {one.path_pattern}, or "
                f"leafcast node deny {one.token}",
                needed=False,
            )
            for one in self._admissions.tokens.values()
            if one.usable(now)
        ]

    @verb("node-approve")
    async def approve(self, paths: list[str], *, everyone: bool = False) -> Json:
        """Let in who asked: `{approved: [path], faults}`; of paths that are named all or none.

        Raises ApiError.
        """
        async with self._changing:
            chosen = self._admissions.waiting() if everyone else self._chosen(paths)
            approved, faults = await self._let_in(chosen, partly=everyone)
        return {"approved": [str(path) for path in approved], "faults": faults}

    @verb("node-deny")
    async def deny(self, paths: list[str]) -> Json:
        """Refuse who asked, and make tokens void that nobody asked with: `{denied, void}`.

        Each is a path, the pattern of a token, or its id. Raises ApiError.
        """
        now, denied, void = self._clock.now().wall_ms, list[str](), list[str]()
        # By token, the paths that are denied; and the tokens that all of it is.
        meant, whole = dict[str, set[NodePath]](), set[str]()
        async with self._changing:
            async for what in in_turns(paths, self._clock):
                for one in self._named(what):
                    if what in (one.token, one.path_pattern):
                        whole.add(one.token)
                        meant.setdefault(one.token, set())
                    else:
                        meant.setdefault(one.token, set()).add(NodePath.parse(what))
            for token, chosen in meant.items():
                one = self._admissions.tokens[token]
                if token in whole:
                    chosen |= {it.path for it in one.requests}
                denied += map(str, self._admissions.decide(token, chosen, DENIED, now))
                if token in whole or not one.reusable:
                    self._admissions.void(token, now)
                    void.append(token)
            await self._keep(meant)
        return {"denied": denied, "void": void}

    async def _keep(self, tokens: Iterable[str]) -> None:
        """Write down what became of tokens, each once; raises OSError."""
        async for token in in_turns(tokens, self._clock):
            self._files.keep([self._admissions.tokens[token]])

    async def leave(self, former: str, signing: str) -> list[str]:
        """Make tokens void that pin the former authority without the one that signs now: where for.

        Who came with one of them would not believe its parent. Raises OSError.
        """
        now = self._clock.now().wall_ms
        async with self._changing:
            found = [
                one
                for one in self._admissions.tokens.values()
                if not one.ended_ms(now)
                and overlap(pinned := one.authority.decode(), former)
                and not overlap(pinned, signing)
            ]
            for one in found:
                self._admissions.void(one.token, now)
            await self._keep([one.token for one in found])
        return sorted(one.path_pattern for one in found)

    def _named(self, what: str) -> list[IssuedToken]:
        """The tokens that a path or an id means, of which something may still come."""
        now = self._clock.now().wall_ms
        found = self._admissions.named(what, now)
        if not found:
            message = f"nobody asks to be {what}, and no token for it is open"
            raise ApiError("NotFound", message, "`leafcast node requests` shows who asks")
        return found

    def _chosen(self, paths: Sequence[str]) -> list[tuple[IssuedToken, TokenRequest]]:
        waiting: dict[NodePath, list[tuple[IssuedToken, TokenRequest]]] = {}
        for pair in self._admissions.waiting():
            waiting.setdefault(pair[1].path, []).append(pair)
        chosen = []
        for path in dict.fromkeys(paths):
            where = NodePath.parse(path)
            if where not in waiting:
                message = f"nobody asks to be {where}"
                raise ApiError("NotFound", message, "`leafcast node requests` shows who asks")
            chosen += waiting[where]
        return chosen

    async def _let_in(
        self, chosen: Sequence[tuple[IssuedToken, TokenRequest]], *, partly: bool
    ) -> tuple[list[NodePath], list[Json]]:
        """Let in those that can be, or none. Whatever a former try came to is done again."""
        plan, done = await self._planned(chosen), list(chosen)
        faults, told = plan.faults, [_told(plan, fault) for fault in plan.faults]
        if faults and partly:
            faulty = {plan.wanted[fault.at].path for fault in faults}
            done = [pair for pair in chosen if pair[1].path not in faulty]
            plan = await self._planned(done)
        if plan.faults:
            raise plan.faults[0].error
        if done:
            await self._enrolling.let_in(plan, {it.path: it.nkey for _, it in done})
        now = self._clock.now().wall_ms
        changed: dict[str, set[NodePath]] = {}
        for one, request in done:
            changed.setdefault(one.token, set()).add(request.path)
        for token, paths in changed.items():
            self._admissions.decide(token, paths, GRANTED, now)
        await self._keep(changed)
        granted, self._granted = self._granted, asyncio.Event()
        granted.set()
        return [request.path for _, request in done], told

    async def _planned(self, chosen: Sequence[tuple[IssuedToken, TokenRequest]]) -> EnrolmentPlan:
        """What letting them in comes to; one that is in already takes its own place."""
        plan = await self._enrolling.plan(
            [
                NodeSpec(
                    it.path,
                    one.labels,
                    relay=one.relay,
                    replaces=one.replaces or self._enrolling.has_key(it.path, it.nkey),
                )
                for one, it in chosen
            ]
        )
        holders = self._enrolling.holders()
        for at, (_, it) in enumerate(chosen):
            if (holder := holders.setdefault(it.nkey, it.path)) != it.path:
                plan.faults.append(EnrolmentFault(at, key_taken(it.path, holder)))
        plan.faults += _conflicts([it.path for _, it in chosen])
        return plan

    async def _grant_approved(self) -> None:
        passed: set[str] = set()

        def left() -> list[tuple[IssuedToken, TokenRequest]]:
            waiting = self._admissions.waiting()
            return [it for it in waiting if it[0].approved and str(it[1].path) not in passed]

        while sure := left()[:GRANTED_AT_ONCE]:
            async with self._changing:
                _, faults = await self._let_in(sure, partly=True)
            for fault in faults:
                passed.add(fault["path"])
                said = f"{fault['message']}; {fault['remedy']}"
                self._note("JoinRefused", fault["path"], said)


def _request_form(one: IssuedToken, request: TokenRequest) -> Json:
    return {
        "path": str(request.path),
        "said": request.host_name,
        "nkey": request.nkey,
        "askedMs": request.asked_ms,
        "token": one.token,
        "relay": one.relay,
        "labels": dict(one.labels),
    }


def _conflicts(paths: Sequence[NodePath]) -> list[EnrolmentFault]:
    """A fault for each path that several ask for: only a person knows whose it is."""
    remedy = (
        "deny all but one by the id of its token: leafcast node deny ID; "
        "`leafcast node requests -o json` has the ids"
    )
    return [
        EnrolmentFault(
            paths.index(path),
            ApiError("Conflict", f"{count} ask to be {path}, by different tokens", remedy),
        )
        for path, count in Counter(paths).items()
        if count > 1
    ]


def _let_go(path: NodePath) -> JoinVerdict:
    remedy = f"make another token with `leafcast node add {path}` at the centre"
    return JoinVerdict(
        REFUSED, f"{path} was let in, and was removed, revoked or replaced since", remedy
    )


def _told(plan: EnrolmentPlan, fault: EnrolmentFault) -> Json:
    return {**fault.form, "path": str(plan.wanted[fault.at].path)}
