"""AES-SIV is that of RFC 5297 by either OpenSSL; Python's own is taken where it is right."""

import _hashlib
import ctypes
import math
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.cmac import CMAC
from hypothesis import given
from hypothesis import strategies as st

from schemas.content import aes_siv
from schemas.content.aes_siv import (
    KEY_BYTES,
    Library,
    NotAuthentic,
    OpenSslSiv,
    PackagedSiv,
    python_openssl,
    siv,
)

LIBRARY = python_openssl()
needs_openssl = pytest.mark.skipif(LIBRARY is None, reason="this Python's OpenSSL has no AES-SIV")
KEY = bytes(range(KEY_BYTES))
BLOCK_MASK = 2**128 - 1
keys = st.binary(min_size=KEY_BYTES, max_size=KEY_BYTES)
plains = st.binary(min_size=1, max_size=100)
lists = st.lists(st.binary(max_size=40), max_size=6)


def mac(key, text):
    made = CMAC(algorithms.AES(key))
    made.update(text)
    return int.from_bytes(made.finalize())


def doubled(block):
    return (block << 1 & BLOCK_MASK) ^ (0x87 if block >> 127 else 0)


def by_the_rfc(key, plain, associated):
    """Section 2.4 and 2.6 of RFC 5297, word by word."""
    half = len(key) // 2
    folded = mac(key[:half], bytes(16))
    for each in associated:
        folded = doubled(folded) ^ mac(key[:half], each)
    if len(plain) >= 16:
        whole = int.from_bytes(plain) ^ folded
        tag = mac(key[:half], whole.to_bytes(len(plain)))
    else:
        padded = int.from_bytes((plain + b"\x80").ljust(16, b"\0"))
        tag = mac(key[:half], (doubled(folded) ^ padded).to_bytes(16))
    counter = tag & ~(1 << 63 | 1 << 31)
    stream = Cipher(algorithms.AES(key[half:]), modes.CTR(counter.to_bytes(16))).encryptor()
    return tag.to_bytes(16) + stream.update(plain)


def ways(key, associated):
    yield PackagedSiv(key, associated)
    if LIBRARY is not None:
        yield OpenSslSiv(LIBRARY, key, associated)


@pytest.mark.parametrize(
    ("key", "associated", "plain", "expected"),
    [
        (
            "fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
            ["101112131415161718191a1b1c1d1e1f2021222324252627"],
            "112233445566778899aabbccddee",
            "85632d07c6e8f37f950acd320a2ecc9340c02b9690c4dc04daef7f6afe5c",
        ),
        (
            "7f7e7d7c7b7a79787776757473727170404142434445464748494a4b4c4d4e4f",
            [
                "00112233445566778899aabbccddeeffdeaddadadeaddadaffeeddccbbaa99887766554433221100",
                "102030405060708090a0",
                "09f911029d74e35bd84156c5635688c0",
            ],
            b"this is some plaintext to encrypt using SIV-AES".hex(),
            (
                "7bdb6e3b432667eb06f4d14bff2fbd0fcb900f2fddbe404326601965c889bf17"
                "dba77ceb094fa663b7a3f748ba8af829ea64ad544a272e9c485b62a3fd5c0d"
            ),
        ),
    ],
    ids=["A.1", "A.2"],
)
def test_what_ours_are_compared_with_gives_the_examples_of_the_rfc(
    key, associated, plain, expected
):
    lists = [bytes.fromhex(each) for each in associated]
    assert by_the_rfc(bytes.fromhex(key), bytes.fromhex(plain), lists).hex() == expected


@given(keys, lists, plains)
def test_either_way_closes_as_the_rfc_says_and_opens_what_it_closed(key, associated, plain):
    sealed = by_the_rfc(key, plain, associated)
    for way in ways(key, associated):
        assert way.encrypt(plain) == sealed
        assert way.decrypt(sealed) == plain
        assert way.encrypt(plain) == sealed, "a second time"


@given(keys, lists, lists, plains)
def test_what_is_associated_may_be_told_with_each_use(key, associated, more, plain):
    sealed = by_the_rfc(key, plain, [*associated, *more])
    for way in ways(key, associated):
        assert way.encrypt(plain, *more) == sealed
        assert way.decrypt(sealed, *more) == plain
        with pytest.raises(NotAuthentic):
            way.decrypt(sealed, *more, b"")


