"""AES-SIV (RFC 5297) under keys of 64 bytes, by the OpenSSL that Python itself has loaded.

`cryptography` brings an OpenSSL of its own, 7 MB in memory, of which an edge would use this alone.
It does the same where Python's own cannot, or does it wrong: that is tried once, at the first key.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import c_char_p, c_int, c_ssize_t, c_void_p, py_object
from functools import cached_property, lru_cache
from typing import Any, Protocol

KEY_BYTES, TAG_BYTES = 64, 16
INPUT_BYTES_MAX = 2**31 - 1 - TAG_BYTES
"""OpenSSL is told lengths as a signed int."""
_CLOSING, _OPENING = 1, 0
_GET_TAG, _SET_TAG = 0x10, 0x11
_KNOWN = b"leafcast"
_KNOWN_SEALED = bytes.fromhex("fd7db9a1a7da72f943db3924043fc02633a9673aa6a027b5")


class NotAuthentic(Exception):
    """The bytes are of another key, or of other associated data, or were altered."""


class Siv(Protocol):
    """One key and what is associated: a list, in which an empty entry counts.

    `more` of it may be told with each use, at its end.
    """

    def encrypt(self, plain: bytes, *more: bytes) -> bytes:
        """The tag, and as many bytes as come in: one at least."""
        ...

    def decrypt(self, sealed: bytes, *more: bytes) -> bytes:
        """The plain bytes; raises NotAuthentic."""
        ...


def siv(key: bytes, associated: Sequence[bytes]) -> Siv:
    """The cipher of a key and of what is associated, by whichever OpenSSL is right."""
    library = python_openssl()
    if library is None:
        return PackagedSiv(key, associated)
    return OpenSslSiv(library, key, associated)


@lru_cache(maxsize=1)
def python_openssl() -> Library | None:
    """The OpenSSL of Python, if it has AES-SIV and does it right.

    It is not to be had if Python has it built in, or none, or one that is older than 3 or allows
    FIPS only. It does it wrong up to 3.0.9: empty associated data are passed over (CVE-2023-2975).
    """
    try:
        import _hashlib  # noqa: PLC0415

        library = Library(_hashlib.__file__)
        return library if _is_right(library) else None
    except (ImportError, AttributeError, OSError, OpenSslFailed):
        return None


def _is_right(library: Library) -> bool:
    """Whether it closes and opens what is known, and does not open what is associated otherwise."""
    cipher, other = (
        OpenSslSiv(library, bytes(range(KEY_BYTES)), it) for it in ((b"known", b""), (b"known",))
    )
    if cipher.encrypt(_KNOWN) != _KNOWN_SEALED or cipher.decrypt(_KNOWN_SEALED) != _KNOWN:
        return False
    try:
        other.decrypt(_KNOWN_SEALED)
    except NotAuthentic:
        return True
    return False


class OpenSslFailed(Exception):
    """OpenSSL refused what it never refuses while there is memory."""


class Library:
    """What is called of libcrypto, found through a module of Python that is linked with it.

    Its functions are short, and are called with the interpreter's lock held. The queue of errors
    that they write to is Python's own, too: who is refused leaves it empty.
    """

    def __init__(self, path: str) -> None:
        """Raises OSError or AttributeError if something is not to be had."""
        found = ctypes.PyDLL(path)
        self.cipher: int | None = None

        def function(name: str, result: Any, *arguments: Any) -> Any:
            made = getattr(found, name)
            made.restype, made.argtypes = result, arguments
            return made

        context, cipher, data, engine = c_void_p, c_void_p, c_void_p, c_void_p
        count = ctypes.POINTER(c_int)
        self.new = function("EVP_CIPHER_CTX_new", context)
        self.free = function("EVP_CIPHER_CTX_free", None, context)
        self.copy = function("EVP_CIPHER_CTX_copy", c_int, context, context)
        self.begin = function(
            "EVP_CipherInit_ex", c_int, context, cipher, engine, c_char_p, c_char_p, c_int
        )
        self.update = function("EVP_CipherUpdate", c_int, context, data, count, data, c_int)
        self.finish = function("EVP_CipherFinal_ex", c_int, context, data, count)
        self.control = function("EVP_CIPHER_CTX_ctrl", c_int, context, c_int, c_int, data)
        self.forget_errors = function("ERR_clear_error", None)
        fetch = function("EVP_CIPHER_fetch", cipher, c_void_p, c_char_p, c_char_p)
        self.cipher = fetch(None, b"AES-256-SIV", None)
        if not self.cipher:
            self.forget_errors()
            raise AttributeError("this OpenSSL has no AES-SIV")


_room = ctypes.PYFUNCTYPE(py_object, c_void_p, c_ssize_t)(
    ("PyBytes_FromStringAndSize", ctypes.pythonapi)
)
"""Bytes of a length that nobody has yet, with NULL for what they are: to be written to once."""
_address = ctypes.PYFUNCTYPE(c_void_p, py_object)(("PyBytes_AsString", ctypes.pythonapi))


class _Context:
    """A context of OpenSSL; its key is wiped with it."""

    def __init__(self, library: Library, like: _Context | None = None) -> None:
        self._free = library.free
        self.at = library.new()
        if not self.at or (like is not None and not library.copy(self.at, like.at)):
            library.forget_errors()
            raise OpenSslFailed("it made no context")

    def __del__(self) -> None:
        self._free(self.at)


class OpenSslSiv:
    """A key and what is associated, in contexts of OpenSSL: each use takes a copy."""

    def __init__(self, library: Library, key: bytes, associated: Sequence[bytes]) -> None:
        assert len(key) == KEY_BYTES
        self._library, self._key, self._associated = library, key, associated

    def encrypt(self, plain: bytes, *more: bytes) -> bytes:
        assert 0 < len(plain) <= INPUT_BYTES_MAX
        context = self._told(_Context(self._library, self._closing), more)
        sealed: bytes = _room(None, TAG_BYTES + len(plain))
        at = _address(sealed)
        done = self._run(context, at + TAG_BYTES, _address(plain), len(plain))
        if not done or not self._library.control(context.at, _GET_TAG, TAG_BYTES, at):
            self._library.forget_errors()
            raise OpenSslFailed("it closed nothing")
        return sealed

    def decrypt(self, sealed: bytes, *more: bytes) -> bytes:
        length = len(sealed) - TAG_BYTES
        if not 0 < length <= INPUT_BYTES_MAX:
            raise NotAuthentic
        context = self._told(_Context(self._library, self._opening), more)
        plain: bytes = _room(None, length)
        at = _address(sealed)
        done = self._library.control(context.at, _SET_TAG, TAG_BYTES, at)
        if not done or not self._run(context, _address(plain), at + TAG_BYTES, length):
            self._library.forget_errors()
            raise NotAuthentic
        return plain

    @cached_property
    def _closing(self) -> _Context:
        return self._begun(_CLOSING)

    @cached_property
    def _opening(self) -> _Context:
        return self._begun(_OPENING)

    def _begun(self, way: int) -> _Context:
        library, context = self._library, _Context(self._library)
        if not library.begin(context.at, library.cipher, None, self._key, None, way):
            library.forget_errors()
            raise OpenSslFailed("it took no key")
        return self._told(context, self._associated)

    def _told(self, context: _Context, associated: Sequence[bytes]) -> _Context:
        """The context, once it knows that these are associated, too."""
        library, count = self._library, c_int()
        for each in associated:
            assert len(each) <= INPUT_BYTES_MAX
            if not library.update(context.at, None, count, _address(each), len(each)):
                library.forget_errors()
                raise OpenSslFailed("it took nothing that is associated")
        return context

    def _run(self, context: _Context, out: int, text: int, length: int) -> bool:
        """Whether OpenSSL said yes: then it has written as many bytes as there are in."""
        library, count = self._library, c_int()
        if not library.update(context.at, out, count, text, length) or count.value != length:
            return False
        # Here it writes nothing more: it says once more whether the tag is right.
        return bool(library.finish(context.at, out, count)) and count.value == 0


class PackagedSiv:
    """The cipher of `cryptography`, which costs its memory only who comes here."""

    def __init__(self, key: bytes, associated: Sequence[bytes]) -> None:
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415
        from cryptography.hazmat.primitives.ciphers.aead import AESSIV  # noqa: PLC0415

        self._cipher, self._refused, self._associated = AESSIV(key), InvalidTag, associated

    def encrypt(self, plain: bytes, *more: bytes) -> bytes:
        return self._cipher.encrypt(plain, [*self._associated, *more])

    def decrypt(self, sealed: bytes, *more: bytes) -> bytes:
        try:
            return self._cipher.decrypt(sealed, [*self._associated, *more])
        except self._refused:
            raise NotAuthentic from None
