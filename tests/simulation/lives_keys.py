"""Lives in which keys change: rotated while an edge is away, revoked, told half before a crash."""

from __future__ import annotations

from collections.abc import Iterable

from relay.core.events import MailArrived
from relay.core.records.accepted import read_record
from schemas.records.records import encode_payload
from schemas.records.signing import Signer, decode_envelope
from schemas.values import wire
from schemas.values.identity import KEYS_KEY
from tests.simulation import process
from tests.simulation.chaos import put_back
from tests.simulation.host import Host
from tests.simulation.laws import CONVERGENCE, LEAST_PRIVILEGE, NO_IGNORANCE
from tests.simulation.model import placement_key
from tests.simulation.run import Run
from tests.simulation.scenes import P1, P2, A, B, C, edges_of, everywhere, region_of, require

MINUTE = 60.0
KINDS = ("signing", "root", "revoke")


def change_keys(one: Run, what: str, crash: str = "") -> None:
    one.oracle.model_changed()
    process.change_keys(one.centre, what, crash)


def keys_away(one: Run) -> None:
    """An edge is off while each key is rotated three times; its region starts anew meanwhile."""
    away = edges_of(one)[0]
    away.stop(server_too=True)
    for turn in range(3):
        for what in ("root", "signing"):
            change_keys(one, what)
        everywhere(one, P1, A, B)
        one.world.run(MINUTE)
        if turn == 1:
            _restart(region_of(one))
    away.start()
    _all_follow(one)


def keys_wiped(one: Run) -> None:
    """A region and an edge that lost their disks begin with the roots that they pinned."""
    for _ in range(3):
        change_keys(one, "root")
        change_keys(one, "signing")
        one.world.run(MINUTE)
    for host in (region_of(one), edges_of(one)[0]):
        host.stop(keep_disk=False, server_too=True)
        host.start()
        one.world.run(MINUTE)
    _all_follow(one)


def key_ended(one: Run) -> None:
    """What an old key signed stays in force; what a thief signs with it now is not believed."""
    before = {host.path: dict(host.space.objects) for host in edges_of(one)}
    stolen = one.centre.ring.signing
    change_keys(one, "signing")
    one.world.run(MINUTE)
    _forged(one, stolen, edges_of(one))
    for host in edges_of(one):
        _restart(host)
    _forged(one, stolen, edges_of(one))
    _all_follow(one)
    _untouched(one, before)


def key_revoked(one: Run) -> None:
    """A key is revoked: nothing is removed, also where the word comes long before what replaces it.

    What is in force is signed anew, and nobody believes the thief.
    """
    first, *_ = edges_of(one)
    before = {host.path: dict(host.space.objects) for host in edges_of(one)}
    stolen = one.centre.ring.signing
    change_keys(one, "revoke", "told")
    for _ in range(3):
        # Cut off once it heard that the key is revoked, and started again.
        one.world.run(1.0)
        one.world.cut(first.path)
        _restart(first)
        one.world.run(15 * MINUTE)
        _untouched(one, before)
        one.world.heal(first.path)
        one.world.run(MINUTE)
        _forged(one, stolen, edges_of(one))
    _all_follow(one)
    _untouched(one, before)
    for host in one.world.hosts.values():
        for key, own in host.streams.own.items():
            signed = key[0] == "_" or decode_envelope(own.data).key_id != stolen.key_id
            require(signed, CONVERGENCE, f"{host.path} holds {key} by the key that was stolen")


def key_revoked_away(one: Run) -> None:
    """An edge is off while a key is revoked and a placement changes; the thief meets it first."""
    away = edges_of(one)[0]
    away.stop(server_too=True)
    stolen = one.centre.ring.signing
    change_keys(one, "revoke")
    everywhere(one, P2, C)
    one.world.run(5 * MINUTE)
    away.start()
    _all_follow(one)
    _forged(one, stolen, [away])
    _all_follow(one)


def keys_crashed(one: Run) -> None:
    """The centre is killed when its file holds the new keys, and when its ledger does."""
    for what in KINDS:
        for crash in ("kept", "told"):
            change_keys(one, what, crash)
            one.world.run(MINUTE)
            everywhere(one, P1, A, B)
            _all_follow(one)


def keys_and_ledger_lost(one: Run) -> None:
    """The ledger is lost after rotations, the file of keys is not: the tree goes on with it."""
    for what in KINDS:
        change_keys(one, what)
    one.settle()
    before = {host.path: dict(host.space.objects) for host in edges_of(one)}
    root = one.world.root
    root.stop(keep_disk=False, server_too=True)
    root.start()
    _all_follow(one)
    _untouched(one, before)


