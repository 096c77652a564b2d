"""Bundles that nobody joined with in time are void: the parent takes their keys no more.

A bundle holds a key. The program that joins looks at its expiry, and whoever has the file could do
without that program. So the centre looks, too, and revokes the key of a node that never joined.

A centre that was restored knows of nobody that he joined, and one whose list is damaged knows of no
bundle: they give a day, and shut out then who did not come, in the one case of those that are
listed, in the other of all nodes.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from controllers.nodes import enrol_nodes, nodes
from leafcast.ask.api import ApiError
from leafcast.daemon.nodes.enrolment import Enrolment, States, Tree
from leafcast.doctor.findings import Expiry
from leafcast.local.backup import PENDING
from relay.atomic_file import atomic_write
from relay.ports import BusBroken, Clock
from schemas.codec import from_json
from schemas.identity import NodePath
from schemas.reports import NEVER_JOINED

FILE = "bundles.json"
LOOK_SECONDS = 2.0
"""So much later than its end a bundle may still be joined with by who has a program of his own."""
ANEW_MS = 86_400_000
"""So long all may come of whom the centre does not know whether they did."""
VALID_MS = 86_400_000
"""For so long a bundle is made, unless one says otherwise."""

log = logging.getLogger("leafcast")


class UnclaimedBundles:
    """Remembers bundles until somebody joined with them, or nobody can any more."""

    def __init__(
        self, folder: Path, tree: Tree, enrolling: Enrolment, states: States, clock: Clock
    ) -> None:
        self._file = folder / FILE
        self._tree = tree
        self._enrolling = enrolling
        self._states = states
        self._clock = clock
        self._restored, self._damaged = (folder / PENDING).exists(), False
        self._until: dict[str, tuple[str, int]] = {}
        try:
            self._until = read_unclaimed(from_json(self._file.read_bytes()))
        except FileNotFoundError:
            pass
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            said = "nodes that have not joined in a day from now have to be added again"
            log.warning("%s is damaged: %s: %r", self._file, said, error)
            self._damaged = True

    def handed_out(self, path: NodePath, nkey: str, until_ms: int) -> None:
        """A bundle with this key was made."""
        self._begin_anew(self._clock.now().wall_ms)
        self._keep({**self._until, str(path): (nkey, until_ms)})

    async def run(self) -> None:
        """Look now and then, without end."""
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            try:
                await self.void_expired(self._clock.now().wall_ms)
            except (ApiError, BusBroken, OSError) as error:
                log.warning("expired bundles are looked at later: %s", error)

    async def void_expired(self, now_ms: int) -> list[NodePath]:
        """Do it once; whose keys are void now. Raises ApiError or BusBroken."""
        self._begin_anew(now_ms)
        due = {path: nkey for path, (nkey, until_ms) in self._until.items() if until_ms < now_ms}
        if not due:
            return []
        states = {form["path"]: form["state"] for form in (await self._states.tree())["nodes"]}
        void = []
        for path, nkey in due.items():
            record = self._enrolling.record(NodePath.parse(path))
            if record is not None and record.nkey == nkey and states.get(path) == NEVER_JOINED:
                void.append(record.path)
        await enrol_nodes(self._tree.issuer(), dict.fromkeys(void, ""))
        for where in void:
            log.info("nobody joined as %s in time: its bundle is void", where)
        self._keep({path: it for path, it in self._until.items() if path not in due})
        return void

    def expiries(self, states: Mapping[str, str]) -> list[Expiry]:
        """The bundles that someone may still join with, by the state of each node."""
        return [
            Expiry(
                f"the bundle for {path}",
                until_ms - VALID_MS,
                until_ms,
                "nobody joined with it yet, and nobody can afterwards",
                f"join with it, or make another with leafcast node add {path} --replace --bundle",
                needed=False,
                about=path,
            )
            for path, (_, until_ms) in self._until.items()
            if states.get(path) == NEVER_JOINED
        ]

    def _begin_anew(self, now_ms: int) -> None:
        """Once, if it is not known who joined, or what was handed out; raises BusBroken."""
        if not (self._restored or self._damaged):
            return
        until = {
            path: (nkey, max(end_ms, now_ms + ANEW_MS))
            for path, (nkey, end_ms) in self._until.items()
        }
        if self._damaged:
            for node in nodes(self._tree.issuer()):
                if not self._tree.runs_here(node.path):
                    until[str(node.path)] = (node.nkey, now_ms + ANEW_MS)
        self._keep(until)
        self._restored = self._damaged = False

    def _keep(self, until: dict[str, tuple[str, int]]) -> None:
        self._until = until
        atomic_write(self._file, json.dumps(until))


def read_unclaimed(form: Mapping[str, Any]) -> dict[str, tuple[str, int]]:
    """By path, key and end; raises ValueError, TypeError, AttributeError or KeyError."""
    return {
        str(NodePath.parse(path)): (str(nkey), int(until_ms))
        for path, (nkey, until_ms) in form.items()
    }
