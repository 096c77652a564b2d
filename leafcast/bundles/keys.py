"""Keys that sign bundles: Ed25519, in files as `openssl genpkey -algorithm ed25519` writes them."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from leafcast.bundles.sums import BundleUnusable

PrivateKey: TypeAlias = Ed25519PrivateKey
PublicKey: TypeAlias = Ed25519PublicKey

KEY_BYTES_MAX = 10_000
_MAKE = "make one: openssl genpkey -algorithm ed25519 -out FILE"
_PUBLISH = "take its public half: openssl pkey -in KEY -pubout -out FILE"


def signing_key(file: Path) -> PrivateKey:
    """The private key in a file; raises BundleUnusable."""
    try:
        key = load_pem_private_key(_pem(file), None)
    except (ValueError, TypeError, UnsupportedAlgorithm, OSError) as error:
        raise BundleUnusable(f"key {file}", str(error), _MAKE) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise BundleUnusable(f"key {file}", "it is no Ed25519 key", _MAKE)
    return key


def public_key(file: Path) -> PublicKey:
    """The public key in a file; raises BundleUnusable."""
    try:
        key = load_pem_public_key(_pem(file))
    except (ValueError, TypeError, UnsupportedAlgorithm, OSError) as error:
        raise BundleUnusable(f"key {file}", str(error), _PUBLISH) from error
    if not isinstance(key, Ed25519PublicKey):
        raise BundleUnusable(f"key {file}", "it is no public Ed25519 key", _PUBLISH)
    return key


def has_signed(key: PublicKey, signature: bytes, said: bytes) -> bool:
    """Whether the holder of this key signed what is said."""
    try:
        key.verify(signature, said)
    except InvalidSignature:
        return False
    return True


def _pem(file: Path) -> bytes:
    with file.open("rb") as data:
        return data.read(KEY_BYTES_MAX)
