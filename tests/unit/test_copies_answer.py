"""What a parent answers of copies: whole over pages, of which moment, and only what is a copy."""

from __future__ import annotations

import asyncio

import pytest

from leafcast.ask.decode import BadAnswer, read_copies
from leafcast.node import copies_answer as answering
from leafcast.node.copies_answer import CopyQuery, copies_answer
from relay.objects.expressions.cel import ExpressionRefused
from relay.objects.expressions.filters import OBJECT, Filter
from relay.ports import CopiesPage, StoredCopy
from schemas.content.blobs import compress, decompress
from schemas.objects.objects import ObjectKey
from schemas.objects.selectors import LabelSelector
from schemas.reports.link import Hello, copies_word
from schemas.reports.upsync import (
    OBJECT_MAX_BYTES,
    OBJECT_MAX_VALUES,
    Copy,
    UpsyncClause,
    copy_key,
    encode_copy,
    read_copy,
)
from schemas.values import codec
from schemas.values.identity import NodePath
from schemas.values.refusals import CodecError
from schemas.values.wire import encode

RELAY = NodePath.parse("/emea")
MAPS = CopyQuery("", "configmaps")
HEARD_MS = 1_000_000


def key(name, namespace="shop"):
    return ObjectKey("", "configmaps", namespace, name)


def config_map(name, namespace="shop", **labels):
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def hello(word):
    return encode(Hello("r", "h", "i", 1, b"", 0, copies=word))


class Relay:
    """A relay with what its children brought up, by child; pages are of two copies."""

    def __init__(self, *relays, said=b"", **children):
        self.relays, self.said, self.copies = relays, said, children
        self.reads = 0

    def children(self):
        return [*self.relays, *self.copies]

    def destination_of(self, child):
        return None if child in self.relays else f"inventory-mb-{child}"

    async def read(self, child, first):
        self.reads += 1
        rest = [
            StoredCopy(at, where, data, at)
            for at, (where, data) in enumerate(self.copies[child], start=1)
            if at >= first
        ]
        following = rest[2].sequence if len(rest) > 2 else 0
        return CopiesPage(tuple(rest[:2]), following, self.said, HEARD_MS)

    async def answer(self, wanted=MAPS, **asked):
        return await copies_answer(self, self.read, RELAY, wanted, **asked)

    async def all(self, wanted=MAPS, **asked):
        """The names that all pages tell of, and how many pages there were."""
        found, after, pages = [], "", 0
        while True:
            pages += 1
            answer = await self.answer(wanted, after=after, **asked)
            rows, _, after = read_copies(answer, RELAY, after)
            found += [(str(row.path), row.object["metadata"]["name"]) for row in rows]
            if not after:
                return found, pages


def kept(*objects):
    found = []
    for obj in objects:
        at = key(obj["metadata"]["name"], obj["metadata"]["namespace"])
        found.append((copy_key(at), encode_copy(at, obj)))
    return found


def many(count):
    return kept(*(config_map(f"m{number}") for number in range(count)))


async def test_what_lives_in_no_namespace_is_told_of_whatever_namespace_is_asked_for():
    relay = Relay(s1=kept(config_map("everywhere", ""), config_map("a")))

    found, _ = await relay.all(CopyQuery("", "configmaps", namespace="default"))

    assert [name for _, name in found] == ["everywhere"]


async def test_pages_leave_nothing_out_and_tell_nothing_twice(monkeypatch):
    relay = Relay("r1", s1=many(7), s2=[], s3=many(3))
    expected = [("/emea/s1", f"m{at}") for at in range(7)]
    expected += [("/emea/s3", f"m{at}") for at in range(3)]
    assert await relay.all() == (expected, 1)
    monkeypatch.setattr(answering, "PAGE_MAX", 3)
    assert await relay.all() == (expected, 4)
    monkeypatch.setattr(answering, "READ_MAX_BYTES", 1)
    assert (await relay.all())[0] == expected
    monkeypatch.setattr(answering, "EDGES_READ_MAX", 1)
    assert (await relay.all())[0] == expected
    assert (await relay.answer())["relays"] == ["r1"]
    assert (await relay.answer(after="s3/2"))["relays"] == []
    assert await relay.all(child="s3") == (expected[7:], 3)


