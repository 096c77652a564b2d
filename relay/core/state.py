"""What a node is at a moment: its records, its children, its destination, and how they meet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from relay.core.admission import READS_AT_ONCE, Admission
from relay.core.asking import Heard
from relay.core.book import Held, is_delta
from relay.core.children import Child, Standing
from relay.core.content import Content
from relay.core.edge import CONTENT_REFUSED, Edge
from relay.core.effects import Effect, Noted, RemoveChild, StoreOwn
from relay.core.events import Instant, Remembered
from relay.core.inbox import SUPERSEDED, Inbox
from relay.core.index import IndexView
from relay.core.mailboxes import Mailboxes
from relay.core.reduce import EMPTY
from relay.core.reporting import UNCONCERNED, Facts, Reporting
from relay.core.trust import Trust
from relay.core.turns import Send, Supply, next_batch
from relay.core.where import Where
from schemas.identity import INDEX_KEY, KeyId, MailKey, NodePath, TreeId
from schemas.records import LocationRecord, NodeRecord, Profile
from schemas.refusals import RecordRefused
from schemas.reports import Cursor, Done, ExceptionSample, Summary, decode

REFUSED_CONTENT_HOLDS_SECONDS = 60.0
QUIET_SECONDS = 2.0
STALE = "StaleView: its parent has shown it no newer index for 20 minutes"
UNREAD = "StaleView: its mailbox at the parent has not come to an end for 20 minutes"
WITHHELD = "Withheld: it is in force, and missing from the mailbox at the parent; it is kept"
OUTDATED = "Withheld: a newer version is in force, and missing from the mailbox at the parent"
TOMBSTONES_MAX = 4096
"""How many deleted profiles, locations and nodes a node remembers, so that none comes back.

