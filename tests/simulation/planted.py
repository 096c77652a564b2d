"""Faults planted at a node's ports, each one thing that a hurried change might do.

A fault changes what a node hears, says or is asked; never what is inside of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from zlib import crc32

from relay.core import effects as fx
from relay.core.destination.customized_forms import Customize, NotCustomized
from relay.core.effects import Effect
from relay.core.events import (
    BlobArrived,
    Event,
    MailArrived,
    MailWritten,
    ReportArrived,
    Welcomed,
)
from relay.core.records.accepted import read_record
from schemas.content import blobs
from schemas.content.blobs import StoredBlob
from schemas.objects.objects import ObjectKey
from schemas.records.signing import decode_envelope
from schemas.records.snapshots import (
    SNAPSHOT_TERMS,
    BlobPointer,
    SnapshotRecord,
    Term,
    TermEntry,
    TermList,
)
from schemas.records.snapshots import encode as encode_snapshot
from schemas.reports.link import Hello, Repair
from schemas.values.codec import address
from schemas.values.identity import SNAPSHOT_KEY, ContentHash, MailKey, NodePath
from schemas.values.wire import decode, encode, replace
from tests.simulation.host import Host
from tests.simulation.ports import Ports

# What removals wait for.


class PruneAtOnce(Ports):
    """What is wanted no more goes at once, whatever is settled."""

    def may_prune(self, _host: Host, _key: ObjectKey, *, honest: bool) -> bool:
        del honest
        return True


class WorksOn(Ports):
    """The syncer goes on while a person works there."""

    def pauses(self, _host: Host, *, honest: bool) -> bool:
        del honest
        return False


class PruneNever(Ports):
    """Nothing is ever taken away."""

    def may_prune(self, _host: Host, _key: ObjectKey, *, honest: bool) -> bool:
        del honest
        return False


class PruneBeforeRead(Ports):
    """A run that begins wants nothing until its mailbox is read, and prunes by that."""

    def wanted(self, host: Host, honest: Mapping[ObjectKey, Any]) -> Mapping[ObjectKey, Any]:
        return honest if host.node is not None and host.node.ready else {}

    def may_prune(self, host: Host, _key: ObjectKey, *, honest: bool) -> bool:
        return honest or (host.node is not None and not host.node.ready)


class SettleAtOnce(Ports):
    """A snapshot says that all before it is settled."""

    def snapshot(self, record: SnapshotRecord, _keep: Callable) -> SnapshotRecord:
        return replace(record, settled=record.generation)


class SettleNever(Ports):
    """A snapshot says that nothing is settled."""

    def snapshot(self, record: SnapshotRecord, _keep: Callable) -> SnapshotRecord:
        return replace(record, settled=0)


class NoHold(Ports):
    """An apply that is under way is not heeded: what it has begun is settled after 2 s."""

    def holds(self) -> bool:
        return False


# Snapshots, and what they claim.


class KnowAllTerms(Ports):
    """A snapshot claims that the centre knows each term that ever was, whole."""

    def __init__(self) -> None:
        self._terms: set[Term] = set()

    def issued(self, draft: Any) -> Any:
        return draft

    def snapshot(self, record: SnapshotRecord, keep: Callable) -> SnapshotRecord:
        self._terms.add(record.term)
        known = TermList(tuple(TermEntry(term, None) for term in sorted(self._terms)))
        stored: StoredBlob = blobs.store(SNAPSHOT_TERMS, encode_snapshot(known))
        keep(stored.values)
        return replace(record, terms=BlobPointer.to(stored.reference))


class ListOnlyWhatWas(Ports):
    """A snapshot lists what the one before it listed: new records are dropped by it."""

    def __init__(self) -> None:
        self._former: SnapshotRecord | None = None

    def snapshot(self, record: SnapshotRecord, _keep: Callable) -> SnapshotRecord:
        former, self._former = self._former, record
        if former is None:
            return record
        return replace(record, root=former.root, height=former.height)


class ExpireAtOnce(Ports):
    """Snapshots expire when they are signed: who has no memory takes nothing."""

    def snapshot(self, record: SnapshotRecord, _keep: Callable) -> SnapshotRecord:
        return replace(record, expires_ms=record.time_ms)


class KeepOldSnapshot(Ports):
    """A relay goes on showing the first snapshot that it wrote to a child."""

    def __init__(self) -> None:
        self._first: dict[str, bytes] = {}

    def heard(self, host: Host, event: Event) -> list[Event]:
        if isinstance(event, MailArrived) and event.key == SNAPSHOT_KEY:
            data = self._first.setdefault(str(host.path), event.data)
            event = MailArrived(event.sequence, event.key, data, event.pending, event.reading)
        if isinstance(event, Welcomed):
            event = Welcomed(replace(event.message, snapshot=b""))
        return [event]


class NoSnapshot(Ports):
    """A parent writes no snapshot to its children, and takes it for written."""

    def said(self, host: Host, effect: Effect) -> list[Effect]:
        if isinstance(effect, fx.WriteMail) and effect.key == SNAPSHOT_KEY:
            told = MailWritten(effect.child, effect.key, effect.generation, effect.expected + 1)
            host.tell(told)
            return []
        return [effect]


class NoLeaf(Ports):
    """A node takes no leaf of a snapshot's tree."""

    def heard(self, _host: Host, event: Event) -> list[Event]:
        if isinstance(event, BlobArrived) and event.reference.kind == "sleaf" and not event.local:
            return [BlobArrived(event.reference, None, local=False)]
        return [event]


