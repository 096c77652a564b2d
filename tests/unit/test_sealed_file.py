"""What is sealed on the disk opens whole and with its key, or not at all."""

import io
import tarfile
from pathlib import Path

import pytest

from leafcast.backups.refusals import BackupUnusable
from leafcast.backups.sealed_file import (
    BLOCK_BYTES,
    MARK,
    SealedReader,
    SealedWriter,
    is_sealed,
)
from leafcast.backups.whole_file import opened, replacing
from relay.adapters.server.store_key import StoreKey

KEY, OTHER = StoreKey("k" * 40), StoreKey("o" * 40)
NAME = Path("restore.tar")
HEAD_BYTES, SEALED_BYTES = len(MARK) + 16, BLOCK_BYTES + 16


def sealed(plain, piece=5_000):
    file = io.BytesIO()
    writer = SealedWriter(file, KEY)
    for at in range(0, len(plain), piece):
        writer.write(plain[at : at + piece])
    assert writer.tell() == len(plain)
    writer.finish()
    return file.getvalue()


def read(data, key=KEY):
    return io.BufferedReader(SealedReader(io.BytesIO(data), key, NAME)).read()


def some(size):
    return bytes(at * 7 % 251 for at in range(size))


@pytest.mark.parametrize("size", [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 150_000])
def test_what_was_sealed_is_read_again_from_any_place(size):
    plain = some(size)
    data = sealed(plain)
    assert is_sealed(io.BytesIO(data))
    assert size < 100 or plain[-100:] not in data
    assert read(data) == plain
    reader = io.BufferedReader(SealedReader(io.BytesIO(data), KEY, NAME))
    for at in (size // 2, size, 0, max(0, size - 3)):
        reader.seek(at)
        assert reader.read(70_000) == plain[at : at + 70_000]


@pytest.mark.parametrize(
    "left", [0, len(MARK), HEAD_BYTES, HEAD_BYTES + 7, HEAD_BYTES + SEALED_BYTES, -SEALED_BYTES, -1]
)
def test_what_was_cut_off_is_refused_at_once(left):
    data = sealed(some(3 * BLOCK_BYTES))
    with pytest.raises(BackupUnusable, match=r"restore\.tar.*or is damaged; remove it"):
        SealedReader(io.BytesIO(data[:left]), KEY, NAME)


def test_what_was_altered_put_elsewhere_or_sealed_otherwise_is_refused():
    data = sealed(some(3 * BLOCK_BYTES))
    with pytest.raises(BackupUnusable, match="another key of the store"):
        read(data, OTHER)
    altered = bytearray(data)
    altered[HEAD_BYTES + 9] ^= 1
    with pytest.raises(BackupUnusable):
        read(bytes(altered))
    first, second = HEAD_BYTES + SEALED_BYTES, HEAD_BYTES + 2 * SEALED_BYTES
    swapped = data[:HEAD_BYTES] + data[first:second] + data[HEAD_BYTES:first] + data[second:]
    with pytest.raises(BackupUnusable):
        read(swapped)


def test_a_tar_that_is_sealed_opens_with_the_key_alone(tmp_path):
    file, plain = tmp_path / "restore.tar", some(100_000)
    with replacing(file, KEY) as whole, tarfile.open(fileobj=whole, mode="w") as tar:
        info = tarfile.TarInfo("it")
        info.size = len(plain)
        tar.addfile(info, io.BytesIO(plain))
    with opened(file, KEY) as tar:
        found = tar.extractfile("it")
        assert found is not None
        assert found.read() == plain
    with pytest.raises(BackupUnusable, match="it is sealed, and there is no key; name the file"):
        opened(file).__enter__()
