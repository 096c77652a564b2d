"""A node that lost its memory speaks for no child before it knows what that child holds."""

import asyncio
import hashlib

import pytest

from controllers.core.index import index_draft
from controllers.core.translate import bare_head
from relay.core.effects import SendReport, WriteMail
from relay.core.events import (
    BlobArrived,
    HeartbeatArrived,
    Instant,
    LinkChanged,
    MailArrived,
    MailWritten,
    OwnRecord,
    Remembered,
    ReportArrived,
    SessionArrived,
    Tick,
)
from relay.core.node import Node
from relay.core.state import NodeConfig
from schemas.chunks import build_index, build_manifest
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
    WANT_AGAIN,
    WANT_LIST,
    Heartbeat,
    Listed,
    ListPart,
    SessionMessage,
    decode,
    encode,
)
from schemas.selectors import LabelSelector
from schemas.wire import replace
from tests.memory_tree import memory_tree
from tests.unit.test_recovery import deliver
from tests.unit.test_second_home import NKEY, ROOT, SIGNER, TREE

REGION, SITE = NodePath.parse("/emea"), NodePath.parse("/emea/s1")


async def begin(tree):
    driver = await tree.start(REGION, tree.group, attached=False)
    async with asyncio.timeout(60):
        await driver.until(lambda node: node.ready and "s1" in node.children())
    return driver


async def test_children_that_were_not_heard_since_a_wipe_stay_unproven_over_a_restart(tmp_path):
    async with memory_tree(tmp_path, ["/emea", "/emea/s1"]) as tree:
        await deliver(tree, "a")
        key = await tree.placement_key("shop")
        tree.network.cut(SITE)
        await tree.stop(REGION)
        streams = tree.network.streams(REGION)
        fresh = type(streams)()
        streams.own, streams.mail, streams.stat = fresh.own, fresh.mail, fresh.stat
        wiped = await begin(tree)
        async with asyncio.timeout(60):
            await wiped.until(lambda node: node._state.inbox.remembers)
        await tree.stop(REGION)
        again = await begin(tree)
        assert not again.node._state.children["s1"].proven
        assert not again.node.summary(key).complete
        tree.network.heal(SITE)
        async with asyncio.timeout(60):
            await again.until(lambda node: node._state.children["s1"].proven)
            await again.until(lambda node: node.summary(key).complete)


def run_that_holds_what_its_mailbox_lacks():
    grant = KeyGrant(SIGNER.key_id, SIGNER.public_key, ("node",))
    keys = KeysRecord(Source(API_KEYS, TREE, "", "keys"), 1, False, "", (), (grant,))
    source = Source(API_NODE, TREE, "", str(SITE))
    child = NodeRecord(source, 2, False, "", (), SITE, NKEY)
    own = (
        OwnRecord("_keys", ROOT.seal("keys", encoded(keys)).encode(), "", 0),
        OwnRecord(source.key, SIGNER.seal("node", encoded(child)).encode(), "", 0),
    )
    config = NodeConfig(REGION, TREE, {ROOT.key_id: ROOT.public_key}, "one")
    node = Node(config, Remembered(own=own), [], Instant(0.0, 1))
    node.handle(LinkChanged(up=True), Instant(0.0, 1))
    return node, source.key


def test_a_list_is_said_whenever_it_is_asked_for_as_what_was_said_may_be_lost():
    node, key = run_that_holds_what_its_mailbox_lacks()
    said = []
    for want in (WANT_AGAIN, WANT_LIST, WANT_LIST):
        answer = SessionMessage("parent", 1, 0, 0, 0, want, "one")
        effects = node.handle(SessionArrived(answer), Instant(0.0, 1))
        said.append([decode(ListPart, e.data, 1 << 20) for e in effects if _is_list(e)])
    assert [[entry.key for part in parts for entry in part.entries] for parts in said] == [
        [],
        [key],
        [key],
    ]


def _is_list(effect):
    return isinstance(effect, SendReport) and effect.key == "_list0"


