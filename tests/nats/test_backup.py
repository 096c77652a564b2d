"""A centre's backup: what was there when it was written is there again, and nothing else."""

import errno
import json
import os
import tarfile
from dataclasses import replace

import pytest

from controllers.core.access.issued_tokens import IssuedToken
from leafcast.backups import centre_files, piecewise, restoring, whole_file
from leafcast.backups.backup_folder import BackupFolder
from leafcast.backups.refusals import BackupDamaged, BackupUnusable
from leafcast.backups.restoring import (
    PENDING,
    PLACING,
    end_placing,
    newest_in,
    place_backup,
    restore_pending,
)
from leafcast.backups.whole_file import write_backup
from leafcast.daemon.nodes.token_files import TokenFiles
from leafcast.data_dir import DataDir
from leafcast.node.credentials.authorities import load_or_make_authorities
from schemas.records.records import SpaceMark, space_key
from schemas.records.roots import Roots
from schemas.values.identity import KeyId, TreeId, random_id
from schemas.values.wire import decode, encode
from tests.nats.backed_up_centre import (
    CLOCK,
    KEY,
    OTHER_KEY,
    TREE,
    BackedUpCentre,
    taken,
)
from tests.unit.centre_world import USER, config, config_key

pytestmark = pytest.mark.nats

TOKEN = IssuedToken(
    b"p" * 32, "/late", Roots({KeyId(random_id(b"r" * 16)): b"k" * 32}), 1_000, 9_000
)
RECORDS = [bytes([at]) * 50_000 for at in range(20)]


async def written(centre, form, folder):
    """A backup of one of the two forms, and the key that opens it."""
    if form == "piecewise":
        return await centre.back_up(BackupFolder(folder / "backups")), KEY
    file = folder / "backup.tar"
    await write_backup(file, centre.place, centre.server, CLOCK)
    return file, None


@pytest.mark.parametrize("form", ["whole", "piecewise"])
async def test_what_a_backup_holds_is_there_again_and_revisions_go_on(grove, tmp_path, form):
    async with grove:
        old = await BackedUpCentre(grove, tmp_path / "old").start("/")
        await old.make_ledger(*RECORDS)
        await old.put(3, b"said again")
        await old.space.open()
        await old.space.apply(config("a", namespace="default"), USER)
        await old.space.apply(config("gone", namespace="default"), USER)
        await old.space.delete(config_key("gone", "default"))
        identity = await old.space.identity()
        before = await old.space.get(config_key("a", "default"))
        revision = int((await old.space.revision()).partition(".")[0])
        authority = load_or_make_authorities(old.place.folder, TreeId(TREE), 1_000).signing
        TokenFiles(old.place.folder).keep([TOKEN])
        file, key = await written(old, form, tmp_path)
        assert file.stat().st_mode & 0o077 == 0
        held = await old.ledger()
        await old.put(99, b"later")

        new = await BackedUpCentre(grove, tmp_path / "new").start("/other", tree=None)
        place_backup(file, new.place, key)
        # Nodes elsewhere believe the authority: a new one would shut them all out.
        assert load_or_make_authorities(new.place.folder, TreeId(TREE), 1_000).signing == authority
        assert TokenFiles(new.place.folder).read() == [TOKEN]
        await new.make_ledger(b"another")
        restored = await restore_pending(new.place, new.server, CLOCK)
        assert (restored[0].name, restored[0].messages) == ("relay/OWN", 20)
        assert await new.ledger() == held
        await new.space.open()
        assert await new.space.identity() == identity
        again = await new.space.get(config_key("a", "default"))
        versions = [it["metadata"].pop("resourceVersion") for it in (before, again)]
        assert again == before
        # Who knew a revision finds that the space went on.
        assert int(versions[1]) > revision >= int(versions[0])
        assert await new.space.get(config_key("gone", "default")) is None
        # Once, and not at each start.
        assert not (new.place.folder / PENDING).exists()
        assert await restore_pending(new.place, new.server, CLOCK) is None