@given(keys, lists, plains, st.data())
def test_either_way_opens_nothing_that_was_altered(key, associated, plain, data):
    sealed = by_the_rfc(key, plain, associated)
    at = data.draw(st.integers(0, 8 * len(sealed) - 1))
    altered = bytearray(sealed)
    altered[at // 8] ^= 1 << at % 8
    cut = sealed[: data.draw(st.integers(0, len(sealed) - 1))]
    for way in ways(key, associated):
        for other in (bytes(altered), cut, sealed + b"\0", b""):
            with pytest.raises(NotAuthentic):
                way.decrypt(other)
        assert way.decrypt(sealed) == plain


@given(keys, lists, plains, keys, lists)
def test_either_way_opens_nothing_under_another_key_or_with_other_associated_data(
    key, associated, plain, other_key, others
):
    sealed = by_the_rfc(key, plain, associated)
    for wrong_key, wrong in ((other_key, associated), (key, others), (key, [*associated, b""])):
        if (wrong_key, wrong) == (key, associated):
            continue
        for way in ways(wrong_key, wrong):
            with pytest.raises(NotAuthentic):
                way.decrypt(sealed)


@pytest.mark.parametrize("size", [15, 16, 17, 4096, 100_003, 2**20 + 1])
def test_either_way_takes_whatever_size(size):
    plain = bytes(at % 251 for at in range(size))
    made = {way.encrypt(plain) for way in ways(KEY, [b"a", b""])}
    assert made == {by_the_rfc(KEY, plain, [b"a", b""])}
    assert all(way.decrypt(next(iter(made))) == plain for way in ways(KEY, [b"a", b""]))


@needs_openssl
def test_what_is_refused_leaves_no_error_for_who_uses_openssl_next():
    peek = ctypes.PyDLL(_hashlib.__file__).ERR_peek_error
    cipher = siv(KEY, [])
    for wrong in (bytes(17), bytes(5000)):
        with pytest.raises(NotAuthentic):
            cipher.decrypt(wrong)
        assert peek() == 0


@needs_openssl
def test_contexts_are_freed_also_of_what_is_refused():
    asked = """
import sys
from pathlib import Path
from schemas.content.aes_siv import NotAuthentic, siv

def use(cipher, times):
    for _ in range(times):
        assert cipher.decrypt(cipher.encrypt(b"plain")) == b"plain"
        try:
            cipher.decrypt(bytes(40))
        except NotAuthentic:
            continue
        raise AssertionError

def kilobytes():
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])

use(siv(bytes(64), [b""]), 300)
before = kilobytes()
use(siv(bytes(64), [b""]), 3000)
for at in range(3000):
    use(siv(at.to_bytes(64), [b""]), 1)
print(kilobytes() - before)
"""
    if not Path("/proc/self/status").exists():
        pytest.skip("the system does not say how much memory a process has")
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert int(done.stdout) < 1000, "6,000 contexts would be 12 MB"


@needs_openssl
def test_the_openssl_of_python_is_taken_and_cryptography_is_not_loaded():
    asked = (
        "import sys; from schemas.content.aes_siv import siv; "
        "siv(bytes(64), []).encrypt(b'plain'); print('cryptography' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.fixture
def _undecided():
    python_openssl.cache_clear()
    yield
    python_openssl.cache_clear()


def is_packaged():
    made = siv(KEY, [b"a"])
    return isinstance(made, PackagedSiv) and made.decrypt(made.encrypt(b"plain")) == b"plain"


@pytest.mark.usefixtures("_undecided")
def test_cryptography_is_taken_where_python_has_openssl_built_in(monkeypatch):
    monkeypatch.delattr(_hashlib, "__file__")
    assert is_packaged()


@pytest.mark.usefixtures("_undecided")
@pytest.mark.parametrize("path", ["/nothing/_hashlib.so", getattr(math, "__file__", "/no.so")])
def test_cryptography_is_taken_where_libcrypto_is_not_found(monkeypatch, path):
    monkeypatch.setattr(_hashlib, "__file__", path)
    assert is_packaged()


@needs_openssl
@pytest.mark.usefixtures("_undecided")
def test_cryptography_is_taken_where_openssl_passes_over_empty_associated_data(monkeypatch):
    class Careless(Library):
        def __init__(self, path):
            super().__init__(path)
            update = self.update
            self.update = lambda *said: 1 if not said[-1] else update(*said)

    careless = Careless(_hashlib.__file__)
    full, empty = (OpenSslSiv(careless, KEY, it).encrypt(b"plain") for it in ([], [b""]))
    assert full == empty, "as OpenSSL 3.0.9 did"
    monkeypatch.setattr(aes_siv, "Library", Careless)
    assert is_packaged()