No index says which of these are in force; without a bound memory would grow with time.
"""


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """Who a node is.

    `incarnation` is random, new at each start; `attached` says that a space, and so a destination,
    may hang here. `former` are paths at which this very node hung before it was moved.
    Of its children at most `reads_at_once` read their mail at a time.
    """

    path: NodePath
    tree: TreeId
    roots: Mapping[KeyId, bytes]
    incarnation: str
    attached: bool = False
    home: str = ""
    former: tuple[NodePath, ...] = ()
    reads_at_once: int = READS_AT_ONCE


class State:
    """The parts of one node, wired together."""

    def __init__(
        self, config: NodeConfig, remembered: Remembered, done: Iterable[Done], now: Instant
    ) -> None:
        self.config = config
        self.is_root = config.path.is_root
        self.now = now
        self.out: list[Effect] = []
        self.order = 0
        self.refused = self.disbelieved = 0
        self.unproven: frozenset[str] = frozenset()
        self.old_view = ""
        self.index_since = now.seconds
        """When a newer index came last, or the centre made it: by this node's own clock."""
        self.withheld: dict[MailKey, str] = {}
        self.swept_through = 0
        self.quiet_at: float | None = None
        """When a heartbeat is due: mail came, or word of what is held here or below beyond it."""
        self.issuing = False
        self.labels_dirty = True
        self.held: dict[MailKey, Held] = {}
        self._deltas: dict[MailKey, Held] = {}
        self._deeper: dict[str, dict[MailKey, None]] = {}
        self.unmeant: dict[MailKey, None] = {}
        self._tombstones: dict[MailKey, None] = {}
        self.children: dict[str, Child] = {}
        self.joined = set(remembered.heard)
        """The children of which anything was ever heard, by any run of this node."""
        self.admission = Admission(config.reads_at_once)
        self.where = Where(config.path)
        self.content = Content(remembered.blobs, self.out)
        self.index = IndexView()
        self.inbox = Inbox(Trust(config.tree, config.roots), self.index)
        self.mailboxes = Mailboxes(
            self.out, self.meant, self.supply, self.held.get, lambda: self.now.wall_ms
        )
        self.mailboxes.calm = self.is_root
        self.mailboxes.unproven = self._is_unproven
        below = str(config.path) if config.path.is_root else f"{config.path}/"
        self.reporting = Reporting(self.place, self.facts, below)
        self.edge: Edge | None = None
        if config.attached:
            self.edge = Edge(config.path, self.where, self.content, done, config.former)

    @property
    def stale(self) -> bool:
        """Whether the parent shows an old view."""
        return bool(self.old_view)

    def restore(self, data: bytes) -> None:
        """Take in what the cursor in OWN says."""
        try:
            cursor = decode(Cursor, data)
        except RecordRefused as error:
            self.out.append(Noted("Unreadable", "own cursor", error.reason))
            return
        self.inbox.restore(cursor)
        self.unproven = frozenset(cursor.unproven)

    def cursor(self) -> Cursor:
        """What the cursor in OWN shall say."""
        unproven = sorted(name for name, child in self.children.items() if not child.proven)
        return self.inbox.cursor(tuple(unproven))

    def next_order(self) -> int:
        self.order += 1
        return self.order

    def begin_batch(self, *, more: bool) -> None:
        """Let what takes wait if `more` is to come than what is being accepted."""
        self.issuing = self.is_root and more
        self.mailboxes.calm = self.mailboxes.calm and not more

    def end_batch(self) -> bool:
        """Let children have what takes, if nothing is pending; whether that is news.

        What is accepted from then on belongs to another batch.
        """
        boxes = self.mailboxes
        former = boxes.calm
        boxes.calm = calm = not self.issuing if self.is_root else self.inbox.calm
        if calm:
            self.order = next_batch(self.order)
        return calm and not former

    def standing(self) -> dict[str, Any]:
        """How the node is in session, and how much it holds, refused and lets be read."""
        admission, inbox, now = self.admission, self.inbox, self.now.seconds
        contested = {name: it.contests_lately(now) for name, it in self.children.items()}
        reads = {"now": admission.reading, "waiting": admission.waiting, "most": admission.most}
        return {
            "epoch": inbox.epoch,
            "cursor": {"incarnation": inbox.incarnation, "sequence": inbox.answered},
            "indexGeneration": self.index.generation,
            "indexAgeMs": int((self.now.seconds - self.index_since) * 1000),
            "stale": self.stale,
            "placements": len([held for held in self.deltas() if not held.record.deleted]),
            "refused": self.refused,
            "disbelieved": self.disbelieved,
            "refusedOf": {n: child.refused for n, child in self.children.items() if child.refused},
            "contestedOf": {n: contests for n, contests in contested.items() if contests},
            "reads": reads,
        }

    def refuse(self, reason: str, subject: str, detail: str) -> None:
        """Count and note mail that is not taken; what is older than the index is honest mail."""
        self.refused += 1
        self.disbelieved += reason != SUPERSEDED
        self.out.append(Noted(reason, subject, detail))

    @property
    def on_its_way(self) -> int:
        """How many messages are on their way to this node, to its children, or wait here."""
        boxes = self.mailboxes.boxes.values()
        going = sum(len(box.flying) + len(box.queue) for box in boxes)
        return self.inbox.unread + len(self.inbox.parked) + going

    def place(self, child: str) -> int:
        """A small number for each child, for the blocks of the fold."""
        return self.where.branch(child).place

    def touch(self, key: MailKey) -> None:
        """The node's own report on the placement may have changed."""
        self.reporting.dirty[key] = None

    def bury(self, held: Held) -> None:
        """Count a record among the tombstones if it is one that no index will ever clear."""
        self._tombstones.pop(held.key, None)
        if held.record.deleted and not is_delta(held) and not self.is_root:
            self._tombstones[held.key] = None

    def bound_tombstones(self) -> None:
        """Let go of the oldest tombstones beyond the bound that every child has read."""
        beyond, boxes = len(self._tombstones) - TOMBSTONES_MAX, self.mailboxes.boxes.values()
        if beyond <= 0:
            return
        read = (k for k in self._tombstones if not any(k in b.slots or k in b.queue for b in boxes))
        for key in list(islice(read, beyond)):
            del self._tombstones[key]
            self.let_go(key)
            self.out.append(StoreOwn(key, None))

    def deltas(self) -> list[Held]:
        """The placements' deltas held, tombstones included."""
        return list(self._deltas.values())

    def look_again(self, child: str) -> None:
        """Look again at which deltas concern a child: what is known of labels below it changed."""
        for held in self._deltas.values():
            self.mailboxes.mark(child, held.key, held.order)
        self.mailboxes.flush(child)

    def recount(self, child: str) -> None:
        """Look again at which placements a child has a say in: none that no longer concern it."""
        for key in self.reporting.keys_of(child):
            self.reporting.refresh(child, key)

    def hold(self, held: Held) -> None:
        """Hold a record, in place of the one of its key."""
        self.held[held.key] = held
        if is_delta(held):
            self._deltas[held.key] = held
        elif (step := self._way_to(held)) is not None:
            self._deeper.setdefault(step, {})[held.key] = None

    def let_go(self, key: MailKey) -> None:
        """Hold the record no longer."""
        held = self.held.pop(key)
        self._deltas.pop(key, None)
        self.unmeant.pop(key, None)
        if (step := self._way_to(held)) is not None:
            self._deeper[step].pop(key, None)

    def nodes_below(self, child: str) -> list[Held]:
        """The records of nodes below a child; its own is not for it."""
        return [self.held[key] for key in self._deeper.get(child, ())]

    def _way_to(self, held: Held) -> str | None:
        """The child that a node record is passed on to, if it is one."""
        path, record = self.config.path, held.record
        if not isinstance(record, NodeRecord) or len(record.path.names) < len(path.names) + 2:
            return None
        return path.step_towards(record.path)

    def finish_removals(self, records: Iterable[Held], remembered: Remembered) -> None:
        """Close the accounts that a former run was about to close: their mail is there still."""
        strays = {slot.child for slot in remembered.mail} - self.mailboxes.boxes.keys()
        lost = {self.config.path.child(name) for name in strays}
        for held in records if lost else ():
            record = held.record
            if isinstance(record, NodeRecord) and record.deleted and record.path in lost:
                self.out.append(RemoveChild(record.path))

    def has_joined(self, child: str) -> bool:
        """Whether a program ever ran as the child; also where that cannot be known here.

        A node without memory does not know it, nor the parent to whom a destination was moved.
        """
        known = child in self.joined or not self.children[child].proven
        return known or self.where.is_moved(child)

    def standing_of(self, child: str) -> Standing | None:
        """How it is with a child; None if there is none of this name."""
        known = self.children.get(child)
        if known is None:
            return None
        joined = self.has_joined(child)
        return Standing(known.silent_since_ms, known.left, bool(known.epoch), joined)

    def heard_of(self, child: str) -> Heard | None:
        """When a child was last heard of; None if there is none of this name."""
        known, now = self.children.get(child), self.now
        if known is None:
            return None
        if not self.has_joined(child):
            return Heard(0, silent=True)
        ago_ms = int((now.seconds - known.heard) * 1000)
        return Heard(now.wall_ms - ago_ms, silent=known.silent_since_ms is not None)

    def meant(self, child: str, held: Held) -> Send:
        """What the child should have of a record."""
        slot = self.mailboxes.boxes[child].slots.get(held.key)
        record = held.record
        if held.kind in ("keys", "index"):
            return Send.WHOLE
        if isinstance(record, NodeRecord):
            goes = self.config.path.step_towards(record.path.parent) == child
        elif isinstance(record, Profile):
            goes = self.config.path.step_towards(record.path) == child
        elif isinstance(record, LocationRecord):
            goes = held.key in self.where.branch(child).locations
        else:
            return self._delta_meant(child, held, sent=slot is not None)
        if record.deleted:
            goes = False
        return Send.WHOLE if goes or slot is not None else Send.NOTHING

    def _is_unproven(self, child: str) -> bool:
        """Whether an index may take something from a child, or below it, that nothing here tells.

        Below a relay that holds nothing others may hold what they were sent before.
        """
        known = self.children[child]
        return not known.proven and not (known.blank and self.where.branch(child).is_edge)

    @property
    def has_ledger(self) -> bool:
        """False at a centre that reads back what it lost: what was sent it does not know yet."""
        return not self.is_root or INDEX_KEY in self.held

    def supply(self, key: MailKey) -> Supply:
        """How far the content of a delta is; the first look at a delta has it fetched.

        At the centre blobs are kept before the ledger, so all is here.
        """
        held = self.held[key]
        if self.is_root or not is_delta(held) or not held.has_body:
            return Supply.HERE
        owner = _owner(key)
        if not self.content.knows(owner):
            self.content.begin(owner, held.record.references)
        if self.content.ready(owner):
            return Supply.HERE
        since = self.content.refused_since(owner)
        if since is not None and self.now.seconds - since > REFUSED_CONTENT_HOLDS_SECONDS:
            return Supply.REFUSED
        return Supply.COMING

    def troubles(self, key: MailKey) -> Summary:
        """What to say of a placement because of how it is here: no content, or no fresh view."""
        held = self.held.get(key) if self.is_root else None
        if is_delta(held) and not (held.has_body or held.record.deleted):
            # Read back as a head alone, it says who is meant, and nobody can be sent it.
            return Summary(complete=False, blocking=(str(self.config.path),))
        reasons = [(1, why) for why in (self.old_view, self.withheld.get(key)) if why]
        if self.content.refused_since(_owner(key)) is not None:
            reasons.append((0, CONTENT_REFUSED))
        if not reasons:
            return EMPTY
        path = str(self.config.path)
        return Summary(exceptions=tuple(ExceptionSample(n, "", why, 1, path) for n, why in reasons))

    def forget_supply(self, key: MailKey) -> None:
        self.content.end(_owner(key))

    def facts(self, child: str, key: MailKey) -> Facts:
        """What bears on a child's say in a placement."""
        held = self.held.get(key)
        box = self.mailboxes.boxes.get(child)
        known = self.children.get(child)
        if box is None or known is None or held is None:
            return UNCONCERNED
        slot = box.slots.get(key)
        answerable = slot is not None and known.proven and not self.mailboxes.pending(child, key)
        concerned = self._delta_meant(child, held, sent=False) is Send.WHOLE
        branch, joined = self.where.branch(child), self.has_joined(child)
        most = int(concerned) if branch.is_edge else len(branch.profiles)
        return Facts(
            concerned,
            slot is not None,
            slot.bearing if slot is not None and answerable else None,
            known.silent_since_ms is not None,
            branch.is_edge,
            held.generation,
            most if branch.is_edge or joined else self.where.count_meant(key, branch),
            joined,
        )

    def _delta_meant(self, child: str, held: Held, *, sent: bool) -> Send:
        whole = held.has_body and held.key not in self.unmeant
        if whole and (held.opaque or self.where.concerns(held.key, child)):
            return Send.WHOLE
        return Send.BARE if sent else Send.NOTHING


def placement_of(owner: str) -> MailKey | None:
    """The placement whose content an owner of a walk names; None of the index."""
    kind, _, key = owner.partition("/")
    return MailKey(key) if kind in ("mail", "edge") else None


def owner_key(owner: str) -> MailKey | None:
    """The placement whose content for children an owner of a walk names."""
    return MailKey(owner[5:]) if owner.startswith("mail/") else None


def _owner(key: MailKey) -> str:
    return f"mail/{key}"