async def test_a_second_backup_writes_only_what_is_new(grove, tmp_path):
    folder = BackupFolder(tmp_path / "backups")
    async with grove:
        centre = await BackedUpCentre(grove, tmp_path / "tree").start()
        await centre.make_ledger(*(bytes([at]) * 5_000 for at in range(200)))
        await centre.back_up(folder)
        first = taken(folder)
        await centre.put(7, b"said again")
        held = await centre.ledger()
        second = await centre.back_up(folder)
        assert taken(folder) - first < first // 5
        pieces = set(folder.sizes())
        third = await centre.back_up(folder)
        assert set(folder.sizes()) == pieces
        for file in (second, third):
            await centre.restore(file)
            assert await centre.ledger() == held


@pytest.mark.parametrize("form", ["whole", "piecewise"])
async def test_a_backup_holds_ledger_and_space_of_one_moment(grove, tmp_path, monkeypatch, form):
    """What comes after the ledger was read and before the space was has it look once more."""
    late = ["first", "second"]
    async with grove:
        centre = await BackedUpCentre(grove, tmp_path / "tree").start()
        await centre.make_ledger(*RECORDS)
        await centre.space.open()
        plain = piecewise.read_from

        async def read_from(connection, clock, stream, first, take):
            await plain(connection, clock, stream, first, take)
            if stream == "OWN" and late:
                await centre.put(7, late.pop(0).encode())

        monkeypatch.setattr(piecewise, "read_from", read_from)
        monkeypatch.setattr(whole_file, "read_from", read_from)
        file, key = await written(centre, form, tmp_path)
        assert not late
        held = await centre.ledger()
        assert held["lc._own.r7"] == b"second"
        await centre.restore(file, key)
        assert await centre.ledger() == held


@pytest.mark.parametrize("form", ["whole", "piecewise"])
@pytest.mark.parametrize("stands_still", [True, False])
async def test_a_backup_of_no_one_moment_has_what_its_space_shows_wait(
    grove, tmp_path, monkeypatch, form, stands_still
):
    """An API server went on, and nothing of it is older for that."""
    spaces = {}
    async with grove:
        centre = await BackedUpCentre(grove, tmp_path / "tree").start()
        await centre.make_ledger(*RECORDS)
        await centre.space.open()
        identity = await centre.space.identity()
        for name in (identity, f"{identity}.inventory", "an API server"):
            spaces[name] = f"lc._own._space_{space_key(name)}"
            await centre.note(spaces[name], encode(SpaceMark(7)))
        plain = piecewise.read_from

        async def read_from(connection, clock, stream, first, take):
            await plain(connection, clock, stream, first, take)
            if stream == "OWN" and not stands_still:
                await centre.put(7, os.urandom(9))

        monkeypatch.setattr(piecewise, "read_from", read_from)
        monkeypatch.setattr(whole_file, "read_from", read_from)
        file, key = await written(centre, form, tmp_path)
        await centre.restore(file, key)
        ledger = await centre.ledger()
        marks = {name: decode(SpaceMark, ledger[note]) for name, note in spaces.items()}
    older = SpaceMark(7, rolled_back=True, fell_back=not stands_still)
    wanted = {identity: older, f"{identity}.inventory": older}
    assert marks == {**wanted, "an API server": SpaceMark(7, rolled_back=True)}


async def test_many_small_backups_stay_few_pieces(grove, tmp_path):
    folder = BackupFolder(tmp_path / "backups")
    async with grove:
        centre = await BackedUpCentre(grove, tmp_path / "tree").start()
        await centre.make_ledger(*(bytes([at]) * 2_000 for at in range(20)))
        for at in range(40):
            await centre.put(at % 20, bytes([at]) * 100)
            file = await centre.back_up(folder, keep=2)
        assert len(folder.backups()) == 2
        assert len(folder.sizes()) < 25
        held = await centre.ledger()
        await centre.restore(file)
        assert await centre.ledger() == held


