"""The options that say how servers keep what they store: encrypted, and on the disk at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from leafcast.cli.options.common import gathered
from leafcast.node.credentials.kept_store import KeptStore
from relay.adapters.server.durability import Durability
from relay.adapters.server.store_key import StoreKey, StoreKeyRefused, read_store_key


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """What the command line said: a key, from which file, a durability; None of what it did not."""

    key_file: Path | None = None
    key: StoreKey | None = None
    durability: Durability | None = None

    def over(self, kept: KeptStore) -> KeptStore:
        """What counts from now on, of what was said now and before."""
        return KeptStore(self.key_file or kept.key_file, self.durability or kept.durability)


def _store(store_key_file: Path | None, durability: str | None) -> StoreOptions:
    word = Durability(durability) if durability is not None else None
    if store_key_file is None:
        return StoreOptions(durability=word)
    file = store_key_file.absolute()
    try:
        return StoreOptions(file, read_store_key(file), word)
    except StoreKeyRefused as error:
        raise click.BadParameter(str(error), param_hint="--store-key-file") from error


store_options = gathered(
    "store",
    _store,
    click.option(
        "--store-key-file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Encrypt what is stored with the key in this file, one line of 32 characters or more.",
    ),
    click.option(
        "--durability",
        type=click.Choice([word.value for word in Durability]),
        help="When what a server below the centre acknowledged is on its disk: at once (disk), or "
        "every two minutes; its parent has it until then. Starts after this one keep to it.  "
        "[default: periodic]",
    ),
)
"""Both, given to the command as `store: StoreOptions`."""
