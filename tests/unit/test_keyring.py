"""The keys of a placement: all that its content may be sealed under, in any order of changes."""

import json
import random

import pytest

from controllers.core.access.keyring import Keyring
from controllers.issuing.keys import KeysUnusable, load_keyring
from relay.adapters.clock import SystemDice as Dice
from schemas.content.sealing import PLACEMENT_KEYS_MAX, fleet_key, unwrap_keys
from schemas.values.identity import MailKey, TreeId

TREE, SHOP, OTHER = TreeId("t" * 26), MailKey("s" * 32), MailKey("o" * 32)


def newest(ring):
    return ring.keys(SHOP).newest.key


def brought(ring):
    """What an edge with the newest fleet key opens a delta's keys to."""
    wrapped = ring.keys(SHOP).wrapped
    return unwrap_keys([fleet_key(ring.masters[0])], TREE, SHOP, wrapped)


@pytest.mark.parametrize("seed", range(20))
def test_all_keys_that_content_may_be_under_come_in_any_order_of_changes(
    seed,
):
    chance, ring = random.Random(seed), Keyring(TREE).rotated(bytes(32))
    used = [newest(ring)]
    for turn in range(1, 8):
        alone = chance.random() < 0.5
        ring = ring.renewed(SHOP) if alone else ring.rotated(bytes([turn]) * 32)
        if chance.random() < 0.3:
            ring = ring.renewed(OTHER)
        used.insert(0, newest(ring))
        assert set(used) <= set(brought(ring))
        assert brought(ring)[0] == used[0]
    assert len(set(used)) == len(used)


def test_no_more_keys_come_than_a_delta_may_bring():
    ring = Keyring(TREE).rotated(bytes(32))
    used = [newest(ring)]
    for _ in range(2 * PLACEMENT_KEYS_MAX):
        ring = ring.renewed(SHOP)
        used.insert(0, newest(ring))
    assert list(brought(ring)) == used[:PLACEMENT_KEYS_MAX]


def test_a_key_that_is_made_while_another_fleet_key_is_announced_is_brought_afterwards(tmp_path):
    dice, sealing = Dice(), load_keyring(tmp_path, TREE)
    sealing.announce(dice)
    sealing.use_announced()
    sealing.announce(dice)
    sealing.renew(SHOP)
    between = newest(sealing.ring)
    assert sealing.changes
    assert between != newest(sealing.announced)
    sealing.path.chmod(0o600)
    assert load_keyring(tmp_path, TREE).ring == sealing.announced
    sealing.use_announced()
    assert between in brought(sealing.ring)


def test_a_file_that_says_one_number_for_all_masters_is_read(tmp_path):
    dice, sealing = Dice(), load_keyring(tmp_path, TREE)
    sealing.announce(dice)
    form = json.loads(sealing.path.read_text())
    sealing.path.write_text(json.dumps({**form, "counts": {SHOP: 2}}))
    assert load_keyring(tmp_path, TREE).ring.counts == {SHOP: (2,)}
    for wrong in (["x"], "x", {"a": 1}, None):
        sealing.path.write_text(json.dumps({**form, "counts": {SHOP: wrong}}))
        with pytest.raises(KeysUnusable):
            load_keyring(tmp_path, TREE)