def restored_before_rotation(one: Run) -> None:
    """The centre is put back to before its keys were rotated: revoking its old key mends that."""
    root, ring = one.world.root, one.centre.ring
    copy = root.streams.copy()
    change_keys(one, "signing")
    everywhere(one, P1, A, B)
    one.settle()
    before = {host.path: dict(host.space.objects) for host in edges_of(one)}
    one.centre.keys.ring = ring
    put_back(root, copy)
    one.world.run(MINUTE)
    _untouched(one, before)
    change_keys(one, "revoke")
    everywhere(one, P1, A, B)
    _all_follow(one)


def many_rotations(one: Run) -> None:
    """Very many rotations leave nothing behind that grows with them."""
    for _ in range(100):
        change_keys(one, "signing")
        change_keys(one, "root")
        one.world.run(10)
    message, record = one.centre.ring.message, one.centre.ring.record
    assert message is not None
    assert record is not None
    size = len(message.encode())
    require(size < 150_000, CONVERGENCE, f"the keys have {size} bytes")
    require(len(record.grants) <= 64, CONVERGENCE, f"{len(record.grants)} keys are listed")
    _all_follow(one)


def node_rekeyed(one: Run) -> None:
    """The key of an edge gives way to another, and all start anew after each step.

    The old one is revoked while the edge is away, so nobody comes with that any more; the fleet key
    changes meanwhile. The edge comes with the new one, opens all, and was cut off at no time.
    """
    edge = edges_of(one)[0]
    everywhere(one, P1, A, B)
    one.settle()
    for step in (
        lambda: setattr(edge, "own_keys", (0, 1)),
        lambda: one.centre.admit_keys(edge.path, 0, 1),
        lambda: setattr(edge, "own_keys", (1,)),
    ):
        step()
        _all_anew(one)
        require(one.world.linkable(edge.path), CONVERGENCE, f"{edge.path} is cut off")
        one.centre.rotate_fleet()
        everywhere(one, P1, A, B)
        one.settle()
    edge.stop(server_too=True)
    one.centre.admit_keys(edge.path, 1)
    one.centre.rotate_fleet()
    everywhere(one, P1, A, C)
    _all_anew(one, away=edge)
    edge.own_keys = (0,)
    edge.start()
    one.world.run(MINUTE)
    require(not one.world.linkable(edge.path), LEAST_PRIVILEGE, "a key that is void opens a link")
    edge.stop(server_too=True)
    edge.own_keys = (1,)
    edge.start()
    one.settle()


def _all_anew(one: Run, away: Host | None = None) -> None:
    """Each program starts again, one after the other."""
    for host in list(one.world.hosts.values()):
        if host is not away:
            _restart(host)
            one.world.run(10)
    one.world.run(MINUTE)


def _restart(host: Host) -> None:
    host.stop()
    host.start()


def _all_follow(one: Run) -> None:
    """All is as wanted, and each node holds the keys in force."""
    one.settle()
    assert one.centre.ring.message is not None
    payload = one.centre.ring.message.payload
    for host in one.world.hosts.values():
        own = host.streams.own.get(KEYS_KEY)
        follows = own is not None and decode_envelope(own.data).payload == payload
        require(follows, CONVERGENCE, f"{host.path} does not follow the keys")


def _untouched(one: Run, before: dict[object, dict[object, object]]) -> None:
    for host in edges_of(one):
        same = host.space.objects == before[host.path]
        require(same, NO_IGNORANCE, f"the cluster at {host.path} was touched")


def _forged(one: Run, thief: Signer, told: Iterable[Host]) -> None:
    """A parent that was broken into tells its children what a thief signed just now."""
    key = placement_key(P1)
    envelope = decode_envelope(next(d for k, d in reversed(one.centre.history) if k == key))
    _, held = read_record(envelope.encode())
    generation = one.world.instant().wall_ms + 1
    generation = max(generation, one.centre.records[key].generation + 1)
    payload = encode_payload(wire.replace(held.record, generation=generation))
    data = thief.seal("delta", payload, envelope.body).encode()
    for host in told:
        host.receive_mail(MailArrived(host.read_through, key, data, 0))
    one.world.run(5)


LIVES = (
    keys_away,
    keys_wiped,
    key_ended,
    key_revoked,
    key_revoked_away,
    keys_crashed,
    keys_and_ledger_lost,
    restored_before_rotation,
    many_rotations,
    node_rekeyed,
)
