"""One region at a time of a tree too large for one process; its centre answers over a pipe."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.core_tree import SESSION_SECONDS, CoreTree, Host
from relay.core import effects as fx
from relay.core import events as ev
from schemas.identity import ContentHash, MailKey, NodePath
from schemas.reports import SessionMessage, decode

WINDOW_SECONDS = 0.15
Mail = tuple[int, MailKey, bytes]
Answer = tuple[list[bytes], list[Mail]]
"""Of the centre to a region's message: sessions, and the mail that it wrote for it."""


@dataclass(slots=True)
class Told:
    """What the processes are told of the tree and its change; mail is that of each region."""

    edges: int
    generation: int
    arm: str
    keys: bytes
    blobs: dict[ContentHash, bytes]
    before: dict[str, list[Mail]] = field(default_factory=dict)
    delta: dict[str, Mail] = field(default_factory=dict)


@dataclass(slots=True)
class Took:
    """One region's processor seconds: made, one delta sent to all edges, their reports folded."""

    made: float
    out: float
    folded: float


class LoneRegion(CoreTree):
    """A region with its edges, whose messages to the centre go through a pipe."""

    def __init__(self, path: NodePath, told: Told, pipe: Connection) -> None:
        self.begin(told.edges)
        self.keys = told.keys
        self.blobs |= told.blobs
        self._told = told
        self._pipe = pipe
        self._path = path
        self._mail = {key: (sequence, key, data) for sequence, key, data in told.before[path.name]}

    def live(self) -> Took:
        """Be made, take the delta, and the reports of all edges; the centre is told as it goes."""
        began = time.process_time()
        self.add_region(self._path)
        self.run(SESSION_SECONDS)
        made = time.process_time() - began
        host, name = self.hosts[self._path], self._path.name
        # The centre wrote it before this region came: to the region it comes as if after all else.
        _, key, data = self._told.delta[name]
        sequence = max(mail[0] for mail in self._mail.values()) + 1
        began = time.process_time()
        host.tell(ev.MailArrived(sequence, key, data, 0))
        self.run(WINDOW_SECONDS)
        out = time.process_time() - began
        self.generation = self._told.generation
        said = self.reports(self._path, self.edges, "synced", self._told.arm)
        began = time.process_time()
        self.arrive(self._path, said)
        while not host.node.summary(self.key).complete:
            self.run(WINDOW_SECONDS)
        self.run(WINDOW_SECONDS)
        return Took(made, out, time.process_time() - began)

    def _perform(self, host: Host, effect: fx.Effect) -> None:
        match effect:
            case fx.SendHeartbeat():
                sessions, mail = self._ask("heartbeat", "", effect.data)
                self._mail |= {each[1]: each for each in mail}
                for data in sessions:
                    self._work.append((host, ev.SessionArrived(decode(SessionMessage, data))))
            case fx.SendReport():
                self._ask("report", effect.key, effect.data)
            case fx.ResetMail():
                kept = sorted(self._mail.values())
                for at, (sequence, key, data) in enumerate(kept):
                    event = ev.MailArrived(sequence, key, data, len(kept) - at - 1)
                    self._work.append((host, event))
            case _:
                super()._perform(host, effect)

    def _ask(self, kind: str, key: str, data: bytes) -> Answer:
        self._pipe.send((kind, self._path.name, key, data))
        answer: Answer = self._pipe.recv()
        return answer


def work(told: Told, names: Sequence[str], pipe: Connection) -> None:
    """Let regions live one after another; in a process of its own."""
    for name in names:
        region = LoneRegion(NodePath((name,)), told, pipe)
        pipe.send(("took", name, "", region.live()))
        pipe.recv()
    pipe.send(("done", "", "", b""))


class Centre(CoreTree):
    """The centre of all regions: real, and told by pipes."""

    def __init__(self, regions: int, edges: int) -> None:
        super().__init__(0, edges)
        self._sessions: list[bytes] = []
        self._written_now: list[fx.WriteMail] = []
        for number in range(regions):
            self.add_node(NodePath((f"r{number}",)))

    def told(self) -> Told:
        """Change the placement, and say what the regions are to hear of it."""
        before = {name: _in_order(mail) for name, mail in self.centre.mail.items()}
        self.change()
        delta = {
            name: (*mail[self.key][:1], self.key, mail[self.key][1])
            for name, mail in self.centre.mail.items()
        }
        return Told(
            len(self.edges), self.generation, self.arm, self.keys, self.blobs, before, delta
        )

    def answer(self, kind: str, name: str, key: str, data: bytes) -> Answer:
        """Take a region's message."""
        self._sessions, self._written_now = [], []
        if kind == "heartbeat":
            self.centre.tell(ev.HeartbeatArrived(name, data))
        else:
            self.up["centre"].add(data)
            self.centre.tell(ev.ReportArrived(name, key, data))
        mail = self.centre.mail[name]
        return self._sessions, [(mail[w.key][0], w.key, w.data) for w in self._written_now]

    def _perform(self, host: Host, effect: fx.Effect) -> None:
        if isinstance(effect, fx.SendSession):
            self._sessions.append(effect.data)
            return
        if isinstance(effect, fx.WriteMail):
            self._written_now.append(effect)
        super()._perform(host, effect)


def _in_order(mail: Any) -> list[Mail]:
    return sorted((sequence, key, data) for key, (sequence, data) in mail.items())
