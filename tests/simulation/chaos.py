"""Makes the faults happen: cuts links, kills processes, loses disks, disturbs clusters, lies."""

from __future__ import annotations

from dataclasses import replace

from relay.core.book import read_record
from relay.core.effects import WriteMail
from relay.core.events import MailArrived
from schemas.identity import NodePath
from schemas.records import encode_payload
from schemas.signing import Signer
from tests.simulation.centre import SIGNING_KEY, TREE, Centre
from tests.simulation.host import Host
from tests.simulation.world import World

FORGER = Signer(TREE, SIGNING_KEY.key_id, b"f" * 32)
LIES_PER_WRITE = 0.3


class Chaos:
    """The faults of one world, until they are stopped."""

    def __init__(self, world: World, centre: Centre) -> None:
        self._world, self._centre = world, centre
        self._faults = world.faults
        self._on = False
        self._round = 0
        self._liar: NodePath | None = None

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
        ):
            if every:
                self._later(every, fault, self._round)
        if faults.slow:
            self._some_host().slow = faults.slow
        relays = [h for h in self._hosts() if not h.path.is_root and h.streams.children]
        if faults.liar and relays:
            self._liar = random.choice(relays).path
            self._world.lying = self._lie

    def stop(self) -> None:
        """Let nothing more go wrong, and mend what did."""
        calm = {"loss": 0.0, "duplicate": 0.0, "refusal": 0.0}
        self._on = False
        self._world.lying = None
        self._world.faults = replace(self._faults, **calm)
        self._world.heal_all()
        for host in self._hosts():
            host.slow = 0.0

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
            self._world.cut(path)
            lasts = self._world.random.expovariate(1 / self._faults.partition_lasts)
            self._world.after(lasts, self._world.heal, path)

    def _crash(self) -> None:
        host, random = self._some_host(), self._world.random
        keep = host.path.is_root or random.random() >= self._faults.disk_loss
        lasts = random.expovariate(1 / self._faults.crash_lasts)
        if host.node is not None:
            host.armed = (keep, lasts)

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
        match random.choice(("forge", "alter", "replay", "replay", "elsewhere")):
            case "forge":
                envelope, held = read_record(data, 0)
                record = replace(held.record, generation=held.generation + 1)
                payload = encode_payload(record)
                data = FORGER.seal(held.kind, payload, envelope.body).encode()  # type: ignore[arg-type]
            case "alter":
                at = random.randrange(len(data))
                data = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
            case "replay":
                old = [(k, d) for k, d in self._centre.history if not k.startswith("_")]
                key, data = random.choice(old) if old else (key, data)
            case _:
                _, data = random.choice(self._centre.history)
        self._world.note(host.path, f"lies to {write.child} about {key[:8]}", data)
        return MailArrived(sequence, key, data, 0)
