"""Which versions of the wire a program speaks."""

from __future__ import annotations

from typing import NamedTuple


class Wires(NamedTuple):
    """The lowest and the highest one.

    It reads all of them. As a child it says the highest; as the centre it issues the lowest, and a
    higher one only once all nodes read that.
    """

    lowest: int
    highest: int

    def reads(self, wire: int) -> bool:
        return self.lowest <= wire <= self.highest

    def __str__(self) -> str:
        if self.lowest == self.highest:
            return f"wire {self.lowest}"
        return f"wire {self.lowest} to {self.highest}"
