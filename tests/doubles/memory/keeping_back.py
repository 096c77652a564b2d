"""The bus of a relay that was broken into: it says that it wrote mail, and wrote otherwise."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from relay.core.effects import WriteMail
from relay.core.events import MailWritten
from relay.core.records.accepted import read_record
from schemas.records.signing import decode_envelope
from schemas.reports.link import Welcome
from schemas.values.identity import SNAPSHOT_KEY, MailKey, NodePath
from schemas.values.wire import decode, encode, replace
from tests.doubles.memory.bus import MemoryBus, MemoryNetwork


class KeepingBack(MemoryBus):
    """Lies to one child about these slots: keeps back all, keeps back the content, or alters it."""

    def __init__(self, network: MemoryNetwork, path: NodePath) -> None:
        super().__init__(network, path)
        self.lied_to = ""
        self.all_of: Collection[MailKey] = ()
        self.content_of: Collection[MailKey] = ()
        self.altered: Collection[MailKey] = ()
        # The last snapshot that it shows; None: it shows each.
        self.last_shown: bytes | None = None

    def show_no_newer(self) -> None:
        """Keep from the child each snapshot after that which lies in its mailbox."""
        kept = self._streams.mail.get((self.lied_to, SNAPSHOT_KEY))
        assert kept is not None
        self.all_of, self.last_shown = {SNAPSHOT_KEY}, kept.data

    def show_all(self) -> None:
        """Keep nothing back from now on."""
        self.all_of = self.content_of = self.altered = ()
        self.last_shown = None

    async def send_welcome(self, child: str, data: bytes) -> None:
        if child == self.lied_to and self.last_shown is not None:
            data = encode(replace(decode(Welcome, data), snapshot=self.last_shown))
        await super().send_welcome(child, data)

    def _write_letter(self, letter: WriteMail) -> MailWritten:
        if letter.child != self.lied_to:
            return super()._write_letter(letter)
        if letter.key in self.all_of:
            before = self._streams.mail.get((letter.child, str(letter.key)))
            sequence = before.sequence if before else 0
            return MailWritten(letter.child, letter.key, letter.generation, sequence)
        if letter.key in self.content_of and letter.has_body:
            _, record = read_record(letter.data)
            letter = replace(letter, data=record.head_data(), has_body=False, carried=())
        if letter.key in self.altered:
            envelope = decode_envelope(letter.data)
            signature = bytes(byte ^ 1 for byte in envelope.signature)
            letter = replace(
                letter, data=dataclasses.replace(envelope, signature=signature).encode()
            )
        return super()._write_letter(letter)
