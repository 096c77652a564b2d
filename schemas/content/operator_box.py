"""What is closed for an operator alone: with his public key, by a program that cannot open it.

Boxes are libsodium's sealed boxes. Their ephemeral keys follow from a secret of who closes them and
from what goes in, so that equal content gives equal bytes, and its name tells nothing to others.
"""

from __future__ import annotations

import hashlib

from nacl import pwhash
from nacl.exceptions import CryptoError
from nacl.public import Box, PrivateKey, PublicKey, SealedBox
from nacl.secret import SecretBox

from schemas.content.sealing import NotOpened

KEY_BYTES = 32
SALT_BYTES = pwhash.argon2id.SALTBYTES
NAME_BYTES, KEY_ID_BYTES = 20, 6


def public_half(private: bytes) -> bytes:
    """The X25519 public key of 32 private bytes."""
    return bytes(PrivateKey(private).public_key)


def key_id(public: bytes) -> str:
    """What people call a key: 12 hex digits."""
    return hashlib.blake2b(public, digest_size=KEY_ID_BYTES, person=b"lc operator").hexdigest()


def box_name(secret: bytes, public: bytes, plain: bytes) -> str:
    """What this content is called among boxes for this key: 40 hex digits.

    Without the secret nobody can tell whether some content is among them.
    """
    key = hashlib.blake2b(public, key=secret, digest_size=32, person=b"lc box names").digest()
    return hashlib.blake2b(
        plain, key=key, digest_size=NAME_BYTES, person=b"lc box name"
    ).hexdigest()


def close_box(secret: bytes, public: bytes, plain: bytes) -> bytes:
    """Close bytes for the holder of a private key; `secret` has 32 bytes."""
    said = hashlib.blake2b(plain, person=b"lc box").digest() + public
    entropy = hashlib.blake2b(said, key=secret, digest_size=KEY_BYTES, person=b"lc ephemeral")
    ephemeral = PrivateKey(entropy.digest())
    sender = bytes(ephemeral.public_key)
    nonce = hashlib.blake2b(sender + public, digest_size=Box.NONCE_SIZE).digest()
    return sender + Box(ephemeral, PublicKey(public)).encrypt(plain, nonce).ciphertext


def open_box(private: bytes, box: bytes) -> bytes:
    """What was closed; raises NotOpened."""
    try:
        return SealedBox(PrivateKey(private)).decrypt(box)
    except (CryptoError, ValueError, TypeError):
        raise NotOpened("it is closed for another key, or damaged") from None


def lock(passphrase: str, salt: bytes, private: bytes) -> bytes:
    """A private key under a passphrase; `salt` has 16 bytes, new for each."""
    # The key is used for this one box only, so one nonce does.
    nonce = bytes(SecretBox.NONCE_SIZE)
    return SecretBox(_stretched(passphrase, salt)).encrypt(private, nonce).ciphertext


def unlock(passphrase: str, salt: bytes, locked: bytes) -> bytes:
    """The private key; raises NotOpened."""
    try:
        box = SecretBox(_stretched(passphrase, salt))
        return box.decrypt(locked, bytes(SecretBox.NONCE_SIZE))
    except (CryptoError, ValueError, TypeError):
        raise NotOpened("the passphrase is wrong, or the file is damaged") from None


def _stretched(passphrase: str, salt: bytes) -> bytes:
    """A key that takes 64 MiB and a tenth of a second to try."""
    return pwhash.argon2id.kdf(
        KEY_BYTES,
        passphrase.encode(),
        salt,
        pwhash.argon2id.OPSLIMIT_INTERACTIVE,
        pwhash.argon2id.MEMLIMIT_INTERACTIVE,
    )
