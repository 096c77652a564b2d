"""One child's mailbox, and a stream that takes what is written to it when a test says so."""

from relay.core.effects import ClearMail, WriteMail
from relay.core.events import MailSlot
from relay.core.mailbox import Mailbox
from relay.core.mailboxes import Mailboxes
from relay.core.records.accepted import Held
from relay.core.turns import Send, Supply
from schemas.identity import short_key
from schemas.records import API_PLACEMENT, DeltaBody, DeltaHead, Gate, Source, digest_term

KEYS = [short_key(bytes([at]) * 20) for at in range(4)]


def held(key, generation, *, content=True, deleted=False, last_loss=0, kind="delta"):
    source = Source(API_PLACEMENT, "s", "", key)
    head = DeltaHead(source, generation, deleted, "", (), b"h" * 32, (), last_loss)
    hashed = generation.to_bytes(32, "big")
    body = DeltaBody((Gate(None),)) if content and kind == "delta" and not deleted else None
    term = digest_term(key, generation.to_bytes(8, "big") + hashed)
    return Bytes(key, kind, head, b"data", hashed, term, body, generation)


class Bytes(Held):
    """A record whose bytes do not matter here."""

    def bare_data(self):
        return b"bare"


class Bench:
    """The mailbox of one child; the stream takes what is written when `confirm` says so."""

    def __init__(self):
        self.out, self.book, self.wish, self.supply = [], {}, {}, {}
        self.boxes = Mailboxes(
            self.out,
            lambda child, record: self.wish.get(record.key, Send.WHOLE),
            lambda key: self.supply.get(key, Supply.HERE),
            self.book.get,
            lambda: 0,
        )
        self.box = self.boxes.boxes["a"] = Mailbox()
        self.sequence, self.flying, self.order = 0, [], 0
        self.stream = {}

    def put(self, record, wish=Send.WHOLE, supply=Supply.HERE, bears=()):
        self.order += 1
        self.book[record.key] = record
        self.wish[record.key], self.supply[record.key] = wish, supply
        self.boxes.mark("a", record.key, self.order, bears)
        return self.flush()

    def flush(self):
        self.boxes.flush("a")
        return self.take()

    def take(self):
        written = [effect for effect in self.out if isinstance(effect, WriteMail)]
        for effect in self.out:
            if isinstance(effect, ClearMail):
                assert self.stream.pop(effect.key).sequence == effect.sequence
        self.out.clear()
        self.flying += written
        return [write.key for write in written]

    def confirm(self):
        """The stream takes the oldest write."""
        write = self.flying.pop(0)
        former = self.stream.get(write.key)
        assert write.expected == (former.sequence if former else 0)
        self.sequence += 1
        self.stream[write.key] = MailSlot(
            "a",
            write.key,
            self.sequence,
            write.generation,
            write.payload_hash,
            write.has_body,
            write.more,
        )
        self.boxes.written("a", write.key, self.sequence)
        return self.flush()

    def confirm_all(self):
        keys = []
        while self.flying:
            keys += self.confirm()
        return keys

    def settled(self, *records):
        for record in records:
            self.put(record)
        self.confirm_all()
