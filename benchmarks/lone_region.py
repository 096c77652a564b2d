"""One region at a time of a tree too large for one process; its centre answers over a pipe."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

from benchmarks.core_tree import FIRST, SESSION_SECONDS, CoreTree, Host
from relay.core import effects as fx
from relay.core import events as ev
from schemas.reports.link import Welcome
from schemas.values.identity import ContentHash, MailKey, NodePath
from schemas.values.wire import decode

WINDOW_SECONDS = 0.15
Mail = tuple[int, MailKey, bytes]
Answer = tuple[list[bytes], list[Mail]]
"""Of the centre to a region's message: welcomes, and the mail that it wrote for it."""


@dataclass(slots=True)
class Told:
    """What the processes are told of the tree and its change."""

    edges: int
    generations: dict[MailKey, int]
    keys: bytes
    snapshot: bytes
    reached: int
    records: dict[NodePath, bytes]
    blobs: dict[ContentHash, bytes]
    # By region, where its mailbox ended before the change, and the mail of that.
    ends: dict[str, int] = field(default_factory=dict)
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
        self.keys, self.snapshot, self.reached = told.keys, told.snapshot, told.reached
        self.generations, self.records = told.generations, told.records
        self.blobs |= told.blobs
        self._end = told.ends[path.name]
        self._pipe = pipe
        self._path = path
        delta = told.delta[path.name]
        self._mail = {delta[1]: delta}

    def live(self) -> Took:
        """Be made, take the delta, and the reports of all edges; the centre is told as it goes."""
        began = time.process_time()
        host = self.make_region(self._path, self._end)
        made = time.process_time()
        # The delta is what it finds as its session begins.
        host.tell(ev.LinkChanged(up=True))
        self.run(SESSION_SECONDS)
        out = time.process_time()
        self.join_edges(host)
        joined = time.process_time()
        said = self.reports(self._path, self.edges, "synced", FIRST)
        folding = time.process_time()
        self.arrive(self._path, said)
        while not host.node.view.count(self.key).exact:
            self.run(WINDOW_SECONDS)
        self.run(WINDOW_SECONDS)
        folded = time.process_time() - folding
        return Took(made - began + joined - out, out - made, folded)

    def _perform(self, host: Host, effect: fx.Effect) -> None:
        match effect:
            case fx.SendHello():
                self._ask(host, "hello", "", effect.data)
            case fx.SendReport():
                self._ask(host, "report", effect.key, effect.data)
            case fx.ResetMail(start):
                kept = sorted(mail for mail in self._mail.values() if mail[0] >= start)
                for at, (sequence, key, data) in enumerate(kept):
                    event = ev.MailArrived(sequence, key, data, len(kept) - at - 1)
                    self._work.append((host, event))
            case _:
                super()._perform(host, effect)

    def _ask(self, host: Host, kind: str, key: str, data: bytes) -> None:
        self._pipe.send((kind, self._path.name, key, data))
        answer: Answer = self._pipe.recv()
        for welcome in answer[0]:
            self._work.append((host, ev.Welcomed(decode(Welcome, welcome))))
        for mail in answer[1]:
            self._mail[mail[1]] = mail
            self._work.append((host, ev.MailArrived(*mail, 0)))


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
        self._welcomes: list[bytes] = []
        self._written_now: list[Mail] = []
        super().__init__(regions, edges)

    def add_regions(self, paths: Iterable[NodePath]) -> None:
        """They live in other processes."""

    def told(self) -> Told:
        """Change the placement, and say what the regions are to hear of it."""
        ends = dict(self.centre.ends)
        self.change()
        delta = {
            name: (mail[self.key][0], self.key, mail[self.key][1])
            for name, mail in self.centre.mail.items()
        }
        return Told(
            len(self.edges),
            self.generations,
            self.keys,
            self.snapshot,
            self.reached,
            self.records,
            self.blobs,
            ends,
            delta,
        )

    def answer(self, kind: str, name: str, key: str, data: bytes) -> Answer:
        """Take a region's message."""
        self._welcomes, self._written_now = [], []
        if kind == "hello":
            self.centre.tell(ev.HelloArrived(name, data))
        else:
            self.up["centre"].add(data)
            self.centre.tell(ev.ReportArrived(name, key, data))
        return self._welcomes, self._written_now

    def _perform(self, host: Host, effect: fx.Effect) -> None:
        if isinstance(effect, fx.SendWelcome):
            self._welcomes.append(effect.data)
            return
        super()._perform(host, effect)
        if isinstance(effect, fx.WriteMail):
            self._written_now.append((host.last, effect.key, effect.data))
