"""A node asks to be let in with a token, until it is answered; its keys are made and stay here.

It asks through a nats-server of its own, over the very link that it will have as a node: whatever
that goes through (TLS, WebSocket, proxies) is tried at once. What it asked is written down first,
so that a later start asks the same with the same keys, and gets the same answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypeVar

from leafcast.data_dir import JOINED_FILE, DataDir, DataDirUnusable, make_private
from leafcast.join.default_folder import folder_of_token
from leafcast.join.folder import (
    GRANT_FILE,
    REQUEST_FILE,
    REQUEST_FOLDER,
    JoinedFolder,
    left_here,
    misfit,
    node_in,
)
from leafcast.join.joined_node import REFUSED_SECONDS, JoinFailed
from leafcast.join.kept_grant import (
    GrantUnreadable,
    KeptGrant,
    kept_grant,
    read_grant,
    write_grant,
)
from leafcast.machine import host_name
from leafcast.node.credentials.account_seeds import new_seeds
from relay.adapters.jetstream.request_reply import QuestionUnanswered, ask
from relay.adapters.server.guard import ProcessGuard
from relay.adapters.server.link_trouble import NOT_LET_IN, cause_of, trouble_of
from relay.adapters.server.nats_config import Neighbours, ParentRemote
from relay.adapters.server.nats_server import EmbeddedServer
from relay.adapters.server.nkey_pairs import (
    BadNkey,
    entrance_pair,
    new_user_nkey,
    public_nkey,
    seed_entropy,
)
from relay.adapters.server.upgrade_probe import cause_at
from relay.adapters.spaces.connection import Client, space_connection
from relay.atomic_file import atomic_write, remove_folder
from relay.ports import Clock, Dice
from schemas.enrolment.enrolment import (
    DENIED,
    GRANTED,
    NO_WAY_UP,
    REFUSED,
    UNKNOWN_TOKEN,
    JoinAnswer,
    JoinRequest,
    NoAnswer,
    SignedRequest,
    open_answer,
    sign_request,
)
from schemas.enrolment.member_requests import MemberAnswer
from schemas.enrolment.tokens import Token
from schemas.values.codec import from_json
from schemas.values.identity import NodePath, random_id
from schemas.values.refusals import RecordRefused
from schemas.values.wire import encode

FORMAT = 1
ANSWER_SECONDS = 12.0
RETRY_SECONDS = 1.0
DOUBTS_MAX = 4
"""So often an answer that no one vouches for is doubted before it is believed."""

_ASKING = "asking"
_NOT_REACHED, _NO_WAY, _WAITS = "not reached", "no way", "waits"

Answer = TypeVar("Answer", JoinAnswer, MemberAnswer)
Opened = Callable[[Token, SignedRequest, bytes], Answer]
"""What the centre answered to a request; raises NoAnswer or RecordRefused."""


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """What a folder remembers of its request; once it is granted the seed is with the grant."""

    token: str
    path: str
    seed: str = field(repr=False)


class JoinRequester:
    """One node that asks; `say` tells the user what becomes of it."""

    def __init__(  # noqa: PLR0913 - most go out without a proxy
        self,
        urls: tuple[str, ...],
        token: Token,
        path: NodePath,
        folder: Path,
        clock: Clock,
        dice: Dice,
        say: Callable[[str], None],
        *,
        proxy: str = "",
    ) -> None:
        self._proxy = proxy
        self._urls = urls
        self._at = ", ".join(urls)
        self._token = token
        self._path = path
        self._folder = folder
        self._clock = clock
        self._dice = dice
        self._say = say
        self._told = self._key = ""

    def granted_before(self) -> KeptGrant | None:
        """What an earlier start with this very token came to in this folder; None if damaged."""
        return self._granted_in(self._folder)

    def _granted_in(self, folder: Path) -> KeptGrant | None:
        try:
            kept, asked = read_grant(folder / GRANT_FILE), _pending_in(folder)
        except GrantUnreadable:
            return None
        # A former release remembered the token with the request.
        by = kept.token or (asked.token if asked is not None and not asked.seed else "")
        is_same = by == self._token.token_id and kept.path == self._path
        return kept if is_same else None

    async def run(self) -> KeptGrant:
        """Ask until it is granted; the grant is in the folder then.

        Raises JoinFailed if it is not granted, DataDirUnusable if the folder is another's.
        """
        make_private(self._folder)
        place = DataDir(self._folder.absolute())
        with ExitStack() as locks:
            locks.enter_context(place.locked())
            former = self._former_node(place)
            elsewhere = self._asked_elsewhere(locks)
            kept = self._granted_in(elsewhere) if elsewhere is not None else None
            if kept is None:
                kept = await self._granted(place, former, elsewhere)
            try:
                found = left_here(place, kept)
            except DataDirUnusable:
                self._leave(kept)
                raise
            if found is None and elsewhere is not None and (elsewhere / JOINED_FILE).exists():
                reason = f"the node that joined with this token has {elsewhere}"
                raise DataDirUnusable(place.folder, reason, f"say --data-dir {elsewhere}")
            write_grant(self._folder / GRANT_FILE, kept)
            (self._folder / REQUEST_FILE).unlink(missing_ok=True)
            if elsewhere is not None:
                # The node's key is here from now on, and no other folder may come with it.
                remove_folder(elsewhere)
        return kept

    async def _granted(
        self, place: DataDir, former: JoinedFolder | None, elsewhere: Path | None
    ) -> KeptGrant:
        """Ask until it is granted; raises JoinFailed or DataDirUnusable."""
        asked = self._remembered(elsewhere)
        self._key = public_nkey(asked.seed)
        request = JoinRequest(self._path, self._key, host_name())
        signed = sign_request(self._token, request, seed_entropy(asked.seed))
        try:
            answer = await self.ask(lambda: signed, open_answer)
        except JoinFailed as failed:
            if former is not None and self._path in former.former:
                raise DataDirUnusable(place.folder, *misfit(former, self._path)) from failed
            raise
        assert answer.grant is not None
        return kept_grant(answer.grant, asked.seed, self._token.token_id)

    def _former_node(self, place: DataDir) -> JoinedFolder | None:
        """The node whose folder this is already; raises DataDirUnusable if no token leads there."""
        found = node_in(place, self._token.tree)
        # Only the token of a move names another path than its node had, and that names one.
        if found is not None and found.path != self._path and self._token.path is None:
            raise DataDirUnusable(place.folder, *misfit(found, self._path))
        return found

    def _asked_elsewhere(self, locks: ExitStack) -> Path | None:
        """The folder where this token was used before its node's own was named; locked.

        Raises DataDirUnusable while a process uses that.
        """
        folder = folder_of_token(self._token, self._path).absolute()
        if folder == self._folder.absolute() or not folder.is_dir():
            return None
        asked = _pending_in(folder)
        is_asked = asked is not None and asked.seed and asked.token == self._token.token_id
        if not is_asked and self._granted_in(folder) is None:
            return None
        locks.enter_context(DataDir(folder).locked())
        return folder

    def _leave(self, kept: KeptGrant) -> None:
        """Keep the grant where a start in the node's own folder finds it: this is another's."""
        folder = folder_of_token(self._token, self._path).absolute()
        if folder == self._folder.absolute() or (folder / JOINED_FILE).exists():
            return
        with suppress(OSError, DataDirUnusable):
            make_private(folder)
            write_grant(folder / GRANT_FILE, kept)
            (self._folder / REQUEST_FILE).unlink(missing_ok=True)

    async def ask(self, request: Callable[[], SignedRequest], opened: Opened[Answer]) -> Answer:
        """Ask until it is granted, with what `request` says each time; the answer.

        Raises JoinFailed.
        """
        try:
            return await self._ask(request, opened)
        finally:
            with suppress(OSError):
                remove_folder(self._folder / REQUEST_FOLDER)

    async def _ask(self, request: Callable[[], SignedRequest], opened: Opened[Answer]) -> Answer:
        seed, _ = entrance_pair(self._token.tree)
        accounts = new_seeds(self._dice)
        # A parent keeps one link of each name, the newest.
        name = f"asking.{random_id(self._dice.entropy(16))[:12]}"
        server = EmbeddedServer(
            self._folder / REQUEST_FOLDER,
            # The centre's own name is for the centre's servers.
            self._path if not self._path.is_root else NodePath((_ASKING,)),
            accounts,
            # Whom it believes is told by the answer: whoever else is there can answer nothing.
            Neighbours(ParentRemote(self._urls, seed, name, unchecked=True, proxy=self._proxy)),
            guard=(guard := ProcessGuard()),
            clock=self._clock,
        )
        async with guard, server, space_connection(server.url, accounts.uplink, name) as client:
            return await self._until_granted(server, client, request, opened)

    async def _until_granted(
        self,
        server: EmbeddedServer,
        client: Client,
        request: Callable[[], SignedRequest],
        opened: Opened[Answer],
    ) -> Answer:
        doubts, patient_until = 0, self._clock.now().seconds + REFUSED_SECONDS
        while True:
            pause = RETRY_SECONDS
            answer = await self._answer(client, request(), opened)
            if answer is not None and not isinstance(answer, (NoAnswer, RecordRefused)):
                if answer.state == GRANTED:
                    return answer
                if answer.state in (DENIED, REFUSED):
                    raise JoinFailed(self._path, answer.reason, answer.remedy)
                self._tell(_WAITS, self._waiting(answer))
                doubts, pause = 0, float(answer.again_seconds or RETRY_SECONDS)
            elif answer is not None:
                doubts += 1
                self._judge(answer, doubts)
            elif self._clock.now().seconds <= patient_until:
                pass  # The link is on its way.
            elif trouble_of(server.log) == NOT_LET_IN:
                raise _unknown_tree(self._path, self._at)
            else:
                cause, remedy = cause_of(server.log)
                why = await cause_at(self._urls, cause, remedy, self._proxy)
                self._tell(
                    _NOT_REACHED + cause,
                    f"the tree is not reached{why or ' at ' + self._at}; trying again",
                )
            await self._clock.sleep(pause)

    async def _answer(
        self, client: Client, request: SignedRequest, opened: Opened[Answer]
    ) -> Answer | NoAnswer | RecordRefused | None:
        """The centre's answer, what there is in its place, or None: nobody took the request."""
        try:
            answer = await ask(client, "enrol.ask", encode(request), ANSWER_SECONDS)
        except QuestionUnanswered:
            return None
        try:
            return opened(self._token, request, answer)
        except (NoAnswer, RecordRefused) as fault:
            return fault

    def _judge(self, fault: NoAnswer | RecordRefused, doubts: int) -> None:
        """Raises JoinFailed for what was said often enough to be believed."""
        if isinstance(fault, NoAnswer) and fault.word == NO_WAY_UP:
            said = f"the relay at {self._at} does not reach the centre; trying again"
            return self._tell(_NO_WAY, said)
        if doubts < DOUBTS_MAX:
            return None
        if isinstance(fault, NoAnswer) and fault.word == UNKNOWN_TOKEN:
            raise _unknown_token(self._path, self._at)
        raise JoinFailed(
            self._path,
            f"{self._at} answers what the token does not fit: {fault}",
            "see whether the address is the one that `leafcast node add` printed",
        )

    def _waiting(self, answer: JoinAnswer | MemberAnswer) -> str:
        if answer.reason:
            return f"{self._path} waits to be let in: {answer.reason}"
        return f"{self._path} asked to be let in; at the centre: leafcast node approve {self._path}"

    def _tell(self, what: str, said: str) -> None:
        if what != self._told:
            self._told = what
            self._say(said)

    def _remembered(self, elsewhere: Path | None) -> PendingRequest:
        """The request of an earlier start with this token, or a new one, written down."""
        asked = _pending_in(elsewhere or self._folder)
        if asked is None or asked.token != self._token.token_id or not asked.seed:
            seed, _ = new_user_nkey(self._dice.entropy(32))
            asked = PendingRequest(self._token.token_id, str(self._path), seed)
            self._keep(asked)
        if asked.path != str(self._path):
            reason = f"it asked with this token to be {asked.path}, not {self._path}"
            raise DataDirUnusable(self._folder, reason, "name that path, or another --data-dir")
        return asked

    def _keep(self, asked: PendingRequest) -> None:
        atomic_write(self._folder / REQUEST_FILE, request_text(asked))


