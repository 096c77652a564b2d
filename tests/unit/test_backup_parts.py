"""What backups are made of: segments, indexes, keys, folders, settings, each by itself."""

import errno
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcast.backups.backup_folder import BackupFolder
from leafcast.backups.backup_index import (
    BackupIndex,
    IndexLine,
    StreamIndex,
    UsedSegment,
    close_index,
    open_index,
)
from leafcast.backups.backup_settings import (
    BackupSettings,
    BackupStanding,
    keep_settings,
    keep_standing,
    kept_settings,
    kept_standing,
)
from leafcast.backups.operator_keys import (
    OperatorKey,
    read_operator_key,
    read_operator_public,
    write_operator_key,
)
from leafcast.backups.refusals import BackupUnusable, disk_remedy
from leafcast.backups.restoring import PENDING, end_placing, place_backup
from leafcast.backups.segments import (
    SMALL_BYTES,
    SMALL_MAX,
    Segment,
    StreamCatalog,
    left_to_read,
    reusable,
)
from leafcast.backups.stored_messages import (
    MessagesDamaged,
    decode_messages,
    encode_message,
    runs_of,
    sequences_of,
)
from leafcast.backups.whole_file import BackupTar
from leafcast.data_dir import PLACING, DataDir
from leafcast.key_form import KeyFileRefused
from relay.adapters.jetstream.stream_reader import Stored
from schemas.content.operator_box import box_name, close_box, open_box, public_half
from schemas.content.sealing import NotOpened

KEY = OperatorKey(b"k" * 32)
PUBLIC, SECRET = public_half(KEY.private), b"s" * 32


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "make room"),
        (errno.EDQUOT, "make room"),
        (errno.EROFS, "have the centre write"),
        (errno.EACCES, "have the centre write"),
        (errno.EIO, "see whether"),
        (errno.ENOENT, "see whether"),
    ],
)
def test_what_a_disk_answers_has_a_remedy_of_its_own(number, remedy):
    assert disk_remedy(OSError(number, "")).startswith(remedy)


@given(st.frozensets(st.integers(0, 300)))
def test_runs_say_the_numbers_that_they_were_made_of(numbers):
    listed = sorted(numbers)
    assert list(sequences_of(runs_of(listed))) == listed


@given(
    st.lists(
        st.builds(
            Stored,
            st.text(min_size=1, max_size=20),
            st.binary(max_size=50),
            st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
            st.integers(0, 2**63),
            st.integers(0, 2**62),
        ),
        max_size=5,
    ),
    st.integers(1, 20),
)
def test_messages_are_read_as_they_were_written_and_cut_off_never(messages, cut):
    data = b"".join(map(encode_message, messages))
    assert list(decode_messages(data)) == messages
    if messages and cut < len(encode_message(messages[-1])):
        with pytest.raises(MessagesDamaged):
            list(decode_messages(data[:-cut]))


def segment(name, sequences, size=SMALL_BYTES):
    listed = tuple(sequences)
    return Segment(name, "", size, listed, tuple(1_000 + it for it in listed))


def at_their_time(sequences):
    return {it: 1_000 + it for it in sequences}


def test_a_segment_serves_again_while_it_is_there_and_half_of_it_counts():
    catalog = StreamCatalog(
        "then",
        (
            segment("whole", range(10)),
            segment("half", range(10, 20)),
            segment("old", range(20, 30)),
            segment("lost", range(30, 40)),
            segment("cut off", range(40, 50)),
        ),
    )
    alive = at_their_time((*range(10), *range(10, 15), *range(20, 24), *range(30, 50)))
    there = dict.fromkeys(("whole", "half", "old"), SMALL_BYTES) | {"cut off": 1}
    found = reusable(catalog, "then", alive, there)
    assert [it.piece for it in found] == ["whole", "half"]
    assert left_to_read(found, alive) == {*range(20, 24), *range(30, 50)}
    # A stream that was made anew has other messages under the same numbers.
    assert not reusable(catalog, "now", alive, there)
    assert StreamCatalog.read(catalog.form()) == StreamCatalog("then", list(catalog.segments))