async def test_a_piece_that_is_lost_or_cut_off_is_written_again(grove, tmp_path):
    folder = BackupFolder(tmp_path / "backups")
    async with grove:
        centre = await BackedUpCentre(grove, tmp_path / "tree").start()
        await centre.make_ledger(*RECORDS)
        first = await centre.back_up(folder)
        (piece,) = (folder.folder / "pieces").rglob("*/*")
        piece.write_bytes(piece.read_bytes()[:-1])
        with pytest.raises(BackupUnusable, match="this piece is damaged"):
            place_backup(first, DataDir(tmp_path / "new"), KEY)
        assert not (tmp_path / "new" / "keys" / "keys.json").exists()
        await centre.back_up(folder)
        place_backup(first, DataDir(tmp_path / "new"), KEY)
        piece.unlink()
        with pytest.raises(BackupUnusable, match="1 of its 1 pieces are not in"):
            place_backup(first, DataDir(tmp_path / "third"), KEY)
        await centre.back_up(folder)
        place_backup(first, DataDir(tmp_path / "third"), KEY)


async def test_whatever_ends_a_backup_amid_leaves_those_that_are_there(grove, tmp_path):
    """Each write of a backup is the last one once: what was there restores, and the next works."""

    class Cut(BackupFolder):
        left = 0

        def write(self, name, data):
            if not self.left:
                # As a power cut leaves it: begun, and not in its place.
                self.folder.joinpath(f"{name}.new").write_bytes(data[: len(data) // 2])
                raise OSError(28, "No space left on device", name)
            self.left -= 1
            super().write(name, data)

    folder = BackupFolder(tmp_path / "backups")
    async with grove:
        centre = await BackedUpCentre(grove, tmp_path / "tree").start()
        await centre.make_ledger(*RECORDS)
        await centre.space.open()
        whole = await centre.back_up(folder)
        held = await centre.ledger()
        cuts = 0
        while True:
            await centre.put(cuts, b"changed")
            cut = Cut(folder.folder)
            cut.left = cuts
            try:
                await centre.back_up(cut)
            except OSError:
                cuts += 1
                assert whole in [it.file for it in folder.backups() if it.line]
                place_backup(whole, DataDir(tmp_path / f"new{cuts}"), KEY)
            else:
                break
        # The pieces of the ledger, the index, the catalog.
        assert cuts >= 3
        newest = folder.backups()[0].file
        assert not list(folder.folder.rglob("*.new"))
        now = await centre.ledger()
        await centre.restore(whole)
        assert await centre.ledger() == held
        await centre.restore(newest)
        assert await centre.ledger() == now


class SmallDisk(BackupFolder):
    """A folder on a disk that has room for so many bytes."""

    def __init__(self, folder, room):
        super().__init__(folder)
        self.room = room

    def write(self, name, data):
        if taken(self) + len(data) > self.room:
            raise OSError(errno.ENOSPC, "No space left on device", name)
        super().write(name, data)


async def test_a_disk_without_room_for_one_more_lets_the_oldest_go_and_is_not_filled_up(
    grove, tmp_path
):
    folder = SmallDisk(tmp_path / "backups", 10_000_000)
    async with grove:
        centre = await BackedUpCentre(grove, tmp_path / "tree").start()
        await centre.make_ledger(*(os.urandom(20_000) for _ in range(4)))
        await centre.back_up(folder, keep=2)
        # All is new in each: two fit, and a third one does not.
        folder.room = int(2.6 * taken(folder))
        for _ in range(4):
            for at in range(4):
                await centre.put(at, os.urandom(20_000))
            newest = await centre.back_up(folder, keep=2)
        assert folder.backups()[0].file == newest
        # What cannot be written at all leaves nothing behind for good.
        held = await centre.ledger()
        for _ in range(3):
            for at in range(8):
                await centre.put(at, os.urandom(20_000))
            with pytest.raises(OSError, match="No space left"):
                await centre.back_up(folder, keep=1)
        folder.room = 10_000_000
        await centre.back_up(folder, keep=2)
        assert len(folder.sizes()) <= 4
        await centre.restore(newest)
        assert await centre.ledger() == held


async def test_another_key_an_altered_backup_and_another_tree_are_named(grove, tmp_path):
    folder = BackupFolder(tmp_path / "backups")
    async with grove:
        centre = await BackedUpCentre(grove, tmp_path / "tree").start()
        await centre.make_ledger(*RECORDS)
        file = await centre.back_up(folder)
    new = DataDir(tmp_path / "new")
    with pytest.raises(BackupUnusable, match=f"closed for key {KEY.id}; say --key"):
        place_backup(file, new)
    with pytest.raises(BackupUnusable, match=f"and this is key {OTHER_KEY.id}"):
        place_backup(file, new, OTHER_KEY)
    data = file.read_bytes()
    for altered in (data[:-1], data.replace(b'"number": 1', b'"number": 2'), data[:200]):
        file.write_bytes(altered)
        with pytest.raises(BackupUnusable, match="damaged"):
            place_backup(file, new, KEY)
    assert not new.folder.exists()
    file.write_bytes(data)
    (tmp_path / "theirs" / "keys").mkdir(parents=True)
    (tmp_path / "theirs" / "keys" / "keys.json").write_text('{"tree": "other"}')
    with pytest.raises(
        BackupUnusable, match=f"another tree in .*other, and the backup is of {TREE}"
    ):
        place_backup(file, DataDir(tmp_path / "theirs"), KEY)
    with pytest.raises(BackupUnusable, match="another tree"):
        folder.check("other")


@pytest.mark.parametrize("damage", [b"", b"half", b'{"kind": "leafcast backup", "format": 2}\n'])
async def test_an_older_backup_is_not_taken_in_silence_for_the_newest(grove, tmp_path, damage):
    folder = BackupFolder(tmp_path / "backups")
    async with grove:
        centre = await BackedUpCentre(grove, tmp_path / "tree").start()
        await centre.make_ledger(*RECORDS)
        older = await centre.back_up(folder)
        newest = await centre.back_up(folder)
        assert newest_in(folder.folder) == newest
        newest.write_bytes(damage)
        with pytest.raises(BackupUnusable) as refused:
            newest_in(folder.folder)
        # Of another format it is no worse than before: that release reads it.
        assert isinstance(refused.value, BackupDamaged) == (b"format" not in damage)
        assert ("use the version" in refused.value.remedy) == (b"format" in damage)
        assert str(newest) in str(refused.value)
        assert str(older) in refused.value.remedy
        newest.unlink()
        assert newest_in(folder.folder) == older


async def test_a_damaged_backup_goes_as_it_grows_old_and_with_it_what_it_may_have_needed(
    grove, tmp_path
):
    folder = BackupFolder(tmp_path / "backups")
    async with grove:
        centre = await BackedUpCentre(grove, tmp_path / "tree").start()
        await centre.make_ledger(*RECORDS)
        damaged = await centre.back_up(folder, keep=2)
        before = set(folder.sizes())
        for at, record in enumerate(RECORDS):
            await centre.put(at, record[::-1] + b"another")
        second = await centre.back_up(folder, keep=2)
        damaged.write_bytes(b"")
        third = await centre.back_up(folder, keep=2)
        assert [it.file for it in folder.backups()] == [third, second]
        assert not before & set(folder.sizes())
        await centre.restore(third)


async def test_each_bit_of_a_backup_in_one_file_counts(grove, tmp_path):
    async with grove:
        centre = await BackedUpCentre(grove, tmp_path / "tree").start()
        await centre.make_ledger(b"a record" * 100, b"another")
        file, _ = await written(centre, "whole", tmp_path)
    data = file.read_bytes()
    with tarfile.open(file) as tar:
        members = tar.getmembers()
    for member in members:
        altered = bytearray(data)
        altered[member.offset_data + member.size // 2] ^= 1
        file.write_bytes(altered)
        with pytest.raises(BackupUnusable):
            place_backup(file, DataDir(tmp_path / "new"))
    assert not (tmp_path / "new").exists()
    file.write_bytes(data)
    assert place_backup(file, DataDir(tmp_path / "new")).tree == TREE


async def test_backups_for_another_key_share_nothing_with_former_ones(grove, tmp_path):
    folder = BackupFolder(tmp_path / "backups")
    async with grove:
        centre = await BackedUpCentre(grove, tmp_path / "tree").start()
        await centre.make_ledger(*RECORDS)
        await centre.back_up(folder)
        before = set(folder.sizes())
        file = await centre.back_up(folder, keep=1, key=OTHER_KEY)
        assert not before & set(folder.sizes())
        await centre.restore(file, OTHER_KEY)


async def test_a_restored_ledger_takes_its_spaces_for_such_that_lost_some(grove, tmp_path):
    note = "lc._own._space_x"
    async with grove:
        centre = await BackedUpCentre(grove, tmp_path / "tree").start()
        await centre.make_ledger(b"a record")
        await centre.note(note, encode(SpaceMark(7)))
        file, _ = await written(centre, "whole", tmp_path)
        await centre.restore(file, None)
        kept = decode(SpaceMark, (await centre.ledger())[note])
        assert kept == SpaceMark(7, rolled_back=True)
        # What was held as perhaps older is held still.
        await centre.note(note, encode(SpaceMark(7, fell_back=True)))
        file, _ = await written(centre, "whole", tmp_path)
        await centre.restore(file, None)
        kept = decode(SpaceMark, (await centre.ledger())[note])
        assert kept == SpaceMark(7, rolled_back=True, fell_back=True)


async def test_a_token_that_was_used_since_the_backup_stays_used(grove, tmp_path):
    used = replace(TOKEN, void_ms=2_000)
    async with grove:
        centre = await BackedUpCentre(grove, tmp_path / "tree").start()
        files = TokenFiles(centre.place.folder)
        files.keep([TOKEN])
        file, _ = await written(centre, "whole", tmp_path)
    files.keep([used])
    place_backup(file, centre.place, force=True)
    assert files.read() == [used]


async def test_a_tree_that_is_there_is_replaced_only_by_force(grove, tmp_path):
    async with grove:
        centre = await BackedUpCentre(grove, tmp_path / "tree").start()
        file, _ = await written(centre, "whole", tmp_path)
    with pytest.raises(BackupUnusable, match="--force"):
        place_backup(file, centre.place)
    (centre.place.keys / "keys.json").write_text("{}")
    assert place_backup(file, centre.place, force=True).tree == TREE
    assert json.loads((centre.place.keys / "keys.json").read_text()) == {"tree": TREE}
    with centre.place.locked(), pytest.raises(BackupUnusable, match="leafcast down"):
        place_backup(file, centre.place, force=True)


async def test_a_restore_that_was_refused_is_not_carried_out_later(grove, tmp_path, monkeypatch):
    """The disk has room for a part of what is to be put there: all stays as it was."""
    async with grove:
        centre = await BackedUpCentre(grove, tmp_path / "tree").start()
        await centre.make_ledger(b"a record")
        load_or_make_authorities(centre.place.folder, TreeId(TREE), 1_000)
        for form in ("whole", "piecewise"):
            file, key = await written(centre, form, tmp_path)
            there = DataDir(tmp_path / f"there-{form}")
            there.keys.mkdir(parents=True)
            (there.keys / "keys.json").write_text('{"tree": "other"}')
            room, plain = [0], centre_files.atomic_write_bytes

            def write(target, data, room=room, plain=plain):
                if not room[0]:
                    raise OSError(errno.ENOSPC, "No space left on device")
                room[0] -= 1
                plain(target, data)

            monkeypatch.setattr(centre_files, "atomic_write_bytes", write)
            for room[0] in range(3):
                with pytest.raises(BackupUnusable, match="No space left on device; look at"):
                    place_backup(file, there, key, force=True)
            monkeypatch.undo()
            left = {it.name for it in there.folder.rglob("*") if it.is_file()}
            assert left == {"keys.json", "lock"}
            assert (there.keys / "keys.json").read_text() == '{"tree": "other"}'
            end_placing(there)
            assert await restore_pending(there, centre.server, CLOCK) is None


async def test_a_restore_amid_which_the_power_is_cut_is_ended_before_keys_are_read(
    grove, tmp_path, monkeypatch
):
    async with grove:
        centre = await BackedUpCentre(grove, tmp_path / "tree").start()
        await centre.make_ledger(b"a record")
        authorities = load_or_make_authorities(centre.place.folder, TreeId(TREE), 1_000)
        held = await centre.ledger()
        file, _ = await written(centre, "whole", tmp_path)
        await centre.put(1, b"later")
        there = DataDir(tmp_path / "there")
        moves, plain = [1], centre_files.move_file

        def move(draft, target):
            if not moves[0]:
                raise KeyboardInterrupt
            moves[0] -= 1
            plain(draft, target)

        monkeypatch.setattr(centre_files, "move_file", move)
        monkeypatch.setattr(restoring, "move_file", move)
        for moves[0] in range(4):
            with pytest.raises(KeyboardInterrupt):
                place_backup(file, there, force=True)
            # Not yet: it would have the keys of another tree.
            assert not (there.folder / PENDING).exists()
            assert (there.folder / PLACING).exists()
        monkeypatch.undo()
        end_placing(there)
        assert load_or_make_authorities(there.folder, TreeId(TREE), 1_000) == authorities
        await restore_pending(there, centre.server, CLOCK)
        assert await centre.ledger() == held


async def test_what_waits_to_be_restored_is_not_put_into_another_tree(grove, tmp_path):
    async with grove:
        centre = await BackedUpCentre(grove, tmp_path / "tree").start()
        await centre.make_ledger(b"a record")
        file, _ = await written(centre, "whole", tmp_path)
        place_backup(file, centre.place, force=True)
        (centre.place.keys / "keys.json").write_text('{"tree": "other"}')
        with pytest.raises(BackupUnusable, match=f"another tree \\({TREE}\\) than the keys"):
            await restore_pending(centre.place, centre.server, CLOCK)
        assert len(await centre.ledger()) == 1


async def test_fewer_are_kept_only_once_a_new_one_is_written(grove, tmp_path):
    folder = BackupFolder(tmp_path / "backups")
    async with grove:
        centre = await BackedUpCentre(grove, tmp_path / "tree").start()
        await centre.make_ledger(*RECORDS)
        before = [await centre.back_up(folder) for _ in range(4)]

        class Broken(BackupFolder):
            def write(self, name, data):
                raise OSError(errno.EIO, "Input/output error", name)

        with pytest.raises(OSError, match="Input/output"):
            await centre.back_up(Broken(folder.folder), keep=1)
        assert [it.file for it in folder.backups()] == before[::-1]
        # Without room the oldest go first, and never the last.
        full = SmallDisk(folder.folder, 0)
        with pytest.raises(OSError, match="No space left"):
            await centre.back_up(full, keep=2)
        assert [it.file for it in folder.backups()] == [before[-1]]
        newest = await centre.back_up(folder, keep=1)
        assert [it.file for it in folder.backups()] == [newest]


@pytest.mark.parametrize("made_anew", ["", ".", "pieces"])
async def test_a_folder_that_goes_amid_a_backup_is_not_made_anew_and_none_is_told_of(
    grove, tmp_path, made_anew
):
    class Unmounted(BackupFolder):
        def put_piece(self, name, data):
            self.folder.rename(elsewhere)
            if made_anew:
                (self.folder / made_anew).mkdir(parents=True)
            super().put_piece(name, data)

    folder, elsewhere = BackupFolder(tmp_path / "backups"), tmp_path / "elsewhere"
    async with grove:
        centre = await BackedUpCentre(grove, tmp_path / "tree").start()
        await centre.make_ledger(*RECORDS)
        folder.begin(TREE)
        with pytest.raises(BackupUnusable, match="no backups are there; is the disk mounted"):
            await centre.back_up(Unmounted(folder.folder), already=True)
        assert not folder.backups()
        assert folder.folder.exists() == bool(made_anew)


async def test_pieces_that_go_amid_a_backup_fail_it(grove, tmp_path, monkeypatch):
    folder = BackupFolder(tmp_path / "backups")
    async with grove:
        centre = await BackedUpCentre(grove, tmp_path / "tree").start()
        await centre.make_ledger(*RECORDS)
        first = await centre.back_up(folder)
        plain = piecewise.centre_files

        def files(place):
            for piece in (folder.folder / "pieces").rglob("*/*"):
                piece.unlink()
            return plain(place)

        monkeypatch.setattr(piecewise, "centre_files", files)
        with pytest.raises(BackupUnusable, match="1 of the pieces that a backup needs went"):
            await centre.back_up(folder)
        assert [it.file for it in folder.backups()] == [first]


def test_what_is_no_backup_is_refused_and_nothing_is_written(tmp_path):
    place = DataDir(tmp_path / "tree")
    with pytest.raises(BackupUnusable, match="no such file"):
        place_backup(tmp_path / "none.tar", place)
    (tmp_path / "text").write_text("no tar")
    with pytest.raises(BackupUnusable, match="cannot be read"):
        place_backup(tmp_path / "text", place)
    assert not place.folder.exists()
