"""Where a planted fault stands: round what a node hears, says and is asked, never inside of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from relay.core.destination.customized_forms import Customize
from relay.core.effects import Effect
from relay.core.events import Event
from schemas.objects.objects import ObjectKey
from schemas.values.identity import ContentHash, MailKey

if TYPE_CHECKING:
    from tests.simulation.host import Host


class Ports:
    """An honest node behind honest ports; a planted fault overrides what it does otherwise.

    One instance serves all hosts of a world, so what it remembers it keeps by host.
    """

    def heard(self, _host: Host, event: Event) -> list[Event]:
        """What the node is told where this happened."""
        return [event]

    def said(self, _host: Host, effect: Effect) -> list[Effect]:
        """What becomes of an effect."""
        return [effect]

    def wanted(self, _host: Host, honest: Mapping[ObjectKey, Any]) -> Mapping[ObjectKey, Any]:
        """What the syncer is told to make so."""
        return honest

    def may_prune(self, _host: Host, _key: ObjectKey, *, honest: bool) -> bool:
        """Whether the syncer is told that an object may go."""
        return honest

    def pauses(self, _host: Host, *, honest: bool) -> bool:
        """Whether the syncer is told that a person works there."""
        return honest

    def customize(self, _host: Host, honest: Customize) -> Customize:
        """How the node is told what objects become."""
        return honest

    def count(self, _host: Host, _key: MailKey, honest: Any) -> Any:
        """What the centre's controllers are told of a placement."""
        return honest

    def ordered(self, _host: Host, effects: list[Effect]) -> list[Effect]:
        """In which order a batch is carried out."""
        return effects

    def holds(self) -> bool:
        """Whether the issuer is told that an apply is under way."""
        return True

    def issued(self, draft: Any) -> Any:
        """Which draft the centre signs in place of one."""
        return draft

    def history(self, honest: Sequence[Any]) -> Sequence[Any]:
        """Which former contents of a placement the centre keeps."""
        return honest

    def announces_first(self) -> bool:
        """Whether profiles bring a new fleet key before deltas need it."""
        return True

    def keys(self, record: Any) -> Any:
        """Which keys the centre grants in place of those that a change names."""
        return record

    def snapshot(self, record: Any, _keep: Callable[[Mapping[ContentHash, bytes]], None]) -> Any:
        """What the centre signs in place of the record of a snapshot."""
        return record


HONEST = Ports()
