"""A node that lost its memory speaks for no child before it knows what that child holds."""

import asyncio

from relay.core.effects import SendReport
from relay.core.events import Instant, LinkChanged, OwnRecord, Remembered, SessionArrived
from relay.core.node import Node
from relay.core.state import NodeConfig
from schemas.identity import NodePath
from schemas.records import API_KEYS, API_NODE, KeyGrant, KeysRecord, NodeRecord, Source
from schemas.records import encode_payload as encoded
from schemas.reports import WANT_AGAIN, WANT_LIST, ListPart, SessionMessage, decode
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
