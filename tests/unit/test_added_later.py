"""What the centre makes of children that it came to know late, or knows too little of yet."""

import hashlib
from dataclasses import replace

from controllers.core.index import index_draft
from controllers.core.translate import bare_head
from relay.core.effects import DropReport, Noted, SendSession, StoreOwn, WriteMail
from relay.core.events import (
    HeartbeatArrived,
    Instant,
    Issued,
    LedgerLost,
    MailWritten,
    OwnRecord,
    Remembered,
    ReportArrived,
    Tick,
)
from relay.core.node import Node
from relay.core.state import NodeConfig
from schemas import wire
from schemas.chunks import build_manifest
from schemas.identity import Generation, NodePath, destination_id
from schemas.records import (
    API_KEYS,
    API_NODE,
    API_PLACEMENT,
    API_SYNC_TARGET,
    OVER_SYNC_TARGET,
    Alternative,
    DeltaBody,
    Gate,
    KeyGrant,
    KeysRecord,
    NodeRecord,
    Profile,
    Source,
)
from schemas.records import encode_payload as encoded
from schemas.reports import (
    WANT_LIST,
    WANT_NONE,
    Heartbeat,
    Listed,
    ListPart,
    Report,
    SessionMessage,
    Summary,
    decode,
    encode,
)
from schemas.selectors import LabelSelector, Requirement
from tests.unit.test_second_home import NKEY, ROOT, SIGNER, TREE

SITE = NodePath.parse("/s1")
EVERYONE = LabelSelector()


class Centre:
    """The centre's relay; what it writes is in the mailbox of the site at once, in that order."""

    def __init__(self):
        self.at = Instant(0.0, 1_000_000)
        config = NodeConfig(NodePath(), TREE, {ROOT.key_id: ROOT.public_key}, "one")
        self.node = Node(config, Remembered(), [], self.at)
        self.written, self.own = {}, {}
        grant = KeyGrant(SIGNER.key_id, SIGNER.public_key, ("node", "profile", "delta", "index"))
        self.session = None
        keys = KeysRecord(Source(API_KEYS, TREE, "", "keys"), 1, False, "", (), (grant,))
        self.enter("_keys", ROOT.seal("keys", encoded(keys)).encode())

    def enter(self, key, data, blobs=frozenset()):
        self.own[key] = OwnRecord(key, data, "", 0)
        self.tell(Issued(data, (), blobs))

    def starts_again(self):
        """Another run, on what the ledger and OWN hold."""
        config = replace(self.node._state.config, incarnation="two")
        self.node = Node(config, Remembered(own=tuple(self.own.values())), [], self.at)
        self.perform(self.node.start())

    def tell(self, event):
        self.perform(self.node.handle(event, self.at))

    def perform(self, effects):
        for effect in effects:
            if isinstance(effect, WriteMail):
                sequence = self.written[effect.key] = max(self.written.values(), default=0) + 1
                self.tell(MailWritten("s1", effect.key, effect.generation, sequence))
            elif isinstance(effect, SendSession):
                self.session = decode(SessionMessage, effect.data)
            elif isinstance(effect, StoreOwn):
                self.own[effect.key] = OwnRecord(effect.key, effect.data, "", 0)

    def issue(self, kind, record, body=None, blobs=frozenset()):
        sealed = SIGNER.seal(kind, encoded(record), body).encode()
        self.enter(record.source.key, sealed, blobs)
        return record.source.key

    def places(self, *, whole=True, generation=2, to=EVERYONE):
        manifest = build_manifest([])
        body = DeltaBody((Gate(manifest[0].reference),)).encode()
        everyone = (Alternative(OVER_SYNC_TARGET, to),)
        head = wire.replace(
            bare_head(Source(API_PLACEMENT, "space", "", "shop"), everyone),
            generation=Generation(generation),
            references=(manifest[0].reference,),
            body_hash=hashlib.sha256(body).digest(),
        )
        blobs = frozenset(address for blob in manifest for address in blob.values)
        return self.issue("delta", head, body if whole else None, blobs)

    def hangs(self):
        source, target = Source(API_SYNC_TARGET, "space", "", "t1"), destination_id("space", "uid")
        return self.issue("profile", Profile(source, 3, False, "", (), target, SITE, {}, {}, {}))

    def adds(self):
        self.issue(
            "node", NodeRecord(Source(API_NODE, TREE, "", "/s1"), 4, False, "", (), SITE, NKEY)
        )
        beat = Heartbeat(0, "", 0, b"", bytes(16), b"", 0, has_memory=True, run="site")
        self.tell(HeartbeatArrived("s1", encode(beat)))

    def beats(self, withheld):
        """The site has read all its mail, and holds so many records beyond; what it is asked."""
        box, session = self.node._state.mailboxes.boxes["s1"], self.session
        digest, last, run = box.digest.to_bytes(16, "big"), box.last_sequence, session.incarnation
        beat = Heartbeat(
            session.epoch, run, last, digest, bytes(16), b"", 0, True, withheld=withheld
        )
        self.tell(HeartbeatArrived("s1", encode(beat)))
        return self.session.want

    def hears(self, key, answered, summary, revision):
        said = Report(
            key,
            0,
            self.session.epoch,
            revision,
            2,
            self.session.incarnation,
            answered,
            False,
            0,
            summary,
        )
        self.tell(ReportArrived("s1", key, encode(said)))
        self.tell(Tick())
        return self.node.summary(key)


