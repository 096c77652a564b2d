"""A file is as before or as it should be, and its owner's alone."""

import resource

import pytest

from relay.atomic_file import atomic_write, make_folder, remove_folder


def test_a_file_is_replaced_and_only_its_owner_reads_it(tmp_path):
    file, left = tmp_path / "keys.json", tmp_path / "keys.json.new"
    for stale in (file, left):
        stale.write_text("what was there before")
        stale.chmod(0o644)
    atomic_write(file, "né")
    assert file.read_text(encoding="utf-8") == "né"
    assert file.stat().st_mode & 0o777 == 0o600
    assert not left.exists()


@pytest.mark.parametrize("durable", [True, False])
def test_what_cannot_be_written_leaves_the_file_as_it_was(tmp_path, durable):
    file = tmp_path / "keys.json"
    atomic_write(file, "before")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(OSError, match="too large"):
            atomic_write(file, "x" * 2000, durable=durable)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert file.read_text() == "before"
    atomic_write(file, "after", durable=durable)
    assert file.read_text() == "after"


def test_each_folder_that_was_lacking_is_its_owners_alone(tmp_path):
    folder = tmp_path / "node" / "keys" / "one"
    for _ in range(2):
        make_folder(folder)
    made = (folder, folder.parent, folder.parent.parent)
    assert [at.stat().st_mode & 0o777 for at in made] == [0o700] * 3


def test_a_file_in_place_of_a_folder_is_refused(tmp_path):
    (tmp_path / "keys").write_text("")
    with pytest.raises(FileExistsError):
        make_folder(tmp_path / "keys")


def test_a_folder_goes_with_all_in_it_and_what_it_only_names_stays(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "inner").mkdir(parents=True)
    (elsewhere / "kept").write_text("kept")
    folder = tmp_path / "folder"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "file").write_text("gone")
    (folder / "link").symlink_to(elsewhere)
    (folder / "a" / "dangling").symlink_to(tmp_path / "nowhere")
    remove_folder(folder)
    assert not folder.exists()
    assert (elsewhere / "kept").read_text() == "kept"
    with pytest.raises(FileNotFoundError):
        remove_folder(folder)
