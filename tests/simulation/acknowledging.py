"""What is acknowledged is kept: the own store has it before the parent may forget it."""

from __future__ import annotations

from relay.core import effects as fx
from schemas.identity import MailKey, NodePath
from schemas.records import Record
from tests.simulation.centre import Centre
from tests.simulation.host import Host
from tests.simulation.laws import ACKNOWLEDGED
from tests.simulation.world import LawBroken, World


class Acknowledging:
    """Watches what nodes say to have dealt with; `highest` is what the oracle saw them store."""

    def __init__(
        self, world: World, centre: Centre, highest: dict[tuple[NodePath, str], int]
    ) -> None:
        self.world, self.centre, self._highest = world, centre, highest
        self._refused: dict[tuple[NodePath, str], tuple[str, int]] = {}

    def effect(self, host: Host, effect: object) -> None:
        match effect:
            case fx.AckMail():
                self._acknowledged(host, effect.sequence)
            case fx.ResetMail():
                self._reads_again(host, effect.sequence)

    def _reads_again(self, host: Host, sequence: int) -> None:
        """All from this sequence on is judged anew, whatever was refused of it."""
        for at, (_, refused) in list(self._refused.items()):
            if at[0] == host.path and refused >= sequence:
                del self._refused[at]

    def _acknowledged(self, host: Host, sequence: int) -> None:
        """What is in force and was read is kept by now."""
        parent = self.world.hosts.get(host.path.parent)
        if parent is None or not host.linked or host.node is None or self.world.lied:
            return
        if host.node._state.inbox.incarnation != parent.incarnation:
            return
        for (_, key), kept in parent.streams.mail.after(0, host.path.name):
            mail, record = kept.mail, self.centre.records.get(MailKey(key))
            if kept.sequence > sequence or mail is None or record is None or not mail.has_body:
                continue
            if record.deleted or mail.generation != record.generation:
                continue
            stored = self._highest.get((host.path, key), 0) if key in host.streams.own else 0
            message = (parent.incarnation, kept.sequence)
            if stored < mail.generation and not self._refuses(host, record, message):
                what = f"{host.path} acknowledges {sequence}, but does not keep {key}"
                raise LawBroken(ACKNOWLEDGED, what)

    def _refuses(self, host: Host, record: Record, message: tuple[str, int]) -> bool:
        """Whether by the index that it had it was to be refused, and was not read again since.

        A centre that lost that index may list it again in a newer one. Nothing is lost by then: it
        stays in the mailbox, of which the digest is another than the node's, so it is read again.
        """
        at = host.path, str(record.source.key)
        if any(self.centre.is_superseded(record, index) for index in host.indexes_read):
            self._refused[at] = message
        return self._refused.get(at) == message