def test_a_segment_with_a_message_of_another_time_serves_no_more():
    """The disk of the stream went back, and it used the number once more."""
    segments = [segment("before", range(10)), segment("undone", range(10, 20))]
    catalog = StreamCatalog("then", segments)
    there = {it.piece: it.size for it in segments}
    for at in (10, 13, 19):
        alive = at_their_time(range(20)) | {at: 5_000}
        assert [it.piece for it in reusable(catalog, "then", alive, there)] == ["before"]
    # What the stream does not keep any more says nothing.
    assert len(reusable(catalog, "then", at_their_time(range(19)), there)) == 2


def test_a_catalog_of_a_former_release_says_no_times_and_is_not_believed():
    form = StreamCatalog("then", [segment("a", range(3))]).form()
    with pytest.raises(ValueError, match="not each message"):
        StreamCatalog.read({**form, "segments": [[*form["segments"][0][:4], [1]]]})
    with pytest.raises(ValueError, match="unpack"):
        StreamCatalog.read({**form, "segments": [form["segments"][0][:4]]})


def test_small_segments_become_one_once_they_are_many():
    small = [segment(f"s{at}", [at], 10) for at in range(SMALL_MAX + 1)]
    catalog = StreamCatalog("then", (*small, segment("large", [99])))
    there = {it.piece: it.size for it in catalog.segments}
    alive = at_their_time(it for one in catalog.segments for it in one.sequences)
    assert [it.piece for it in reusable(catalog, "then", alive, there)] == ["large"]
    few = StreamCatalog("then", small[1:])
    assert len(reusable(few, "then", alive, there)) == SMALL_MAX


def index_file(file, number=1, pieces=("ab1",)):
    index = BackupIndex({"relay/OWN": StreamIndex({}, 7, [UsedSegment(pieces[0], "", (1,))])}, {})
    data = close_index(index, IndexLine("tree", number, 9, KEY.id, pieces), SECRET, PUBLIC)
    file.write_bytes(data)
    return data


def test_an_index_opens_with_its_key_alone_and_nothing_of_it_can_be_altered(tmp_path):
    file = tmp_path / "a.backup"
    data = index_file(file)
    line, index = open_index(file, data, KEY)
    assert (line.number, index.pieces) == (1, ("ab1",))
    for at in range(0, len(data), 7):
        altered = bytearray(data)
        altered[at] ^= 1
        with pytest.raises(BackupUnusable):
            open_index(file, bytes(altered), KEY)


def test_equal_content_has_one_name_and_one_form_which_tell_nothing_without_the_secret():
    assert box_name(SECRET, PUBLIC, b"x") == box_name(SECRET, PUBLIC, b"x")
    assert box_name(b"t" * 32, PUBLIC, b"x") != box_name(SECRET, PUBLIC, b"x")
    other = public_half(b"o" * 32)
    assert box_name(SECRET, other, b"x") != box_name(SECRET, PUBLIC, b"x")
    box = close_box(SECRET, PUBLIC, b"plain")
    assert box == close_box(SECRET, PUBLIC, b"plain")
    assert open_box(KEY.private, box) == b"plain"
    with pytest.raises(NotOpened):
        open_box(SECRET, box)


def test_a_key_is_read_with_its_passphrase_alone(tmp_path):
    file = tmp_path / "key"
    public, name = write_operator_key(file, bytes(range(48)), "horse")
    assert file.stat().st_mode & 0o077 == 0
    assert read_operator_key(file, lambda: "horse").id == name
    assert OperatorKey(bytes(range(32))).id == name
    assert read_operator_public(public) == public_half(bytes(range(32)))
    with pytest.raises(KeyFileRefused, match="the passphrase is wrong"):
        read_operator_key(file, lambda: "cow")
    with pytest.raises(KeyFileRefused, match="there already"):
        write_operator_key(file, bytes(48))
    with pytest.raises(KeyFileRefused, match="it is no leafcast backup key"):
        read_operator_key(public, lambda: "horse")
    clear, _ = write_operator_key(tmp_path / "clear", bytes(range(48)))
    assert read_operator_key(tmp_path / "clear", pytest.fail).id == name
    assert clear.read_bytes() == public.read_bytes()


