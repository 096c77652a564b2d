"""The centre's keys: rotated, revoked, and taken up by a start wherever a crash left them."""

import json
from functools import partial
from types import SimpleNamespace

import pytest

from controllers.core.access.keys import KeyChange
from controllers.issuing import keys as keys_module
from controllers.issuing.keys import KeysUnusable, load_or_make_keys, new_signer
from leafcast.ask.api import ApiError
from leafcast.daemon.verbs.keys import KeyVerbs
from leafcast.key_files import (
    read_public,
    read_request,
    read_root,
    request_form,
    request_from,
    requested,
    write_root,
)
from leafcast.key_form import KeyFileRefused
from relay.adapters.clock import SystemDice
from relay.core.records.trust import Trust, TrustVerdict
from relay.ports import BusBroken
from schemas.records.records import KeysRecord, encode_payload
from schemas.records.roots import keys_record
from schemas.records.signing import Signer
from schemas.values.identity import KEYS_KEY, SNAPSHOT_KEY, TreeId
from tests.unit.centre_world import Centre, config, holds, placement

pytestmark = pytest.mark.leaps


@pytest.fixture
def centre(tmp_path):
    return Centre(tmp_path / "keys")


def breaking(relay, at):
    """Let publishing break at the n-th time from now on."""
    honest, left = relay.publish, [at]

    async def publish(blobs, envelopes):
        left[0] -= 1
        if not left[0]:
            relay.publish = honest
            raise BusBroken("the machine is gone")
        await honest(blobs, envelopes)

    relay.publish = publish


async def delivered(centre):
    await centre.apply(config("a"), placement("shop"), placement("twin"))
    async with centre.running():
        await centre.relay.until(holds("a"))
        await centre.relay.until(holds("a", of="twin"))


class PowerCut(BaseException):
    pass


@pytest.mark.parametrize("done", [0, 1, 2])
def test_a_first_start_that_ends_between_two_files_is_begun_anew(tmp_path, monkeypatch, done):
    """So many files are there then; before, the next start was refused for ever after the first."""
    folder, written = tmp_path / "keys", []

    def cut(write, *arguments):
        if len(written) == done:
            raise PowerCut
        written.append(write(*arguments))

    with monkeypatch.context() as amid:
        for name in ("atomic_write", "move_file"):
            honest = getattr(keys_module, name)
            amid.setattr(keys_module, name, partial(cut, honest))
        with pytest.raises(PowerCut):
            load_or_make_keys(folder, SystemDice())
    assert len(written) == done
    made = load_or_make_keys(folder, SystemDice())
    assert made.sealing.seals
    assert {it.name for it in folder.iterdir()} == {"keys.json", "sealing.json"}
    again = load_or_make_keys(folder, SystemDice())
    assert (again.ring, again.sealing.ring) == (made.ring, made.sealing.ring)


def test_keys_that_are_lost_are_not_made_anew_beside_what_they_sealed(tmp_path):
    load_or_make_keys(tmp_path, SystemDice())
    (tmp_path / "keys.json").unlink()
    with pytest.raises(KeysUnusable, match="another tree's; restore it from a backup"):
        load_or_make_keys(tmp_path, SystemDice())


def rotation(centre):
    return KeyChange(signing=new_signer(centre.relay.tree, centre.dice))


def revocation(centre, keys):
    return KeyChange(rotation(centre).signing, revoked=keys.signing.key_id)


def signed_by(centre):
    held = centre.relay.records.items()
    return {envelope.key_id for key, envelope in held if key not in (KEYS_KEY, SNAPSHOT_KEY)}


def believed(centre, keys):
    """Whether a node that knew the tree's first roots believes all that is in force."""
    trust = Trust(centre.relay.tree, keys.roots)
    trust.follow(centre.relay.records[KEYS_KEY])
    trust.adopt(centre.relay.record(KEYS_KEY))
    held = centre.relay.held().items()
    return all(
        trust.judge(centre.relay.records[key], it) is TrustVerdict.BELIEVED for key, it in held
    )


async def test_a_rotation_signs_nothing_anew(centre):
    await delivered(centre)
    controllers = await centre.controllers()
    issuer, old = controllers.issuer, controllers.keys.signing
    seen, pinned = len(centre.relay.history), controllers.keys.roots
    assert await issuer.change_keys(rotation(centre)) is None
    (said,) = centre.relay.history[seen:]
    assert isinstance(said, KeysRecord)
    assert signed_by(centre) == {old.key_id} != {controllers.keys.signing.key_id}
    assert believed(centre, SimpleNamespace(roots=pinned))
    # What comes is signed by the new key.
    async with centre.running() as controllers:
        await centre.apply(config("b"))
        await centre.relay.until(holds("a", "b"))
    assert controllers.keys.signing.key_id in signed_by(centre)
    assert believed(centre, SimpleNamespace(roots=pinned))


