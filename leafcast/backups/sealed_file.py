"""A file that lies on the disk under a key, block by block: written in order, and read anywhere.

What waits in the data directory of a node whose store is encrypted would lie in clear there.
"""

from __future__ import annotations

import io
import os
from hashlib import blake2b
from pathlib import Path
from typing import IO, TYPE_CHECKING

from nacl.exceptions import CryptoError
from nacl.secret import SecretBox
from nacl.utils import random

from leafcast.backups.refusals import BackupUnusable
from relay.adapters.server.store_key import StoreKey

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

MARK = b"leafcast sealed 1\n"
BLOCK_BYTES = 64 * 1024
_NAME_BYTES = SecretBox.NONCE_SIZE - 8
_HEAD_BYTES = len(MARK) + _NAME_BYTES
_SEALED_BYTES = BLOCK_BYTES + SecretBox.MACBYTES
_LAST = 1 << 63


def is_sealed(file: IO[bytes]) -> bool:
    """Whether a file begins as a sealed one; it is read from its beginning then."""
    file.seek(0)
    head = file.read(len(MARK))
    file.seek(0)
    return head == MARK


class SealedWriter(io.RawIOBase):
    """Bytes on their way into a file; without `finish` it opens as one that was cut off."""

    def __init__(self, file: IO[bytes], key: StoreKey) -> None:
        super().__init__()
        self._file, self._box, self._name = file, _box(key), random(_NAME_BYTES)
        self._number = self._written = 0
        self._block = bytearray()
        file.write(MARK + self._name)

    def writable(self) -> bool:
        return True

    def write(self, data: ReadableBuffer) -> int:
        """Take more; raises OSError."""
        taken = bytes(data)
        self._block += taken
        self._written += len(taken)
        # The last block is told from the others: one is kept back.
        while len(self._block) > BLOCK_BYTES:
            self._put(bytes(self._block[:BLOCK_BYTES]), self._number)
            del self._block[:BLOCK_BYTES]
            self._number += 1
        return len(taken)

    def tell(self) -> int:
        """How much was taken."""
        return self._written

    def finish(self) -> None:
        """Nothing more comes; raises OSError."""
        self._put(bytes(self._block), self._number | _LAST)

    def _put(self, block: bytes, number: int) -> None:
        self._file.write(self._box.encrypt(block, _nonce(self._name, number)).ciphertext)


class SealedReader(io.RawIOBase):
    """What was sealed, in clear; reading raises BackupUnusable where it was changed or cut off."""

    def __init__(self, file: IO[bytes], key: StoreKey, name: Path) -> None:
        """`name` is what it is called in a refusal; raises BackupUnusable or OSError."""
        super().__init__()
        self._file, self._box, self._called = file, _box(key), name
        sealed = file.seek(0, os.SEEK_END) - _HEAD_BYTES
        file.seek(len(MARK))
        self._name = file.read(_NAME_BYTES)
        self._last, rest = divmod(max(sealed, 0), _SEALED_BYTES)
        if not rest:
            self._last, rest = self._last - 1, _SEALED_BYTES
        self._size = self._last * BLOCK_BYTES + rest - SecretBox.MACBYTES
        self._at, self._block = 0, b""
        self._held: int | None = None
        # One that was cut off is refused before any of it is believed.
        self._hold(self._last)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: WriteableBuffer) -> int:
        room = memoryview(buffer).cast("B")
        if self._at >= self._size or not room:
            return 0
        number, within = divmod(self._at, BLOCK_BYTES)
        self._hold(number)
        found = self._block[within : within + len(room)]
        room[: len(found)] = found
        self._at += len(found)
        return len(found)

    def _hold(self, number: int) -> None:
        """Have a block in clear."""
        if number == self._held:
            return
        remedy = "remove it, and begin again with what it was made of"
        try:
            self._file.seek(_HEAD_BYTES + max(number, 0) * _SEALED_BYTES)
            marked = number | _LAST if number == self._last else number
            sealed = self._file.read(_SEALED_BYTES)
            self._block = self._box.decrypt(sealed, _nonce(self._name, marked))
        except (CryptoError, ValueError, TypeError, OverflowError) as error:
            reason = "it was sealed with another key of the store, or is damaged"
            raise BackupUnusable(self._called, reason, remedy) from error
        self._held = number


def _nonce(name: bytes, number: int) -> bytes:
    return name + number.to_bytes(8, "big")


def _box(key: StoreKey) -> SecretBox:
    """What it is sealed with: of the store's key, and good for nothing else."""
    return SecretBox(
        blake2b(
            key.secret.encode(), digest_size=SecretBox.KEY_SIZE, person=b"lc sealed file"
        ).digest()
    )
