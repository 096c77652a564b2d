"""Whether a bundle holds what it says, all of it and nothing else, and who signed that."""

from __future__ import annotations

import hashlib
import re
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from leafcast.bundles.keys import PublicKey, has_signed
from leafcast.bundles.packing import FORMAT, entry_of
from leafcast.bundles.sums import (
    SIGNATURE,
    SUMS,
    SUMS_BYTES_MAX,
    BundleUnusable,
    read_sums,
)

_TOP = re.compile(r"leafcast-([0-9][A-Za-z0-9.+!]*)/(.+)")
_CHUNK = 1 << 20
_AGAIN = "copy it once more from where it was made"
_SIGNATURE_BYTES = 64


@dataclass(frozen=True, slots=True)
class Verified:
    """A bundle that holds what it says."""

    version: str
    files: int
    # Of the whole file, to compare with what its maker published.
    sha256: str
    is_signed: bool


def verify_bundle(file: Path, key: PublicKey | None) -> Verified:
    """Read all of a bundle; with a key it has to be signed by that. Raises BundleUnusable."""
    try:
        with file.open("rb") as data:
            whole = hashlib.file_digest(data, "sha256").hexdigest()
            data.seek(0)
            with tarfile.open(fileobj=data, mode="r:") as tar:
                found = _verified(file, tar, whole, key)
                _check_form(file, data, found.version, tar.getmembers())
                return found
    except OSError as error:
        raise BundleUnusable(file, error.strerror or str(error), _AGAIN) from error
    # A size that is no number reaches us as what it is.
    except (tarfile.TarError, ValueError, OverflowError) as error:
        raise BundleUnusable(file, f"it is no whole tar: {error}", _AGAIN) from error


def _verified(file: Path, tar: tarfile.TarFile, whole: str, key: PublicKey | None) -> Verified:
    entries = _entries(file, tar)
    version, name, said = _small(file, tar, entries, SUMS)
    if name != SUMS:
        raise BundleUnusable(file, f"it begins with {name}, and not with {SUMS}", _AGAIN)
    left, count, is_signed = read_sums(file, said), 0, False
    for of_version, name, entry in entries:
        content = tar.extractfile(entry)
        assert content is not None, "a plain file"
        if of_version != version:
            raise BundleUnusable(file, f"{name} is of version {of_version}", _AGAIN)
        if name == SIGNATURE and count == 0 and not is_signed:
            is_signed = True
            _check_signature(file, content.read(_SIGNATURE_BYTES + 1), said, key)
            continue
        if name not in left:
            raise BundleUnusable(file, f"{SUMS} does not name {name}, or it is there twice", _AGAIN)
        if _sum(content) != left.pop(name):
            raise BundleUnusable(file, f"{name} is not what {SUMS} says", _AGAIN)
        count += 1
    if left:
        raise BundleUnusable(file, f"{min(left)} is missing", _AGAIN)
    if key is not None and not is_signed:
        remedy = "have its maker sign it: leafcast bundle make --sign KEY"
        raise BundleUnusable(file, "nobody signed it", remedy)
    return Verified(version, count, whole, is_signed)


def _check_form(
    file: Path, data: IO[bytes], version: str, entries: Sequence[tarfile.TarInfo]
) -> None:
    """Refuse what stands beside the files: tar passes over it, and other programs may not.

    The files of a bundle say each byte of it.
    """
    at = 0
    for entry in entries:
        name = entry.name.partition("/")[2]
        wanted = entry_of(version, name, entry.size).tobuf(FORMAT)
        if _read_at(data, at, entry.offset_data - at) != wanted:
            raise BundleUnusable(file, f"before {name} is something else", _AGAIN)
        end = entry.offset_data + entry.size
        at = _up_to(end, tarfile.BLOCKSIZE)
        if any(_read_at(data, end, at - end)):
            raise BundleUnusable(file, f"after {name} is something else", _AGAIN)
    size = _up_to(at + 2 * tarfile.BLOCKSIZE, tarfile.RECORDSIZE) - at
    if _read_at(data, at, size + 1) != bytes(size):
        raise BundleUnusable(file, "after its files is something else, or its end lacks", _AGAIN)


def _read_at(data: IO[bytes], at: int, size: int) -> bytes:
    data.seek(at)
    return data.read(min(size, _CHUNK))


def _up_to(size: int, of: int) -> int:
    return -(-size // of) * of


def _entries(file: Path, tar: tarfile.TarFile) -> Iterator[tuple[str, str, tarfile.TarInfo]]:
    """The version, the name and the entry of each file; raises BundleUnusable."""
    for entry in tar:
        found = _TOP.fullmatch(entry.name)
        if found is None or not entry.isreg() or entry.issparse():
            raise BundleUnusable(file, f"{entry.name!r:.80} is no file of a bundle", _AGAIN)
        yield found[1], found[2], entry


def _small(
    file: Path,
    tar: tarfile.TarFile,
    entries: Iterator[tuple[str, str, tarfile.TarInfo]],
    wanted: str,
) -> tuple[str, str, bytes]:
    version, name, entry = next(entries, ("", "", None))
    if entry is None or entry.size > SUMS_BYTES_MAX:
        raise BundleUnusable(file, f"it has no {wanted} at its beginning", _AGAIN)
    content = tar.extractfile(entry)
    assert content is not None, "a plain file"
    return version, name, content.read()


def _check_signature(file: Path, signature: bytes, said: bytes, key: PublicKey | None) -> None:
    if key is not None and not has_signed(key, signature, said):
        remedy = "do not install from it, or name the key of its maker"
        raise BundleUnusable(file, "another key than this one signed it", remedy)


def _sum(content: IO[bytes]) -> str:
    found = hashlib.sha256()
    while chunk := content.read(_CHUNK):
        found.update(chunk)
    return found.hexdigest()
