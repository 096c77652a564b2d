"""Asks between the command line and any node: signed here at the centre, answered at their path."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from controllers.issuing.keys import CentreKeys
from leafcast.ask.api import ApiError, verb
from relay.ports import Clock, Dice
from relay.shell.asker import Asker, AskFailed
from schemas.content.answer_sealing import AnswerKey
from schemas.records.asks import GET, AskFault
from schemas.records.records import API_ASK, AskRecord, Source, encode_payload
from schemas.records.signed_answers import is_signed, without_signature
from schemas.values.identity import NodePath, random_id

EXPIRES_MS = 60_000

NOT_SIGNED = "NotSigned"
_REMEDIES = {
    "Unreachable": "try again when it is back; `leafcast tree` shows who is reached",
    "NoSuchNode": "`leafcast node list` shows the nodes there are",
    "Busy": "ask again in a moment",
    "NoAnswer": "ask again",
    "UnknownVerb": "the program of that node is older than this question: upgrade it",
    "NoCluster": "name an edge: `leafcast tree` shows them",
    NOT_SIGNED: "nothing was changed; start that node with this version of leafcast, and if it "
    "has that, do not trust the relays above it",
}


@dataclass(slots=True)
class CentreAsks:
    """Asks put by the centre; each is for one verb and one path, expires, and brings a key.

    What it is given raises BusBroken between runs of the centre.
    """

    # Those of the centre's run now.
    _asker: Callable[[], Asker]
    _keys: Callable[[], CentreKeys]
    _clock: Clock
    _dice: Dice
    # The public keys that the node record of a path names.
    _nkeys: Callable[[NodePath], tuple[str, ...]]

    async def ask(self, path: NodePath, verb: str, arguments: Mapping[str, str]) -> Any:
        """The answer of the node at `path`, a JSON value; raises AskFailed.

        Each relay on the way could give it: it is to be shown, and not to be acted on.
        """
        return without_signature((await self._ask(path, verb, arguments))[1])

    async def ask_signed(self, path: NodePath, verb: str, arguments: Mapping[str, str]) -> Any:
        """The answer that the node itself gives, by a key of its record; raises AskFailed.

        The centre has no such key, and there is nobody on the way to it.
        """
        record, answer = await self._ask(path, verb, arguments)
        tree = self._keys().tree
        if not path.is_root and not is_signed(self._nkeys(path), tree, record, answer):
            message = f"what came as the answer of {path} is not signed by its key"
            raise AskFailed(AskFault(NOT_SIGNED, message, str(path)))
        return without_signature(answer)

    async def _ask(
        self, path: NodePath, verb: str, arguments: Mapping[str, str]
    ) -> tuple[AskRecord, Any]:
        keys = self._keys()
        now_ms = self._clock.now().wall_ms
        key = AnswerKey(self._dice.entropy(32))
        record = AskRecord(
            source=Source(API_ASK, keys.tree, "", random_id(self._dice.entropy(16))),
            generation=max(now_ms, keys.ring.since),
            term="",
            trace="",
            verb=verb,
            path=path,
            expires_ms=now_ms + EXPIRES_MS,
            arguments=dict(arguments),
            answer_key=key.public,
        )
        envelope = keys.signing.seal("ask", encode_payload(record))
        return record, await self._asker().ask(record.source.name, verb, envelope, key)

    @verb("ask")
    async def serve(self, path: str, verb: str = GET, **arguments: Any) -> Any:
        """The verb `ask` of the daemon; raises ApiError, or BadIdentity for a path that is none.

        `get` takes group, resource, namespace, name, selector (a Kubernetes label selector as JSON
        text), after, limit: `{objects, next}`. `status` takes placement (its mail key), after,
        limit. `node` takes nothing.
        """
        wrong = [name for name, value in arguments.items() if not isinstance(value, str)]
        if wrong:
            raise ApiError("Invalid", f"not a string: {', '.join(wrong)}", "say it as a string")
        try:
            return await self.ask(NodePath.parse(path), verb, arguments)
        except AskFailed as failed:
            raise api_error(failed.fault) from failed


def api_error(fault: AskFault) -> ApiError:
    """What the command line says of an ask without answer."""
    message = fault.message
    if fault.since_ms:
        since = dt.datetime.fromtimestamp(fault.since_ms // 1000, dt.UTC)
        message = f"{message} since {since.isoformat().replace('+00:00', 'Z')}"
    return ApiError(fault.reason, message, _REMEDIES.get(fault.reason, ""))
