"""The digest of a mailbox: what is in force under a snapshot and came with content.

Parent and child each keep one, over the same snapshot; equal digests mean that nothing was lost.
"""

from __future__ import annotations

from collections.abc import Iterable

from relay.core.records.accepted import Version
from schemas.records.records import DIGEST_MODULUS
from schemas.values.identity import MailKey

DIGEST_BYTES = 16


class MailDigest:
    """A sum of terms, modulo 2^128.

    Counted is what has a generation at or below the snapshot's, and is not excluded.
    """

    def __init__(self) -> None:
        # The generation of the snapshot under which the digest is taken.
        self.snapshot = 0
        self._sum = self._sum_of_all = 0
        # What is above the snapshot.
        self._ahead: dict[MailKey, Version] = {}
        # What the snapshot does not list as it is held: orphaned, outdated.
        self._excluded: dict[MailKey, Version] = {}

    @property
    def total(self) -> int:
        """What `value` says, as a number."""
        return self._sum % DIGEST_MODULUS

    @property
    def value(self) -> bytes:
        """16 bytes."""
        return _as_bytes(self.total)

    @property
    def of_all(self) -> bytes:
        """The same of all that was added, whatever the snapshot."""
        return _as_bytes(self._sum_of_all % DIGEST_MODULUS)

    def add(self, key: MailKey, version: Version) -> None:
        """Take in a record that was not there."""
        self._sum_of_all += version.digest_term
        if version.generation > self.snapshot:
            self._ahead[key] = version
        else:
            self._sum += version.digest_term

    def remove(self, key: MailKey, version: Version) -> None:
        """Take out a record that was added."""
        self._sum_of_all -= version.digest_term
        if self._ahead.pop(key, None) is None and self._excluded.pop(key, None) is None:
            self._sum -= version.digest_term

    def advance(
        self,
        snapshot: int,
        excluded: Iterable[tuple[MailKey, Version]] = (),
        held: Iterable[tuple[MailKey, Version]] = (),
    ) -> None:
        """Take the digest under another snapshot; `excluded` is what is left out.

        Of a later reign it may have a lower generation: then it is made anew of all that was added,
        which is `held`.
        """
        if snapshot < self.snapshot:
            self._begin_anew(snapshot, held)
        self.snapshot = snapshot
        self._sum += sum(version.digest_term for version in self._excluded.values())
        self._excluded = {}
        ahead = self._ahead
        # A dict does not give back the room of what is deleted.
        self._ahead = {key: it for key, it in ahead.items() if it.generation > snapshot}
        self._sum += sum(it.digest_term for it in ahead.values() if it.generation <= snapshot)
        for key, version in excluded:
            if key not in self._ahead:
                self._excluded[key] = version
                self._sum -= version.digest_term
        self._sum %= DIGEST_MODULUS
        self._sum_of_all %= DIGEST_MODULUS

    def _begin_anew(self, snapshot: int, held: Iterable[tuple[MailKey, Version]]) -> None:
        self.snapshot, self._sum, self._sum_of_all = snapshot, 0, 0
        self._ahead, self._excluded = {}, {}
        for key, version in held:
            self.add(key, version)

    def assert_invariants(self, held: Iterable[tuple[MailKey, Version]]) -> None:
        """Assert the definition; `held` is all that was added."""
        held = tuple(held)
        terms = [
            version.digest_term
            for key, version in held
            if version.generation <= self.snapshot and key not in self._excluded
        ]
        assert self._sum % DIGEST_MODULUS == sum(terms) % DIGEST_MODULUS
        of_all = sum(version.digest_term for _, version in held)
        assert self.of_all == _as_bytes(of_all % DIGEST_MODULUS)


def _as_bytes(total: int) -> bytes:
    return total.to_bytes(DIGEST_BYTES, "big")
