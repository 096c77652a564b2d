"""A backup becomes a centre of three members on this machine, laid out before its first start.

The first member has the backup, and restores it in its first tenure; until then no other one may be
active. So it is a growth whose copy was written elsewhere.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from leafcast.backups.operator_keys import OperatorKey
from leafcast.backups.refusals import NO_BACKUP, BackupUnusable
from leafcast.backups.restoring import place_backup
from leafcast.backups.whole_file import Backup
from leafcast.centre.copying import Copying, keep_copying
from leafcast.daemon.process import prepare_folder
from leafcast.daemon.trios import TrioPlaces
from leafcast.data_dir import DataDir, make_private
from leafcast.local.views import DEPTH_MIN, TreeShape
from leafcast.node.credentials.kept_store import KeptStore, keep_store, kept_store
from leafcast.node.listen_settings import ListenRefused, kept_listen_settings
from leafcast.space_settings import CentreSpaces
from relay.adapters.server.cluster_settings import MEMBERS
from relay.atomic_file import make_folder, move_file
from relay.ports import Dice
from schemas.values.identity import NodePath

_SCRATCH = "restoring-members"
_SHAPE = TreeShape(0, 1, DEPTH_MIN)
"""Of the centre alone: what was below it joins anew."""
_FORM = {"shape": [_SHAPE.regions, _SHAPE.sites, _SHAPE.depth]}
_ONCE = "restore it without --members: its centre runs once"


def restore_trio(file: Path, place: DataDir, key: OperatorKey | None, dice: Dice) -> Backup:
    """Put a backup into a new data directory, whose next start runs three members of its centre.

    It is there whole or not at all. Raises BackupUnusable, DataDirUnusable, StoreKeyRefused,
    OSError.
    """
    if place.in_use():
        raise BackupUnusable(file, f"a tree runs on {place.folder}", "name another --data-dir")
    if place.keys.exists() or place.has_members() or place.tree() is not None:
        reason = f"there is a tree in {place.folder}, and --members {MEMBERS} begins a new one"
        raise BackupUnusable(file, reason, "name an empty or a new --data-dir")
    make_private(place.folder)
    with place.locked():
        scratch = place.folder / _SCRATCH
        # A loss of power left it.
        shutil.rmtree(scratch, ignore_errors=True)
        prepare_folder(place)
        try:
            make_folder(scratch)
            places = TrioPlaces(DataDir(scratch), _SHAPE)
            found = _lay_out(file, places, kept_store(place.folder), key, dice)
            move_file(places.folder, TrioPlaces(place, _SHAPE).folder)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        # Last: without it no start takes the members for whole.
        place.write_tree({**_FORM, "members": MEMBERS})
    return found


def _lay_out(
    file: Path, places: TrioPlaces, store: KeptStore, key: OperatorKey | None, dice: Dice
) -> Backup:
    member = places.members(NodePath())[0]
    first = DataDir(member.folder)
    make_folder(first.folder)
    # What waits there is sealed with the key of the store.
    store.settings()
    keep_store(first.folder, store)
    found = place_backup(file, first, key)
    _check_fits(file, first)
    first.write_tree(_FORM)
    keep_copying(first.folder, Copying(member.name, restored=True))
    places.lay_out(dice)
    return found


def _check_fits(file: Path, place: DataDir) -> None:
    """Raises BackupUnusable for a centre that three members on one machine cannot be."""
    if place.spaces() != CentreSpaces():
        reason = "the spaces of its centre are API servers"
        remedy = f"{_ONCE}, and may grow to three once it holds them (`leafcast node grow /`)"
        raise BackupUnusable(file, reason, remedy)
    try:
        listens = kept_listen_settings(place.folder)
    except ListenRefused as error:
        raise BackupUnusable(file, str(error), NO_BACKUP) from error
    if listens is None:
        return
    reason = (
        f"nodes elsewhere reach its centre at {', '.join(listens.urls)}, and nobody elsewhere "
        f"reaches --members {MEMBERS}, which are all on this machine"
    )
    remedy = (
        f"{_ONCE}; start it (`leafcast up`, with --listen HOST where its address is another one), "
        "and let it grow on three machines: `leafcast node add / --member` twice, `leafcast join` "
        "on two others, `leafcast node grow / --host HOST`"
    )
    raise BackupUnusable(file, reason, remedy)
