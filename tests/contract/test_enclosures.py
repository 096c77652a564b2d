"""Small new content comes along with mail; nothing rests on it, and it is bounded."""

import pytest
from nats.aio.msg import Msg

from controllers.core.translate import bare_head
from relay.adapters.jetstream.enclosures import (
    CHILD_BYTES_MAX,
    ENTRY_BYTES,
    NEW_SECONDS,
    RECORDS_MAX,
    VALUE_BYTES_MAX,
    WAITING_BYTES_MAX,
    Enclosed,
    Enclosing,
)
from schemas import codec
from schemas.blobs import OBJECT, store
from schemas.identity import KeyId, TreeId, random_id
from schemas.records import Source, encode_payload
from schemas.signing import Signer
from schemas.wire import replace
from tests.contract.buses import NatsTree, letter

TREE = TreeId(random_id(bytes(16)))
SIGNER = Signer(TREE, KeyId(random_id(b"k" * 16)), b"s" * 32)


class Client:
    """Holds what was published."""

    def __init__(self):
        self.sent = []

    async def publish(self, subject, data):
        self.sent.append((subject, codec.unpack(data)))


def naming(*blobs):
    """A delta that names these blobs."""
    head = bare_head(Source("api", "space", "", "shop"), ())
    head = replace(head, references=tuple(blob.reference for blob in blobs))
    return SIGNER.seal("delta", encode_payload(head), b"").encode()


def content(size, letter=b"x"):
    """A blob of noise-free bytes that is stored at about this size."""
    return store(OBJECT, codec.pack([letter * min(size, 900), size]))


@pytest.mark.nats
async def test_a_child_has_new_content_with_the_mail_that_names_it(tmp_path):
    async with NatsTree(tmp_path) as tree:
        await tree.plant("/")
        centre, _ = await tree.open()
        bus, listener = await tree.sprout("/emea", centre)
        named, other = content(500), content(500, b"y")
        await centre.keep_blobs({**named.values, **other.values})
        await centre.write_mail([letter("emea", 2, data=naming(named))])
        await listener.mail(1)
        await centre.drop_blobs([*named.values, *other.values])
        came = bus.blob_at_hand(named.reference)
        assert came.value == named.values[named.reference.address]
        assert not came.local
        assert bus.blob_at_hand(named.reference) is None
        assert bus.blob_at_hand(other.reference) is None
        assert (await bus.load_blob(named.reference, fresh=True)).value is None
        assert (await bus.load_blob(other.reference, fresh=True)).value is None


async def test_only_what_is_new_and_small_and_named_is_enclosed(clock):
    client, enclosing = Client(), Enclosing(clock)
    small, large = content(100), store(OBJECT, bytes(range(256)) * 600)
    value = small.values[small.reference.address]
    enclosing.kept({**small.values, large.reference.address: b"\0" * (VALUE_BYTES_MAX + 1)})
    mail = naming(small, large)
    await enclosing.send(client, [letter("a", 2, data=mail), letter("b", 2, data=mail)])
    one = ((small.reference.address, value),)
    assert client.sent == [("lc._d.a.content", one), ("lc._d.b.content", one)]
    await enclosing.send(client, [letter("a", 2, data=naming(large)), letter("a", 4)])
    many = [letter("c", 2 * at, data=naming(small)) for at in range(RECORDS_MAX + 1)]
    await enclosing.send(client, many)
    clock.ahead += NEW_SECONDS + 1
    await enclosing.send(client, [letter("a", 2, data=mail)])
    assert len(client.sent) == 2


async def test_a_child_is_sent_no_more_than_its_share(clock):
    client, enclosing = Client(), Enclosing(clock)
    blobs = [content(900, bytes([at])) for at in range(200)]
    for at, blob in enumerate(blobs):
        enclosing.kept(blob.values)
        await enclosing.send(client, [letter("a", 2 * at, data=naming(blob))])
    sent = sum(len(codec.pack(content)) for _, content in client.sent)
    assert CHILD_BYTES_MAX / 2 < sent <= CHILD_BYTES_MAX


async def test_ever_new_addresses_of_nothing_are_not_all_held():
    enclosed = Enclosed()
    addresses = [f"{number:064x}" for number in range(2000)]
    for address in addresses:
        await enclosed.came(Msg(None, data=codec.pack([[address, b""]])))
    held = [address for address in addresses if enclosed.take(address) is not None]
    assert held == addresses[-len(held) :]
    assert 100 < len(held) <= WAITING_BYTES_MAX / ENTRY_BYTES
    assert enclosed.take(addresses[0]) is None