async def test_what_is_wanted_is_told_of_and_nothing_else():
    objects = config_map("a", by="x"), config_map("b", "other", by="y"), config_map("c", by="y")
    relay = Relay(s1=kept(*objects))

    async def names(**said):
        return [name for _, name in (await relay.all(CopyQuery("", "configmaps", **said)))[0]]

    assert await names() == ["a", "b", "c"]
    assert await names(namespace="shop") == ["a", "c"]
    assert await names(name="b") == ["b"]
    by_y = LabelSelector.from_kubernetes({"matchLabels": {"by": "y"}})
    assert await names(selector=by_y) == ["b", "c"]
    assert (await relay.all(CopyQuery("apps", "deployments")))[0] == []
    by_x = Filter('returned.metadata.labels.by == "x"', OBJECT)
    assert await names(filter=by_x) == ["a"]
    assert await names(filter=Filter("returned.data.missing > 0", OBJECT)) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("returned.", "not CEL"),
        ("obj.a == 1", 'unknown variable "obj"; there are returned'),
        ("returned.a == " + "1" * 5000, "at most 4096 are allowed"),
    ],
)
def test_a_filter_that_is_wrong_is_refused(text, said):
    with pytest.raises(ExpressionRefused, match=said):
        Filter(text, OBJECT)


@pytest.mark.parametrize(
    ("said", "as_of"),
    [
        (b"", 1),
        (b"nonsense", 1),
        (hello(0), 1),
        (hello(copies_word(stated=False, behind_seconds=0)), 1),
        (hello(copies_word(stated=True, behind_seconds=0)), HEARD_MS),
        (hello(copies_word(stated=True, behind_seconds=90.9)), HEARD_MS - 90_000),
        (hello(2**62), 1),
    ],
)
async def test_a_copy_is_of_the_moment_that_is_known(said, as_of):
    (row,) = (await Relay(s1=many(1), said=said).answer())["copies"]
    assert row["asOfMs"] == as_of


async def test_what_is_no_copy_is_left_out_and_the_rest_is_told():
    good, other = config_map("good"), config_map("other")
    here = copy_key(key("good"))
    bomb = compress(bytes(OBJECT_MAX_BYTES * 4))
    strange = [
        (here, b"nonsense"),
        (here, encode_copy(key("other"), other)),
        (here, encode(Copy(key("good"), 10, compress(codec.canonical(other))))),
        (here, encode(Copy(key("good"), OBJECT_MAX_BYTES, bomb))),
        (here, encode(Copy(key("good"), OBJECT_MAX_BYTES * 4, bomb))),
        (here, encode(Copy(key("good"), 1000, compress(codec.canonical([1]))))),
        (here, encode(Copy(key("good"), 1000, compress(codec.canonical({"metadata": 3}))))),
        (here, encode(Copy(key("good"), 1000, b"\2"))),
    ]
    relay = Relay(s1=[*strange, *kept(good)])
    assert (await relay.all())[0] == [("/emea/s1", "good")]


def bomb(name, *, levels=0, values=0, of=None):
    """A copy of an object that is nested so deeply, or has so many values, and of what key."""
    said = codec.pack({"metadata": {"name": name, "namespace": "shop"}, "deep": 0, "wide": 0})
    deep = b"\x81\xa1a" * levels + b"\xc0"
    wide = b"\xdd" + values.to_bytes(4, "big") + b"\x80" * values
    plain = said.replace(b"\xa4deep\0", b"\xa4deep" + deep).replace(b"wide\0", b"wide" + wide)
    at = key(of or name)
    return copy_key(at), encode(Copy(at, len(plain), compress(plain)))


@pytest.mark.parametrize("levels", [101, 124, 127, 520, 1000, 5000])
async def test_what_is_nested_without_end_is_no_copy_and_ends_nobody(levels):
    good = config_map("good")
    relay = Relay(s1=[bomb("deep", levels=levels), *kept(good)])
    assert (await relay.all())[0] == [("/emea/s1", "good")]
    codec.check_depth(await relay.answer())


