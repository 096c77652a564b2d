"""Up to where each child's words in STAT were read, whoever read them: so none is lost."""

from __future__ import annotations

from collections.abc import Iterable


class ReadPlaces:
    """The first sequence that is not read yet: of those named, and of all others."""

    def __init__(self) -> None:
        self._others = 1
        self._of: dict[str, int] = {}

    def of(self, child: str) -> int:
        return self._of.get(child, self._others)

    def first(self, children: Iterable[str] | None = None) -> int:
        """From where who reads these, or everything, has to begin."""
        if children is None:
            return min([self._others, *self._of.values()])
        return min(map(self.of, children), default=self._others)

    def goes_on(self, child: str, at: int) -> None:
        """A child is read by somebody else from here on."""
        self._of[child] = at

    def read(self, until: int, children: Iterable[str] | None = None) -> None:
        """What these children, or all, said before that sequence is read."""
        if children is not None:
            self._of |= {child: max(self.of(child), until) for child in children}
            return
        others = self._others = max(self._others, until)
        reached = ((child, max(at, until)) for child, at in self._of.items())
        self._of = {child: at for child, at in reached if at != others}
