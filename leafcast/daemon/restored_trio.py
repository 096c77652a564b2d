"""A backup becomes a tree on this machine whose centre and relays have three members each.

All of it is laid out before its first start. The first member of the centre has the backup, and
restores it in its first tenure; until then no other one may be active. So it is a growth whose copy
was written elsewhere. Nodes that ran on the backup's machine are made anew, with keys of their own.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from leafcast.backups.known_nodes import known_nodes
from leafcast.backups.operator_keys import OperatorKey
from leafcast.backups.refusals import NO_BACKUP, BackupUnusable
from leafcast.backups.restoring import PENDING, place_backup
from leafcast.backups.whole_file import Backup
from leafcast.centre.copying import Copying, keep_copying
from leafcast.daemon.process import prepare_folder
from leafcast.daemon.trios import TrioPlaces
from leafcast.data_dir import RESTORING, TREE_FILE, DataDir, DataDirUnusable, make_private
from leafcast.local.tree_kube import hub
from leafcast.local.views import CENTRE_ALONE, SERVERS_MAX, TreeShape
from leafcast.node.credentials.kept_store import keep_store, kept_store
from leafcast.node.listen_settings import ListenRefused, kept_listen_settings
from leafcast.space_settings import IN_CLUSTER, CentreSpaces
from relay.adapters.server.cluster_settings import MEMBERS
from relay.atomic_file import make_folder, move_file
from relay.ports import Dice
from schemas.values.identity import NodePath

_ONCE = "restore it without --members: its centre runs once"


@dataclass(frozen=True, slots=True)
class RestoredTrio:
    """A backup in its place, and the nodes that it knows, by where they run from now on."""

    backup: Backup
    here: tuple[NodePath, ...]
    elsewhere: tuple[NodePath, ...]


def restore_trio(file: Path, place: DataDir, key: OperatorKey | None, dice: Dice) -> RestoredTrio:
    """Put a backup into a new data directory, whose next start runs three members of its centre.

    It is there whole or not at all; one that was cut off is begun anew. Raises BackupUnusable,
    DataDirUnusable, StoreKeyRefused, OSError.
    """
    if place.in_use():
        raise BackupUnusable(file, f"a tree runs on {place.folder}", "name another --data-dir")
    is_used = place.keys.exists() and not place.is_half_restored()
    if place.has_members() or place.tree() is not None or is_used:
        reason = f"there is a tree in {place.folder}, and --members {MEMBERS} begins a new one"
        raise BackupUnusable(file, reason, "name an empty or a new --data-dir")
    make_private(place.folder)
    with place.locked():
        _clear(place)
        prepare_folder(place)
        try:
            scratch = DataDir(place.folder / RESTORING)
            make_folder(scratch.folder)
            found = _lay_out(file, place, scratch, key, dice)
            moved = {it.name: it for it in scratch.folder.iterdir()}
            # Last: without it no start takes the others for whole.
            last = moved.pop(TREE_FILE)
            for it in (*moved.values(), last):
                move_file(it, place.folder / it.name)
        finally:
            _clear(place)
    return found


def _clear(place: DataDir) -> None:
    """Remove what a restore left, and if it was cut off all that it moved."""
    scratch = place.folder / RESTORING
    if not scratch.exists():
        return
    if not (place.folder / TREE_FILE).exists():
        for name in ("members", "lc_*", "spaces.json"):
            for it in place.folder.glob(name):
                shutil.rmtree(it) if it.is_dir() else it.unlink()
    shutil.rmtree(scratch, ignore_errors=True)


def _lay_out(
    file: Path, place: DataDir, scratch: DataDir, key: OperatorKey | None, dice: Dice
) -> RestoredTrio:
    store = kept_store(place.folder)
    # What waits there is sealed with the key of the store.
    store_key = store.settings().key
    first = DataDir(TrioPlaces(scratch, CENTRE_ALONE).members(NodePath())[0].folder)
    make_folder(first.folder)
    keep_store(first.folder, store)
    backup = place_backup(file, first, key)
    _check_fits(file, first)
    known = known_nodes(first.folder / PENDING, store_key)
    shape, kube = _shape(file, first)
    scratch.write_tree({**shape.form(), **({"kube": kube} if kube else {}), "members": MEMBERS})
    spaces = CentreSpaces((hub(place),), (hub(place),)) if kube else first.spaces()
    if spaces != CentreSpaces():
        scratch.write_spaces(spaces)
    places = TrioPlaces(scratch, shape)
    keep_copying(first.folder, Copying(places.members(NodePath())[0].name, restored=True))
    places.lay_out(dice, known)
    here = {path for tier in shape.tiers() for path in tier} & known
    return RestoredTrio(backup, tuple(sorted(here)), tuple(sorted(known - here)))


def _shape(file: Path, place: DataDir) -> tuple[TreeShape, str]:
    """The tree that ran on the backup's machine, and which of its nodes had API servers.

    Raises BackupUnusable for one that no machine carries.
    """
    try:
        form = place.tree() or CENTRE_ALONE.form()
        shape, kube = TreeShape.of(form), str(form.get("kube") or "")
    except (DataDirUnusable, ValueError, KeyError, TypeError) as error:
        raise BackupUnusable(file, f"its {TREE_FILE} is damaged", NO_BACKUP) from error
    if (servers := shape.servers(MEMBERS)) > SERVERS_MAX:
        reason = (
            f"its tree would have {servers} nats-servers with --members {MEMBERS}, and one machine "
            f"carries about {SERVERS_MAX}"
        )
        raise BackupUnusable(file, reason, _ONCE)
    return shape, kube


def _check_fits(file: Path, place: DataDir) -> None:
    """Raises BackupUnusable for a centre that three members on one machine cannot be."""
    if IN_CLUSTER in place.spaces().named():
        reason = "a space of its centre is the cluster in which that ran"
        remedy = "restore it there, without --members: `leafcast run center` on its data directory"
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