def _pending_in(folder: Path) -> PendingRequest | None:
    """What a folder remembers; nothing if it is damaged, for then a new key is asked with."""
    try:
        return read_pending((folder / REQUEST_FILE).read_bytes())
    except (OSError, ValueError, KeyError, TypeError, AttributeError, BadNkey):
        return None


def request_text(asked: PendingRequest) -> str:
    """What the file of a request says."""
    return json.dumps({"format": FORMAT, **asdict(asked)}) + "\n"


def read_pending(data: bytes) -> PendingRequest:
    """What a file of a request says; raises ValueError, KeyError, TypeError or BadNkey."""
    form = from_json(data)
    if form["format"] != FORMAT:
        raise ValueError("it is of another version")
    asked = PendingRequest(str(form["token"]), str(form["path"]), str(form["seed"]))
    NodePath.parse(asked.path)
    if asked.seed:
        public_nkey(asked.seed)
    return asked


def _unknown_tree(path: NodePath, url: str) -> JoinFailed:
    reason = f"the server at {url} does not know the tree that the token is of"
    return JoinFailed(path, reason, "see whether address and token are of the same tree")


def _unknown_token(path: NodePath, url: str) -> JoinFailed:
    reason = f"the tree at {url} does not know the token: it is of another tree, or very old"
    remedy = f"make another with `leafcast node add {path}` at the centre"
    return JoinFailed(path, reason, remedy)