def test_who_answers_for_a_placement_before_it_read_that_it_is_meant_leaves_the_count_open():
    centre = Centre()
    shop, site = centre.places(), centre.hangs()
    centre.adds()
    assert centre.written[shop] < centre.written[site]
    # It came from elsewhere, where it was known by another path, and by that it is not meant.
    nothing = centre.hears(shop, centre.written[shop], Summary(), 1)
    assert not nothing.complete
    done = Summary({"synced": 1}, {"healthy": 1}, {"arm": 1})
    read = centre.hears(shop, centre.written[site], done, 2)
    assert read.complete
    assert read.states == {"synced": 1}


def test_a_placement_that_was_read_back_as_a_head_alone_is_not_complete():
    centre = Centre()
    shop = centre.places(whole=False)
    centre.hangs()
    centre.adds()
    assert shop not in centre.written
    assert not centre.node.summary(shop).complete
    assert centre.node.summary(shop).blocking == ("/",)
    assert centre.places() == shop
    assert centre.node.summary(shop).blocking == ("/s1",)


def test_before_a_centre_knows_its_ledger_no_report_is_bad_for_what_it_does_not_know():
    centre = Centre()
    centre.adds()
    unknown = Source(API_PLACEMENT, "space", "", "lost").key
    said = Report(
        unknown, 0, centre.session.epoch, 1, 2, centre.session.incarnation, 9, False, 0, Summary()
    )

    def hears():
        arrived = ReportArrived("s1", unknown, encode(said), 7)
        return [type(effect) for effect in centre.node.handle(arrived, centre.at)]

    # It is erased either way, and asked for again once it is known what was sent.
    assert hears() == [DropReport]
    centre.issue("index", index_draft(TREE, {}, 0)[0].stamped(Generation(9)))
    assert hears() == [Noted, DropReport]


def test_what_a_child_lists_that_it_was_told_to_let_go_of_is_said_to_it_again():
    centre = Centre()
    shop, nobody = centre.places(), LabelSelector((Requirement("env", "In", ("none",)),))
    centre.hangs()
    centre.adds()
    centre.places(generation=5, to=nobody)
    let_go = centre.written[shop]
    # What it answered was lost, and then one below it went back to an old copy that holds it.
    listed = ListPart(centre.session.epoch, 1, 0, (Listed(shop, 0),))
    centre.tell(ReportArrived("s1", "_list0", encode(listed)))
    assert centre.written[shop] > let_go


def test_a_centre_that_reads_its_ledger_back_counts_on_no_child_that_holds_more_than_it_sent():
    """By an old Location, say, that does not concern the child any more: it is written nothing."""
    centre = Centre()
    shop, site = centre.places(), centre.hangs()
    centre.adds()
    done = Summary({"synced": 1}, {"healthy": 1}, {"arm": 1})
    assert centre.hears(shop, centre.written[site], done, 1).complete
    # A list that comes before the ledger is read back names what is not known yet.
    assert centre.beats(withheld=1) == WANT_LIST
    centre.tell(LedgerLost())
    assert not centre.node.summary(shop).complete
    assert centre.beats(withheld=1) == WANT_LIST
    assert not centre.node.summary(shop).complete
    assert centre.beats(withheld=0) == WANT_NONE
    assert centre.node.summary(shop).complete


def test_who_holds_more_than_it_was_sent_a_centre_knows_after_another_start():
    centre = Centre()
    centre.places()
    centre.hangs()
    centre.adds()
    centre.tell(LedgerLost())
    centre.starts_again()
    assert not centre.node._state.children["s1"].proven
    centre.adds()
    centre.beats(withheld=0)
    centre.starts_again()
    assert centre.node._state.children["s1"].proven
