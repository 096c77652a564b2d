"""The seeds of the accounts of a node's server, as a file beside its data."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from leafcast.node.credentials.files import CredentialsUnusable
from relay.adapters.server.nats_config import AccountSeeds
from relay.adapters.server.nkey_pairs import new_user_nkey
from relay.atomic_file import atomic_write, make_folder
from relay.ports import Dice
from schemas.values.codec import from_json

SEEDS_FILE = "accounts.json"


def account_seeds(folder: Path, dice: Dice) -> AccountSeeds:
    """The seeds of the server's own accounts: made once, kept beside the server's data.

    Raises CredentialsUnusable.
    """
    path = folder / SEEDS_FILE
    if path.exists():
        return _kept_seeds(path)
    seeds = new_seeds(dice)
    make_folder(folder)
    keep_seeds(folder, seeds)
    return seeds


def new_seeds(dice: Dice) -> AccountSeeds:
    """Seeds of accounts that no server has yet."""
    return AccountSeeds(*(new_user_nkey(dice.entropy(32))[0] for _ in range(4)))


def keep_seeds(folder: Path, seeds: AccountSeeds) -> None:
    """Write the file; raises OSError."""
    atomic_write(folder / SEEDS_FILE, json.dumps(asdict(seeds)))


def _kept_seeds(file: Path) -> AccountSeeds:
    try:
        seeds = AccountSeeds(**from_json(file.read_bytes()))
        seeds.public()
    except (ValueError, TypeError, AttributeError) as error:
        raise CredentialsUnusable(file) from error
    return seeds