async def test_after_a_theft_all_in_force_is_signed_anew(centre):
    await delivered(centre)
    async with centre.running() as controllers:
        stolen, keys = controllers.keys.signing, controllers.keys
        before = centre.relay.held()
        await controllers.issuer.change_keys(revocation(centre, keys))
        assert signed_by(centre) == {keys.signing.key_id} != {stolen.key_id}
        after = centre.relay.held()
        assert after.keys() == before.keys()
        assert all(after[key].generation > before[key].generation for key in before)
        # Nobody loses anything by it.
        assert [after[key].last_loss for key in after] == [before[key].last_loss for key in before]
        await centre.relay.until(
            lambda relay: relay.records[SNAPSHOT_KEY].key_id == keys.signing.key_id
        )
    assert stolen.seed.hex() not in (centre.folder / "keys.json").read_text()


@pytest.mark.parametrize("crash", [1, 2])
@pytest.mark.parametrize("kind", ["signing", "root", "revoke"])
async def test_a_start_goes_on_where_a_crash_left_a_change(centre, kind, crash):
    """Kept and not published; published, and what a stolen key signed not yet signed anew."""
    await delivered(centre)
    controllers = await centre.controllers()
    keys, pinned = controllers.keys, controllers.keys.roots
    old, made = keys.signing, new_signer(centre.relay.tree, centre.dice)
    change = {
        "signing": rotation(centre),
        "root": KeyChange(roots={made.key_id: made.public_key}, made=(made,)),
        "revoke": revocation(centre, keys),
    }[kind]
    breaking(centre.relay, crash)
    if crash == 1 or kind == "revoke":
        with pytest.raises(BusBroken):
            await controllers.issuer.change_keys(change)
    else:
        await controllers.issuer.change_keys(change)
    controllers = await centre.controllers()
    assert centre.relay.record(KEYS_KEY) == controllers.keys.ring.record
    assert believed(centre, SimpleNamespace(roots=pinned))
    assert (controllers.keys.signing == old) == (kind == "root")
    assert (old.key_id in signed_by(centre)) == (kind != "revoke")
    assert (controllers.keys.roots.version == 2) == (kind == "root")
    seen = len(centre.relay.history)
    await centre.controllers()
    assert len(centre.relay.history) == seen


async def test_a_lost_ledger_gets_the_keys_that_the_file_holds(centre):
    controllers = await centre.controllers()
    await controllers.issuer.change_keys(rotation(centre))
    held = centre.relay.records.pop(KEYS_KEY)
    centre.relay.records.clear()
    await centre.controllers()
    assert centre.relay.records[KEYS_KEY] == held


async def test_a_file_of_keys_that_is_older_than_the_ledger_is_refused(centre):
    """As when keys.json was put back from an older copy, and the ledger was not."""
    controllers = await centre.controllers()
    old = (centre.folder / "keys.json").read_bytes()
    await controllers.issuer.change_keys(rotation(centre))
    (centre.folder / "keys.json").write_bytes(old)
    with pytest.raises(KeysUnusable, match="restore the keys that belong to it"):
        await centre.controllers()


async def test_a_tree_that_was_made_before_roots_could_change_goes_on(centre):
    """Its file has one root and no message, its ledger keys without roots."""
    await delivered(centre)
    path = centre.folder / "keys.json"
    keys = load_or_make_keys(centre.folder, centre.dice)
    form = json.loads(path.read_text())
    (root,) = form.pop("roots")
    del form["message"]
    path.write_text(json.dumps({**form, "root": root}))
    path.chmod(0o600)
    bare = KeysRecord(*(getattr(centre.relay.record(KEYS_KEY), name) for name in FIRST_FIELDS))
    signer = Signer(keys.tree, root["key_id"], bytes.fromhex(root["seed"]))
    centre.relay.records[KEYS_KEY] = signer.seal("keys", encode_payload(bare))
    controllers = await centre.controllers()
    now = keys_record(centre.relay.records[KEYS_KEY])
    assert now.generation > bare.generation
    assert [one.key_id for one in now.roots] == [root["key_id"]]
    assert believed(centre, SimpleNamespace(roots=keys.roots))
    assert signed_by(centre) == {controllers.keys.signing.key_id}


FIRST_FIELDS = ("source", "generation", "term", "trace", "grants")


# The verbs.


@pytest.fixture
async def verbs(centre):
    controllers = await centre.controllers()
    running = SimpleNamespace(keys=lambda: controllers.keys, issuer=lambda: controllers.issuer)
    return KeyVerbs(running, centre.dice)


def rows(found, state):
    return [
        key["id"] for key in found["keys"] if key["state"] == state and key["kind"] == "signing"
    ]


async def test_keys_are_listed_with_what_they_signed(centre, verbs):
    await verbs.change("signing")
    await verbs.change("root")
    found = await verbs.keys()
    (ended,), (used,) = rows(found, "ended"), rows(found, "in use")
    by_id = {key["id"]: key for key in found["keys"]}
    assert by_id[ended]["last"] == by_id[used]["first"]
    assert (by_id[ended]["here"], by_id[used]["here"]) == (False, True)
    assert (found["threshold"], found["version"]) == (1, 2)
    await verbs.change(key=used[:6])
    assert rows(await verbs.keys(), "revoked") == [used]


