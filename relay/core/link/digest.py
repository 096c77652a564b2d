"""The digest of a mailbox: what is in force under a snapshot and came with content.

Parent and child each keep one, over the same snapshot; equal digests mean that nothing was lost.
"""

from __future__ import annotations

from collections.abc import Iterable

from schemas.identity import MailKey
from schemas.records import DIGEST_MODULUS

DIGEST_BYTES = 16


class MailDigest:
    """A sum of terms, modulo 2^128.

    Counted is what has a generation at or below the snapshot's, and is not excluded.
    """

    def __init__(self) -> None:
        # The generation of the snapshot under which the digest is taken.
        self.snapshot = 0
        self._sum = 0
        # Generation and term of what is above the snapshot.
        self._ahead: dict[MailKey, tuple[int, int]] = {}
        # Terms of what the snapshot does not list as it is held: orphaned, outdated.
        self._excluded: dict[MailKey, int] = {}

    @property
    def value(self) -> bytes:
        """16 bytes."""
        return (self._sum % DIGEST_MODULUS).to_bytes(DIGEST_BYTES, "big")

    def add(self, key: MailKey, generation: int, term: int) -> None:
        """Take in a record that was not there."""
        if generation > self.snapshot:
            self._ahead[key] = (generation, term)
        else:
            self._sum += term

    def remove(self, key: MailKey, term: int) -> None:
        """Take out a record that was added with this term."""
        if self._ahead.pop(key, None) is None and self._excluded.pop(key, None) is None:
            self._sum -= term

    def advance(self, snapshot: int, excluded: Iterable[tuple[MailKey, int]] = ()) -> None:
        """Take the digest under another snapshot; `excluded` are key and term of each left out."""
        self.snapshot = snapshot
        self._sum += sum(self._excluded.values())
        self._excluded = {}
        covered = [term for generation, term in self._ahead.values() if generation <= snapshot]
        self._sum += sum(covered)
        # A dict does not give back the room of what is deleted.
        self._ahead = {key: held for key, held in self._ahead.items() if held[0] > snapshot}
        for key, term in excluded:
            if key not in self._ahead:
                self._excluded[key] = term
                self._sum -= term
        self._sum %= DIGEST_MODULUS

    def check(self, held: Iterable[tuple[MailKey, int, int]]) -> None:
        """Assert the definition; `held` is key, generation and term of all that was added."""
        terms = [
            term
            for key, generation, term in held
            if generation <= self.snapshot and key not in self._excluded
        ]
        assert self._sum % DIGEST_MODULUS == sum(terms) % DIGEST_MODULUS