def test_the_oldest_backups_go_with_the_pieces_that_only_they_need(tmp_path):
    folder = BackupFolder(tmp_path / "to")
    folder.begin("tree")
    for name in ("ab1", "cd2", "ef3"):
        folder.put_piece(name, name.encode())
    for number, pieces in ((1, ("ab1",)), (2, ("ab1", "cd2")), (3, ("cd2",)), (4, ("cd2",))):
        # Whatever a clock said: the number counts.
        index_file(folder.folder / f"x{9 - number}.backup", number, pieces)
    (folder.folder / "pieces" / "ab" / "begun.new").write_bytes(b"half")
    folder.keep_newest(3)
    assert [it.line.number for it in folder.backups()] == [4, 3, 2]
    assert folder.sizes() == {"ab1": 3, "cd2": 3}
    folder.keep_newest(1)
    assert folder.sizes() == {"cd2": 3}


def test_no_piece_goes_while_a_backup_there_cannot_be_read(tmp_path):
    folder = BackupFolder(tmp_path / "to")
    folder.begin("tree")
    folder.put_piece("ab1", b"")
    index_file(folder.folder / "a.backup", 1, ("cd2",))
    (folder.folder / "b.backup").write_bytes(b"damaged")
    folder.keep_newest(9)
    assert "ab1" in folder.sizes()
    assert [it.line is None for it in folder.backups()] == [False, True]


def test_a_folder_that_is_another_s_in_use_or_not_mounted_is_refused(tmp_path):
    folder = BackupFolder(tmp_path / "to")
    with pytest.raises(BackupUnusable, match="is the disk mounted"):
        folder.check("tree")
    (tmp_path / "to").mkdir()
    with pytest.raises(BackupUnusable, match="is the disk mounted"):
        folder.check("tree")
    (tmp_path / "to" / "photo.jpg").touch()
    with pytest.raises(BackupUnusable, match=r"other files \(photo.jpg"):
        folder.begin("tree")
    (tmp_path / "to" / "photo.jpg").unlink()
    folder.begin("tree")
    folder.begin("tree")
    with pytest.raises(BackupUnusable, match="another tree"):
        folder.begin("other")
    with (
        folder.alone(),
        pytest.raises(BackupUnusable, match="another backup is being written"),
        BackupFolder(folder.folder).alone(),
    ):
        pass


def test_settings_and_standing_are_kept_and_a_damaged_file_is_named(tmp_path):
    assert kept_settings(tmp_path) == BackupSettings()
    said = BackupSettings(900, 3, "/mnt", PUBLIC, SECRET)
    keep_settings(tmp_path, said)
    assert kept_settings(tmp_path) == said
    assert (tmp_path / "backup.json").stat().st_mode & 0o077 == 0
    (tmp_path / "backup.json").write_text('{"seconds": 1}')
    with pytest.raises(BackupUnusable, match="it is damaged"):
        kept_settings(tmp_path)
    standing = BackupStanding(5, "f", 7, 0.5).failed(9, "why", "what")
    keep_standing(tmp_path, standing)
    assert kept_standing(tmp_path) == standing
    # A release before did not say of disks.
    form = json.loads((tmp_path / "backup-standing.json").read_text())
    del form["same_disk"], form["whole_same_disk"]
    (tmp_path / "backup-standing.json").write_text(json.dumps(form))
    assert kept_standing(tmp_path) == standing
    # Since when they fail stays.
    assert standing.failed(99, "why", "what").failing_ms == 9
    (tmp_path / "backup-standing.json").write_text('{"made_ms": "long ago"}')
    assert kept_standing(tmp_path) == BackupStanding()


@pytest.mark.parametrize("has_timer", [True, False])
def test_the_timer_goes_on_as_a_backup_in_one_file_has_it_and_without_one_there_is_none(
    tmp_path, has_timer
):
    """Settings and what the file says of itself have one name there."""
    file, place = tmp_path / "b.tar", DataDir(tmp_path / "data")
    wanted = BackupSettings(900, 96, "/mnt", PUBLIC, SECRET) if has_timer else BackupSettings()
    files = {"keys/keys.json": b'{"tree": "t"}'}
    with file.open("wb") as data, BackupTar(data, tmp_path) as tar:
        tar.add_files(files | ({"backup.json": wanted.encoded().encode()} if has_timer else {}))
        tar.end("t", 1, one_moment=True)
    place_backup(file, place)
    assert kept_settings(place.folder) == wanted
    # The power was cut as they were put there.
    (place.folder / PENDING).rename(place.folder / PLACING)
    (place.folder / "backup.json").unlink(missing_ok=True)
    end_placing(place)
    assert kept_settings(place.folder) == wanted