async def test_what_cannot_be_revoked_is_refused(verbs):
    (used,) = rows(await verbs.keys(), "in use")
    for key, code in (("nobody", "NotFound"), ("", "Invalid")):
        with pytest.raises(ApiError) as refused:
            await verbs.change(key=key)
        assert refused.value.code == code
    await verbs.change(key=used)
    with pytest.raises(ApiError, match="revoked already"):
        await verbs.change(key=used)
    with pytest.raises(ApiError, match="public root key is damaged"):
        await verbs.change("root", roots={"k" * 26: "no hex"})
    with pytest.raises(ApiError, match="say signing or root"):
        await verbs.change("fleet")


async def test_a_root_that_was_stolen_is_replaced(verbs):
    before = await verbs.keys()
    (root,) = [key["id"] for key in before["keys"] if key["kind"] == "root"]
    await verbs.change(key=root)
    after = await verbs.keys()
    (new,) = [key["id"] for key in after["keys"] if key["kind"] == "root"]
    assert new != root
    assert (after["version"], after["threshold"]) == (2, 1)


async def test_roots_elsewhere_sign_what_they_are_shown(centre, verbs):
    holders = [new_signer(centre.relay.tree, centre.dice) for _ in range(3)]
    roots = {one.key_id: one.public_key.hex() for one in holders}
    with pytest.raises(ApiError, match="say --request FILE"):
        await verbs.change("root", roots=roots, threshold=2)
    asked = await verbs.change("root", roots=roots, threshold=2, may_wait=True)
    assert "2 more of" in asked["lacks"][0]
    form = await signed(verbs, asked["request"], holders[:1])
    with pytest.raises(ApiError, match="1 more of") as refused:
        await verbs.publish(form)
    assert refused.value.code == "ThresholdNotMet"
    await verbs.publish(await signed(verbs, form, holders[1:2]))
    assert (await verbs.keys())["threshold"] == 2
    with pytest.raises(ApiError, match="changed since"):
        await verbs.publish(form)
    with pytest.raises(ApiError, match="name all new ones"):
        await verbs.change("root", may_wait=True)
    # A key that is revoked while a request is on its way: the request is void.
    asked = await verbs.change("signing", may_wait=True)
    (used,) = rows(await verbs.keys(), "in use")
    other = await verbs.change(key=used, may_wait=True)
    await verbs.publish(await signed(verbs, other["request"], holders))
    with pytest.raises(ApiError, match="changed since"):
        await verbs.publish(await signed(verbs, asked["request"], holders))
    for damaged in ({}, {**form, "payload": "00"}, {**form, "signatures": 3}):
        with pytest.raises(ApiError, match="damaged"):
            await verbs.publish(damaged)


async def signed(verbs, form, holders):
    request = request_from(form)
    assert requested(request).generation > request.base
    new = {one.key_id: one.seal("keys", request.payload).signature for one in holders}
    return {**form, "signatures": {**form["signatures"], **{k: v.hex() for k, v in new.items()}}}


async def test_a_prepared_key_outlives_the_process(centre, verbs):
    holder = new_signer(centre.relay.tree, centre.dice)
    roots = {holder.key_id: holder.public_key.hex()}
    asked = await verbs.change("root", roots=roots, may_wait=True)
    await verbs.publish(await signed(verbs, asked["request"], [holder]))
    asked = await verbs.change("signing", may_wait=True)
    controllers = await centre.controllers()
    await controllers.issuer.complete_keys(
        request_from(await signed(verbs, asked["request"], [holder]))
    )
    assert not controllers.keys.ring.prepared
    assert request_form(request_from(asked["request"])) == asked["request"]


def test_files_of_root_keys_are_their_holders_and_are_checked(tmp_path):
    file = tmp_path / "a.key"
    made = Signer(TREE, "k" * 26, b"s" * 32)
    public = write_root(file, made.key_id, made.seed, made.public_key)
    assert file.stat().st_mode & 0o077 == 0
    assert read_root(file, TREE) == made
    assert read_public(public) == (made.key_id, made.public_key)
    assert made.seed.hex() not in public.read_text()
    with pytest.raises(KeyFileRefused, match="there already"):
        write_root(file, made.key_id, made.seed, made.public_key)
    with pytest.raises(KeyFileRefused, match="no leafcast public root key; name the"):
        read_public(file)
    with pytest.raises(KeyFileRefused, match="no leafcast keys request"):
        read_request(public)
    file.write_text(file.read_text().replace("73", "7", 1))
    with pytest.raises(KeyFileRefused, match="damaged"):
        read_root(file, TREE)
    with pytest.raises(KeyFileRefused, match="No such file"):
        read_root(tmp_path / "gone", TREE)


TREE = TreeId("t" * 26)
