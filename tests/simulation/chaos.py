"""Makes the faults happen: cuts links, kills processes, loses disks, disturbs clusters, lies."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

from relay.core.effects import WriteMail
from relay.core.events import MailArrived
from relay.core.records.accepted import read_record
from schemas.content.blobs import Reference
from schemas.records.records import encode_payload
from schemas.records.signing import Signer, decode_envelope
from schemas.records.snapshots import encode, read_snapshot
from schemas.values import wire
from schemas.values.identity import MailKey, NodePath
from tests.doubles.memory.streams import Kept, MemoryStreams
from tests.simulation.centre import Centre
from tests.simulation.host import Host
from tests.simulation.model import INVENTORY_KEY, OTHER_TREE, SIGNING_KEY, TREE
from tests.simulation.process import change_keys
from tests.simulation.sealing import CHANGES_MAX
from tests.simulation.world import World

FORGER = Signer(TREE, SIGNING_KEY.key_id, b"f" * 32)
FOREIGN = Signer(OTHER_TREE, SIGNING_KEY.key_id, SIGNING_KEY.seed)
LIES_PER_WRITE = 0.3
LIES_PER_BLOB = 0.2
WITHHELD = 0.25
LIE_EVERY_SECONDS = 1.0
RECENT = 6


LIES = ("forge", "alter", "replay", "replay", "elsewhere")
BRIEF_LIES = (*LIES, "replay", "foreign", "stolen", "body")


class Chaos:
    """The faults of one world, until they are stopped."""

    def __init__(self, world: World, centre: Centre, *, brief: bool) -> None:
        self._world, self._centre, self._brief = world, centre, brief
        self._faults = world.faults
        self._on = False
        self._round = 0
        self._liar: NodePath | None = None
        self._copies: dict[NodePath, MemoryStreams] = {}

    def start(self) -> None:
        """Let things go wrong from now on."""
        faults, random = self._faults, self._world.random
        self._on = True
        self._round += 1
        self._world.faults = faults
        for every, fault in (
            (faults.partition_every, self._partition),
            (faults.crash_every, self._crash),
            (faults.drift_every, self._drift),
            (faults.restore_every, self._restore),
            (faults.keys_every, self._change_keys),
        ):
            if every:
                self._later(every, fault, self._round)
        if faults.slow:
            self._some_host().slow = faults.slow
        if faults.skew_seconds:
            self._later(faults.skew_seconds**0.5, self._jump, self._round)
            self._jump()
        relays = [h for h in self._hosts() if not h.path.is_root and h.streams.children]
        if faults.liar and (relays or self._brief):
            self._liar = random.choice(relays).path if relays else NodePath()
            self._world.lying, self._world.lied = self._lie, True
            if self._brief:
                self._world.lying_blobs = self._lie_about_blob
                self._world.withholds = self._withholds
                self._later(LIE_EVERY_SECONDS, self._lie_again, self._round)

    def stop(self) -> None:
        """Let nothing more go wrong, and mend what did."""
        calm = {"loss": 0.0, "duplicate": 0.0, "refusal": 0.0, "report_loss": 0.0}
        self._on = False
        self._world.lying = self._world.lying_blobs = self._world.withholds = None
        self._world.faults = replace(self._faults, **calm)
        self._world.heal_all()
        self._come_clean()
        for host in self._hosts():
            host.slow = 0.0
            host.skew_ms = 0

    def _hosts(self) -> list[Host]:
        return list(self._world.hosts.values())

    def _some_host(self) -> Host:
        return self._world.random.choice(self._hosts())

    def _later(self, mean: float, fault: object, at_round: int) -> None:
        wait = self._world.random.expovariate(1 / mean)
        self._world.after(wait, self._happen, mean, fault, at_round)

    def _happen(self, mean: float, fault: object, at_round: int) -> None:
        if self._on and at_round == self._round:
            assert callable(fault)
            fault()
            self._later(mean, fault, at_round)

    def _partition(self) -> None:
        path = self._some_host().path
        if not path.is_root and not self._world.is_cut(path):
            one_way = self._faults.one_way
            if one_way and self._world.random.random() < one_way:
                self._world.cut_one_way(path, self._world.random.choice(("up", "down")))
                heal = self._world.heal_one_way
            else:
                self._world.cut(path)
                heal = self._world.heal
            lasts = self._world.random.expovariate(1 / self._faults.partition_lasts)
            self._world.after(lasts, heal, path)

    def _jump(self) -> None:
        """Some host's wall clock is set."""
        most = int(self._faults.skew_seconds * 1000)
        self._some_host().skew_ms = self._world.random.randint(-most, most)

    def _crash(self) -> None:
        host, random = self._some_host(), self._world.random
        keep = host.path.is_root or random.random() >= self._faults.disk_loss
        lasts = random.expovariate(1 / self._faults.crash_lasts)
        if host.node is not None:
            host.armed = (keep, lasts)

    def _restore(self) -> None:
        """Some host is put back to a copy of its disk, or a copy is made for later."""
        host = self._some_host()
        if host.path.is_root:
            return
        copy = self._copies.pop(host.path, None)
        if copy is None:
            self._copies[host.path] = host.streams.copy()
        else:
            put_back(host, copy)

    def _change_keys(self) -> None:
        """People rotate or revoke keys; the centre may crash on the way."""
        if self._centre.ready:
            random = self._world.random
            what = random.choice(("signing", "root", "revoke", "placement"))
            if what == "placement":
                self._change_placement_key()
            else:
                change_keys(self._centre, what, random.choice(("", "", "kept", "told")))

    def _change_placement_key(self) -> None:
        random, model = self._world.random, self._centre.model
        names = [n for n in model.placements if model.key_changes.get(n, 0) < CHANGES_MAX]
        if names:
            name = random.choice(names)
            self._centre.change_placement_key(name, crash=random.random() < 1 / 4)

    def _drift(self) -> None:
        random = self._world.random
        host = self._some_host()
        if host.space.objects:
            key = random.choice(sorted(host.space.objects))
            host.space.drift(key, delete=random.random() < 0.5)

    def _lie(self, host: Host, write: WriteMail, sequence: int) -> MailArrived | None:
        """What a relay that was broken into also sends a child, after what it should."""
        random = self._world.random
        if host.path != self._liar or random.random() >= LIES_PER_WRITE:
            return None
        key, data = write.key, write.data
        key, data = self._made_up(key, data)
        self._world.note(host.path, f"lies to {write.child} about {key[:8]}", data)
        return MailArrived(sequence, key, data, 0)

    def _lie_again(self) -> None:
        """Tell some child of the liar something that was true once, without a reason to."""
        liar, random = self._world.hosts.get(self._liar or NodePath()), self._world.random
        if liar is None or not liar.streams.children:
            return
        child = self._world.hosts.get(liar.path.child(random.choice(sorted(liar.streams.children))))
        if child is None or not child.linked:
            return
        recent = self._centre.history[-RECENT:] if random.random() < 0.5 else self._centre.history
        key, data = self._made_up(*random.choice(recent))
        self._world.note(liar.path, f"lies to {child.path} about {key[:8]}", data)
        child.receive_mail(MailArrived(child.read_through, key, data, 0))

    def _withholds(self, host: Host, kept: Kept) -> bool:
        """Whether to keep a message from a child, and go on as if it had been sent.

        Of what has no content no digest would ever tell that it is missing.
        """
        if host.path != self._liar or kept.mail is None or not kept.mail.has_body:
            return False
        return self._world.random.random() < WITHHELD

    def _come_clean(self) -> None:
        """The relay is put right: an honest program starts in its place."""
        liar = self._world.hosts.get(self._liar) if self._liar is not None else None
        if liar is not None and liar.node is not None:
            liar.stop()
            liar.start()
        self._liar = None

    def _lie_about_blob(self, host: Host, reference: Reference, value: bytes) -> bytes | None:
        """Give another blob, an altered one, or none."""
        random = self._world.random
        if host.path != self._liar or random.random() >= LIES_PER_BLOB:
            return value
        match random.randrange(3):
            case 0:
                return None
            case 1:
                return random.choice(list(host.streams.blobs.values()))
            case _:
                at = random.randrange(len(value))
                return value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :]

    def _made_up(self, key: MailKey, data: bytes) -> tuple[MailKey, bytes]:
        """A lie about a record: what it says, and under which key."""
        random = self._world.random
        lies = BRIEF_LIES if self._brief else LIES
        match random.choice(lies):
            case "forge":
                data = newer(data, FORGER)
            case "foreign":
                data = newer(data, FOREIGN)
            case "stolen":
                data = newer(data, INVENTORY_KEY)
            case "body":
                data = self._other_body(data)
            case "alter":
                at = random.randrange(len(data))
                data = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
            case "replay":
                old = [(k, d) for k, d in self._centre.history if not k.startswith("_")]
                key, data = random.choice(old) if old else (key, data)
            case _:
                _, data = random.choice(self._centre.history)
        return key, data

    def _other_body(self, data: bytes) -> bytes:
        """A delta's head with the body of another one."""
        envelope = decode_envelope(data)
        bodies = [decode_envelope(d).body for _, d in self._centre.history]
        bodies = [body for body in bodies if body is not None and body != envelope.body]
        if envelope.body is None or not bodies:
            return data
        return dataclasses.replace(envelope, body=self._world.random.choice(bodies)).encode()


def put_back(host: Host, streams: MemoryStreams) -> None:
    """Have a host start again on an older copy of its disk; its cluster stays as it is."""
    host.world.note(host.path, "put back")
    host.world.watcher.disk_lost(host)
    host.stop()
    host.streams = streams
    host.world.watcher.disk_restored(host)
    host.start()


def newer(data: bytes, signer: Signer) -> bytes:
    """The record as if it were issued again, by whom it was not."""
    envelope = decode_envelope(data)
    if envelope.kind == "snapshot":
        snapshot = read_snapshot(envelope.payload)
        later = wire.replace(snapshot, generation=snapshot.generation + 1)
        return signer.seal("snapshot", encode(later)).encode()
    envelope, held = read_record(data)
    payload = encode_payload(wire.replace(held.record, generation=held.generation + 1))
    return signer.seal(held.kind, payload, envelope.body).encode()  # type: ignore[arg-type]