async def test_copies_that_say_much_in_few_bytes_are_opened_in_small_slices_of_bounded_pages(
    monkeypatch,
):
    """10,000 of 120 bytes, a MiB each, would take 10 GB and minutes of the loop for one answer."""
    monkeypatch.setattr(answering, "READ_MAX_BYTES", 1024 * 1024)
    each = bomb("liar", values=OBJECT_MAX_VALUES - 10, of="other")
    relay, turns = Relay(s1=[each] * 100), 0

    async def others():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    opened = answering.READ_MAX_BYTES // len(decompressed(each)) + 2
    answer = await relay.answer()
    beside.cancel()
    assert answer["copies"] == []
    assert 1 < int(answer["next"].rpartition("/")[2]) <= opened < turns + 2


async def test_an_object_of_too_many_maps_is_neither_sent_nor_opened():
    many = config_map("m") | {"data": [{}] * OBJECT_MAX_VALUES}
    with pytest.raises(CodecError, match=f"more than {OBJECT_MAX_VALUES} values"):
        encode_copy(key("m"), many)
    text = config_map("t") | {"data": {"t": "\u4e00" * (OBJECT_MAX_VALUES * 3)}}
    relay = Relay(s1=[bomb("m", values=OBJECT_MAX_VALUES), *kept(text)])
    assert (await relay.all())[0] == [("/emea/s1", "t")]


def decompressed(kept_copy):
    copy = read_copy(kept_copy[1])
    return decompress(copy.value, copy.size)


@pytest.mark.parametrize(
    "answer",
    [
        {"copies": [{"path": "/apac/s1", "asOfMs": 1, "object": config_map("a")}]},
        {"copies": [{"path": "/", "asOfMs": 1, "object": config_map("a")}]},
        {"copies": [{"path": "/emea/s1/x", "asOfMs": 1, "object": config_map("a")}]},
        {"copies": [{"path": "/emea/s1", "asOfMs": -1, "object": config_map("a")}]},
        {"copies": [{"path": "/emea/s1", "asOfMs": 2**63, "object": config_map("a")}]},
        {"copies": [{"path": "/emea/s1", "asOfMs": 1, "object": {"metadata": {}}}]},
        {"copies": [{"path": "/emea/s1", "asOfMs": 1, "object": 3}]},
        {"relays": ["../x"]},
        {"next": "s1/1"},
        {"next": "s0/9"},
        {"next": "x"},
        {"next": 3},
    ],
    ids=str,
)
def test_an_answer_that_is_none_is_refused(answer):
    with pytest.raises(BadAnswer):
        read_copies({"copies": [], "relays": [], "next": "", **answer}, RELAY, "s1/1")


def test_an_object_up_to_the_limit_is_a_copy_and_a_larger_one_is_refused():
    said = config_map("a")
    said["data"] = {
        "k": "x" * (OBJECT_MAX_BYTES - len(codec.canonical({**said, "data": {"k": ""}})) - 4)
    }
    assert len(codec.canonical(said)) <= OBJECT_MAX_BYTES
    assert read_copy(encode_copy(key("a"), said)).key == key("a")
    with pytest.raises(CodecError, match="at most 1048576"):
        encode_copy(key("a"), {**said, "more": "x" * 10})


def test_a_clause_admits_what_it_names_and_secrets_by_name_only():
    everything = UpsyncClause("", ("*",), ("*",), ("*",))
    assert everything.matches(key("a"))
    assert everything.matches(ObjectKey("", "nodes", "", "n1"))
    assert not everything.matches(ObjectKey("apps", "deployments", "shop", "web"))
    secret = ObjectKey("", "secrets", "shop", "door")
    assert not everything.matches(secret)
    assert everything.leaves_secrets_out
    named = UpsyncClause("", ("*", "secrets"), ("shop",), ("door",))
    assert named.matches(secret)
    assert not named.leaves_secrets_out
    assert not named.matches(key("a"))
    assert not UpsyncClause("", ("configmaps",), (), ("*",)).matches(key("a"))
    assert UpsyncClause("", ("nodes",), (), ("*",)).matches(ObjectKey("", "nodes", "", "n1"))