class StaleInSilence(Ports):
    """Nobody says that its view is old."""

    def said(self, _host: Host, effect: Effect) -> list[Effect]:
        return [] if isinstance(effect, fx.Noted) and effect.reason == "StaleView" else [effect]


# Mail.


class HeadsInFull(Ports):
    """A parent answers a want, and fills a slot in use, with the delta in full."""

    kind = "delta"

    def said(self, host: Host, effect: Effect) -> list[Effect]:
        held = host.streams.own.get(str(getattr(effect, "key", "")))
        if not isinstance(effect, fx.WriteMail) or effect.has_body or held is None:
            return [effect]
        if decode_envelope(held.data).kind == self.kind:
            full = fx.WriteMail(
                effect.child,
                effect.key,
                held.data,
                effect.generation,
                effect.payload_hash,
                has_body=True,
                trace=effect.trace,
                expected=effect.expected,
            )
            return [full]
        return [effect]


class LocationsInFull(HeadsInFull):
    """A parent answers a want with all that a Location says."""

    kind = "location"


class MailToAll(Ports):
    """A parent writes each profile to all its children."""

    def said(self, host: Host, effect: Effect) -> list[Effect]:
        if not isinstance(effect, fx.WriteMail) or effect.key[0] == "_":
            return [effect]
        others = [name for name in host.streams.children if name != effect.child]
        told = []
        for name in others:
            if host.streams.mail.get((name, str(effect.key))) is None:
                fields = (effect.key, effect.data, effect.generation, effect.payload_hash)
                told.append(
                    fx.WriteMail(name, *fields, has_body=effect.has_body, trace="", expected=0)
                )
        return [effect, *told]


class MailLost(Ports):
    """A node never gets what is written to every second slot of its mailbox, however often.

    A message that is lost once is no fault that lasts: its parent writes it again.
    """

    def heard(self, _host: Host, event: Event) -> list[Event]:
        mail = isinstance(event, MailArrived) and event.key[0] != "_"
        return [] if mail and crc32(event.key.encode()) % 2 == 0 else [event]


class ClearInForce(Ports):
    """A parent clears the slot of a delta once the child has reported on it."""

    def said(self, host: Host, effect: Effect) -> list[Effect]:
        return [effect]

    def heard(self, host: Host, event: Event) -> list[Event]:
        if isinstance(event, ReportArrived) and event.key[0] != "_":
            kept = host.streams.mail.get((event.child, event.key))
            if kept is not None:
                clear = fx.ClearMail(event.child, MailKey(event.key), kept.sequence)
                host.world.watcher.effect(host, clear)
        return [event]


class UnconfirmedMail(Ports):
    """A parent never hears that its writing was taken."""

    def heard(self, host: Host, event: Event) -> list[Event]:
        return [] if isinstance(event, MailWritten) and not host.path.is_root else [event]