class Reader:
    """A region that reads its first mail, while its site asks for a session; `now` stands still."""

    def __init__(self):
        self.at, self.sequence = Instant(0.0, 1_000_000), 0
        config = NodeConfig(REGION, TREE, {ROOT.key_id: ROOT.public_key}, "one")
        self.node = Node(config, Remembered(), [], self.at)
        self.node.handle(LinkChanged(up=True), self.at)
        answer = SessionMessage("parent", 1, 5, 0, 0, WANT_AGAIN, "one")
        self.node.handle(SessionArrived(answer), self.at)
        self.wrote = []
        grant = KeyGrant(SIGNER.key_id, SIGNER.public_key, ("node", "profile", "delta", "index"))
        keys = KeysRecord(Source(API_KEYS, TREE, "", "keys"), 1, False, "", (), (grant,))
        source = Source(API_NODE, TREE, "", str(SITE))
        site = NodeRecord(source, 2, False, "", (), SITE, NKEY)
        self.mail("_keys", ROOT.seal("keys", encoded(keys)), 4)
        self.mail(source.key, SIGNER.seal("node", encoded(site)), 3)

    def tell(self, event):
        effects = self.node.handle(event, self.at)
        for effect in effects:
            if isinstance(effect, WriteMail):
                self.wrote.append(effect.key)
                sequence = self.sequence = self.sequence + 1
                written = MailWritten("s1", effect.key, effect.generation, sequence)
                self.tell(written)

    def mail(self, key, envelope, pending):
        self.tell(MailArrived(5 - pending, key, envelope.encode(), pending))

    def begins(self, held):
        """The site asks for a session, with the digest of what it holds."""
        beat = Heartbeat(0, "", 0, held, bytes(16), b"", 0, has_memory=False, run="site")
        self.tell(HeartbeatArrived("s1", encode(beat)))

    def is_an_edge(self):
        source = Source(API_SYNC_TARGET, "space", "", "t1")
        target = destination_id("space", "uid")
        profile = Profile(source, 2, False, "", (), target, SITE, {}, {}, {})
        self.mail(source.key, SIGNER.seal("profile", encoded(profile)), 2)

    def index_before_content(self):
        """A placement and the index that lists it are read; the content of both comes later."""
        manifest = build_manifest([])
        body = DeltaBody((Gate(manifest[0].reference),)).encode()
        everyone = (Alternative(OVER_SYNC_TARGET, LabelSelector()),)
        head = replace(
            bare_head(Source(API_PLACEMENT, "space", "", "shop"), everyone),
            generation=Generation(3),
            references=(manifest[0].reference,),
            body_hash=hashlib.sha256(body).digest(),
        )
        draft, _ = index_draft(TREE, {head.source.key: 3}, 1)
        index = SIGNER.seal("index", encoded(draft.stamped(Generation(4))))
        self.mail(head.source.key, SIGNER.seal("delta", encoded(head), body), 1)
        self.mail("_index", index, 0)
        self.tell(Tick())
        listed = build_index([(head.source.key, 3)])
        return head.source.key, listed, manifest

    def brings(self, stored):
        for blob in stored:
            value = blob.values[blob.reference.address]
            self.tell(BlobArrived(blob.reference, value, local=False))


def test_a_child_that_may_have_been_shown_an_index_before_gets_what_it_lists_first():
    """One that this node forgot with its disk: the edge would drop what is still on its way."""
    region = Reader()
    key, index, content = region.index_before_content()
    region.begins(held=b"something".ljust(16))
    region.brings(index)
    assert region.wrote.count("_index") == 0
    region.brings(content)
    assert region.wrote.index(key) < region.wrote.index("_index")


@pytest.mark.parametrize("is_edge", [True, False])
def test_an_edge_that_holds_nothing_is_shown_the_index_at_once(is_edge):
    """Below a relay that lost its disk, too, others may hold what they were sent before."""
    region = Reader()
    if is_edge:
        region.is_an_edge()
    key, index, _ = region.index_before_content()
    region.begins(held=bytes(16))
    region.brings(index)
    assert ("_index" in region.wrote) == is_edge
    assert key not in region.wrote


def test_what_a_child_listed_and_nobody_knew_is_asked_for_no_more_once_the_child_holds_it_no_more():
    region = Reader()
    _, index, content = region.index_before_content()
    region.begins(held=bytes(16))
    region.brings(index)
    region.brings(content)
    state = region.node._state
    child, box = state.children["s1"], state.mailboxes.boxes["s1"]

    def beats(withheld):
        digest = box.digest.to_bytes(16, "big")
        epoch, last = child.epoch, box.last_sequence
        beat = Heartbeat(epoch, "one", last, digest, bytes(16), b"", 0, False, withheld=withheld)
        region.tell(HeartbeatArrived("s1", encode(beat)))

    beats(withheld=1)
    unknown = Source(API_PLACEMENT, "space", "", "swept").key
    listed = ListPart(child.epoch, 1, 0, (Listed(unknown, 1),))
    region.tell(ReportArrived("s1", "_list0", encode(listed)))
    assert region.node.own_state()["withheld"] == 1
    beats(withheld=0)
    assert region.node.own_state()["withheld"] == 0
