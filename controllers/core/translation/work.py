"""What a placement needs next, and why that waits where its space may show an older state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from controllers.core.ledger.ledger import Draft
from controllers.core.ledger.removal import OUTDATED, OUTDATED_REMEDY, named
from controllers.core.rollout.rejection import Rejection, Wanted
from controllers.core.translation.stranded import news_among
from controllers.core.translation.translate import IssuedDelta, Translation
from schemas.values.identity import ContentHash, MailKey


@dataclass(frozen=True, slots=True)
class Work:
    """One placement's next delta, once it is in the ledger; none if it is to be deleted."""

    name: str
    key: MailKey
    translation: Translation | None
    # What was rejected before, and what the ledger remembers of that.
    over: Rejection | None = None
    remembered: Rejection | None = None

    @property
    def wanted(self) -> Wanted | None:
        """What is to go out of what the space wants; None if it is to be deleted."""
        said = self.translation
        if said is None or said.root is None:
            return None
        if said.wish is None:
            return Wanted(said.root, over=self.over)
        return Wanted(said.root, said.wish.root, said.wish.rejected, self.over)

    @property
    def draft(self) -> Draft | None:
        return self.translation.draft if self.translation is not None else None

    @property
    def unsent(self) -> Mapping[ContentHash, bytes]:
        """What is to be kept though no draft brings it."""
        return self.translation.unsent if self.translation is not None else {}


def outdated_text(work: Work, before: IssuedDelta | None) -> str:
    """Why this waits, of a space that fell back, and what to do: names what is new."""
    said = work.translation
    if said is None:
        news = "the placement would go"
    else:
        news = named(news_among(before, said.entries)) or "the placement itself"
    return f"{OUTDATED}: {news}; {OUTDATED_REMEDY.format(name=work.name)}"