class MailBeforeContent(Ports):
    """A delta is written before its content is kept."""

    def ordered(self, _host: Host, effects: list[Effect]) -> list[Effect]:
        return sorted(effects, key=lambda effect: isinstance(effect, fx.KeepBlob))

    def said(self, _host: Host, effect: Effect) -> list[Effect]:
        if isinstance(effect, fx.KeepBlob) and len(effect.value) % 2:
            return []
        return [effect]


class ReadIgnored(Ports):
    """A child that is told to read its mailbox again goes on as it is."""

    def heard(self, _host: Host, event: Event) -> list[Event]:
        if isinstance(event, Welcomed) and event.message.repair == Repair.REREAD:
            event = Welcomed(replace(event.message, repair=Repair.NONE))
        return [event]


class ForgetChildren(Ports):
    """A removed child keeps its account, its mailbox and its reports."""

    def said(self, _host: Host, effect: Effect) -> list[Effect]:
        return [] if isinstance(effect, fx.RemoveChild) else [effect]


class AddNobody(Ports):
    """No child gets an account below the centre."""

    def said(self, host: Host, effect: Effect) -> list[Effect]:
        refused = isinstance(effect, fx.AddChild) and not host.path.is_root
        return [] if refused else [effect]


# What is kept.


class StoreAltered(Ports):
    """A byte of what is kept is another one."""

    def said(self, _host: Host, effect: Effect) -> list[Effect]:
        if isinstance(effect, fx.StoreOwn) and effect.key[0] != "_" and effect.data:
            data = effect.data[:-1] + bytes([effect.data[-1] ^ 1])
            effect = fx.StoreOwn(effect.key, data, effect.generation)
        return [effect]


class KeepAltered(Ports):
    """A blob is kept as what it is not."""

    def said(self, _host: Host, effect: Effect) -> list[Effect]:
        if isinstance(effect, fx.KeepBlob):
            effect = fx.KeepBlob(effect.address, effect.value[:-1] + b"?")
        return [effect]


class ForgetSnapshot(Ports):
    """The snapshot that was verified is not kept."""

    def said(self, _host: Host, effect: Effect) -> list[Effect]:
        own = isinstance(effect, fx.StoreOwn) and effect.key == SNAPSHOT_KEY
        return [] if own else [effect]


class KeepDropped(Ports):
    """What a snapshot dropped stays in the own store."""

    def said(self, _host: Host, effect: Effect) -> list[Effect]:
        return [] if isinstance(effect, fx.StoreOwn) and effect.data is None else [effect]


class SweepInForce(Ports):
    """A sweep takes content along that is in force."""

    def said(self, host: Host, effect: Effect) -> list[Effect]:
        if isinstance(effect, fx.DropBlobs):
            effect = fx.DropBlobs((*effect.addresses, *host.streams.blobs))
        return [effect]


class NoSweep(Ports):
    """Nothing is swept."""

    def said(self, _host: Host, effect: Effect) -> list[Effect]:
        return [] if isinstance(effect, fx.DropBlobs) else [effect]


class AskInHaste(Ports):
    """A blob that is not here is asked for fifty times."""

    def said(self, _host: Host, effect: Effect) -> list[Effect]:
        return [effect] * 50 if isinstance(effect, fx.LoadBlob) else [effect]


class NeverAsk(Ports):
    """No object is ever fetched."""

    def said(self, _host: Host, effect: Effect) -> list[Effect]:
        unasked = isinstance(effect, fx.LoadBlob) and effect.reference.kind == blobs.OBJECT
        return [] if unasked else [effect]


# What objects become.


class CustomizeOnce(Ports):
    """What an object became first it stays, whatever is said of the destination later."""

    def __init__(self) -> None:
        self._first: dict[tuple[NodePath, bytes], ContentHash] = {}

    def customize(self, host: Host, honest: Customize) -> Customize:
        def once(key, plain, by, values, where):
            address, *used = honest(key, plain, by, values, where)
            return self._first.setdefault((host.path, plain), address), *used

        return once


