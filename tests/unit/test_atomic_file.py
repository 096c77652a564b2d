"""A file is as before or as it should be, and its owner's alone."""

import resource

import pytest

from relay.atomic_file import atomic_write


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
