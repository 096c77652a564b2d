"""What is known beside the ledger: by it a loss is noticed, and what was read back is known."""

from __future__ import annotations

from collections.abc import Iterable

from schemas.identity import MailKey


class Notes:
    """The notes of one centre; who keeps them for longer does so in `keep`.

    `generation` is that of the newest record issued, 0 in a new tree; `recovered` are the keys of
    records that were read back, and of which no object or person has said anything yet. `reading`
    is true from when a loss was noticed until the ledger is read back, over any restart. `spaces`
    are the identities of all spaces that this run follows.
    """

    def __init__(
        self, generation: int = 0, recovered: Iterable[MailKey] = (), *, reading: bool = False
    ) -> None:
        self.generation = generation
        self.reading = reading
        self.recovered = set(recovered)
        self.spaces: set[str] = set()

    def issued(self, generation: int) -> None:
        """Note the newest record, once it is in the ledger."""
        if generation > self.generation:
            self.generation = generation
            self.keep()

    def read_back(self, *, ended: bool) -> None:
        """Note that the ledger is being read back, or that it is whole again."""
        if self.reading == ended:
            self.reading = not ended
            self.keep()

    def recover(self, keys: Iterable[MailKey]) -> None:
        """Note records that were read back."""
        self.recovered.update(keys)
        self.keep()

    def settle(self, keys: Iterable[MailKey]) -> None:
        """Forget records of which objects, or a person, say what they are."""
        settled = self.recovered.intersection(keys)
        if settled:
            self.recovered -= settled
            self.keep()

    def keep(self) -> None:
        """Keep what is noted now."""