class FailureRemoves(Ports):
    """What cannot be customized any more is wanted no more."""

    def __init__(self) -> None:
        self._failed: dict[NodePath, dict[ObjectKey, None]] = {}

    def customize(self, host: Host, honest: Customize) -> Customize:
        failed = self._failed.setdefault(host.path, {})

        def noted(key, plain, by, values, where):
            try:
                made = honest(key, plain, by, values, where)
            except NotCustomized:
                failed[key] = None
                raise
            failed.pop(key, None)
            return made

        return noted

    def wanted(self, host: Host, honest: Mapping[ObjectKey, Any]) -> Mapping[ObjectKey, Any]:
        failed = self._failed.get(host.path, {})
        return {key: want for key, want in honest.items() if key not in failed}

    def may_prune(self, host: Host, key: ObjectKey, *, honest: bool) -> bool:
        return honest or key in self._failed.get(host.path, {})


class FreezeNothing(Ports):
    """What cannot be customized goes out as it is written."""

    def customize(self, _host: Host, honest: Customize) -> Customize:
        def lenient(key, plain, by, values, where):
            try:
                return honest(key, plain, by, values, where)
            except NotCustomized:
                return address(blobs.TEMPLATE, plain), (), 0

        return lenient


# The session.


class TwoHomes(Ports):
    """Every machine says the same home."""

    def said(self, _host: Host, effect: Effect) -> list[Effect]:
        if isinstance(effect, fx.SendHello):
            hello = replace(decode(Hello, effect.data), home="home")
            effect = fx.SendHello(encode(hello))
        return [effect]


class StopIgnored(Ports):
    """A second run of a node goes on though it is told to stop."""

    def heard(self, _host: Host, event: Event) -> list[Event]:
        if isinstance(event, Welcomed) and event.message.repair == Repair.STOP:
            event = Welcomed(replace(event.message, repair=Repair.REREAD))
        return [event]


class SayIgnored(Ports):
    """A child that is told to report everything again does not."""

    def heard(self, _host: Host, event: Event) -> list[Event]:
        if isinstance(event, Welcomed) and event.message.repair == Repair.REPORT_ALL:
            event = Welcomed(replace(event.message, repair=Repair.NONE))
        return [event]


class ShowNothing(Ports):
    """No hello shows the newest snapshot."""

    def said(self, _host: Host, effect: Effect) -> list[Effect]:
        if isinstance(effect, fx.SendHello):
            effect = fx.SendHello(encode(replace(decode(Hello, effect.data), shown=b"")))
        return [effect]


class NoHello(Ports):
    """A child says hello only once."""

    def __init__(self) -> None:
        self._said: dict[tuple[str, int], None] = {}

    def said(self, host: Host, effect: Effect) -> list[Effect]:
        if isinstance(effect, fx.SendHello):
            at = (str(host.path), host.run)
            if at in self._said:
                return []
            self._said[at] = None
        return [effect]


class NoWelcome(Ports):
    """No parent below the centre answers."""

    def said(self, host: Host, effect: Effect) -> list[Effect]:
        return [] if isinstance(effect, fx.SendWelcome) and not host.path.is_root else [effect]


# The cluster.


class ForgetPlacement(Ports):
    """The syncer is not told of one object of all that is wanted."""

    def wanted(self, _host: Host, honest: Mapping[ObjectKey, Any]) -> Mapping[ObjectKey, Any]:
        return dict(list(honest.items())[1:])


class ApplyAll(Ports):
    """The syncer applies what any delta brings that the node holds a body of."""

    def wanted(self, host: Host, honest: Mapping[ObjectKey, Any]) -> Mapping[ObjectKey, Any]:
        return {key: self._elsewhere(host, want) for key, want in honest.items()}

    def _elsewhere(self, host: Host, want: Any) -> Any:
        others = [k for k in host.streams.own if k[0] != "_"]
        deltas = [k for k in others if read_record(host.streams.own[k].data)[1].kind == "delta"]
        wrong = tuple(MailKey(k) for k in deltas if k not in want.placements)
        return (
            want
            if not wrong
            else type(want)(want.key, want.reference, want.order, want.flags, wrong)
        )


class NeverTold(Ports):
    """The syncer is never told that something else is wanted."""

    def said(self, _host: Host, effect: Effect) -> list[Effect]:
        return [] if isinstance(effect, fx.WantsChanged) else [effect]
