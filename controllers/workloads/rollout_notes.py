"""What the centre's ledger notes of rollouts beside the records, kept true over restarts."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from controllers.core.rollout.rejection import Rejection
from controllers.core.translation.placements import Placements
from controllers.core.translation.work import Work
from relay.shell.publisher import CentrePublisher
from schemas.records.records import FormerRollout
from schemas.values.identity import MailKey


class RolloutNotes:
    """Of the placements of one workload description space; each raises BusBroken."""

    def __init__(self, relay: CentrePublisher, placements: Placements) -> None:
        self._relay = relay
        self._placements = placements
        # What the ledger says of former Rollouts.
        self._noted: dict[MailKey, FormerRollout] = {}

    def restore(self, name_of: Callable[[MailKey], str | None]) -> None:
        """Have the placements begin with what the ledger notes of them."""
        rejections, former = self._placements.rejections, self._placements.workloads.rollouts.former
        for key, pair in self._relay.rejections().items():
            if (name := name_of(key)) is not None:
                rejections.known[name] = Rejection(*pair)
        self._noted = dict(self._relay.former_rollouts())
        for key, known in self._noted.items():
            if (name := name_of(key)) is not None:
                former.restore(name, known)

    async def keep(self, work: Work) -> None:
        """Keep what a rollout lets nobody have yet: when it does, the objects may be others."""
        assert work.translation is not None
        assert work.translation.root is not None
        known = self._relay.kept_history().get(work.key, ())
        named = [work.translation.root]
        if work.translation.wish is not None:
            named.append(work.translation.wish.root)
        roots = dict.fromkeys([*known, *named])
        before = self._placements.rejections.known.get(work.name) or ()
        await self._relay.keep_history(work.key, tuple(roots), work.unsent, before)

    async def remember(self, work: Work) -> None:
        """Keep what is rejected of a placement that nothing steers: its Rollout does so else."""
        if self._placements.workloads.rollouts.of(work.name) is not None:
            return
        after = work.wanted.rejection if work.wanted is not None else None
        if after != work.remembered:
            await self._relay.keep_history(work.key, after or (), rejected=after or ())

    async def settle(self, names: Iterable[str]) -> None:
        """Keep what became of the Rollouts that these had."""
        for name in sorted(names):
            key = self._placements.source(name).key
            known = self._placements.settle_former_rollout(name)
            if known != self._noted.get(key, FormerRollout()):
                await self._relay.keep_former_rollout(key, known)
                self._noted[key] = known
