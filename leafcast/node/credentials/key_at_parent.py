"""A node's key at its parent, as it is used: it signs answers, opens seals, and is changed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from leafcast.node.credentials.own_key import Linked, OwnKey
from leafcast.node.options import NodeEnvironment, NodeIdentity, ParentAccess
from relay.adapters.server.logged_process import ServerFailed
from relay.adapters.server.nkey_pairs import private_key, seed_entropy
from relay.ports import BusBroken
from relay.shell.asker import AskFailed
from schemas.records.asks import AskFault
from schemas.records.records import AskRecord
from schemas.records.signed_answers import signed

ANSWERED_SECONDS = 0.5

log = logging.getLogger("leafcast")


class KeyAtParent:
    """The key of one node; the centre has none."""

    def __init__(
        self, environment: NodeEnvironment, identity: NodeIdentity, uplink: ParentAccess | None
    ) -> None:
        self._environment = environment
        self._path = identity.path
        self._given_seed = uplink.link.seed if uplink is not None else ""
        self._own: OwnKey | None = None
        if uplink is not None and uplink.keep_seed is not None:
            keep, folder = uplink.keep_seed, identity.folder
            self._own = OwnKey(folder, self._given_seed, keep, environment.clock, environment.dice)
        self._change_requested, self._next_nkey = asyncio.Event(), ""

    def rekey(self, arguments: Mapping[str, str]) -> Mapping[str, str]:
        """Its key now, and what is to take its place: `{nkey, next}`.

        With `make` the next one is made, with `use` it is taken once this was answered. Raises
        AskFailed.
        """
        key = self._own
        if key is None:
            reason = "its key is not its own to change"
            raise AskFailed(AskFault("NotSupported", reason, str(self._path)))
        nkey, following = key.nkey, key.make_next() if "make" in arguments else ""
        if use := arguments.get("use"):
            self._next_nkey = use
            self._change_requested.set()
        return {"nkey": nkey, "next": following}

    def sign(self, record: AskRecord, answer: Mapping[str, object]) -> Mapping[str, object]:
        """The answer as this node's own; the centre's as it is."""
        seed = self._own.seed if self._own is not None else self._given_seed
        return (
            signed(seed_entropy(seed), self._environment.tree, record, answer) if seed else answer
        )

    def private_keys(self) -> tuple[bytes, ...]:
        """What opens what is sealed to this node: they follow from its key at its parent."""
        if self._own is not None:
            return self._own.private_keys()
        return (private_key(self._given_seed),) if self._given_seed else ()

    async def change_over(self, server: Callable[[], Linked]) -> None:
        """Use the next key when told to; what was answered before goes out first.

        Runs until cancelled; ends at once where the key is not the node's own to change.
        """
        while self._own is not None:
            await self._change_requested.wait()
            self._change_requested.clear()
            await self._environment.clock.sleep(ANSWERED_SECONDS)
            try:
                await self._own.use(self._next_nkey, server())
            except (BusBroken, OSError, ServerFailed) as error:
                log.warning("node %s keeps its key: %s", self._path, error)
