"""A command's key: it asks the centre and hears the answers, and reaches no bucket by any way."""

import asyncio
import json

import nats
import pytest
from nats.errors import Error as NatsError
from nats.errors import TimeoutError as NatsTimeout

from leafcast.ask.long_questions import VERB as PART
from leafcast.ask.long_questions import parts_of
from leafcast.ask.session import API_PREFIX
from leafcast.changes.forms import pack, unpack
from relay.adapters.asking import ANSWERS
from schemas.values.identity import NodePath
from tests.awaiting import eventually
from tests.e2e.program import did

pytestmark = [pytest.mark.nats, pytest.mark.slow]

STREAMS = ("KV_workloads", "KV_inventory")
READS = (
    "$JS.API.INFO",
    "$JS.API.STREAM.NAMES",
    *(f"$JS.API.STREAM.INFO.{stream}" for stream in STREAMS),
    *(f"$JS.API.STREAM.MSG.GET.{stream}" for stream in STREAMS),
    *(f"$JS.API.DIRECT.GET.{stream}.$KV.x" for stream in STREAMS),
    "$JS.API.CONSUMER.CREATE.KV_workloads",
    "$JS.lc.API.STREAM.NAMES",
    "$SYS.REQ.ACCOUNT.PING.CONNZ",
)
WRITES = (
    "$KV.workloads.x",
    "$KV.inventory.x",
    "$JS.API.STREAM.PURGE.KV_workloads",
    "$O.workloads.C.x",
)
ANSWERED = (*WRITES, f"{API_PREFIX}node-list", "_INBOX.x")
"""Where it would have an answer."""
HEARD = (">", "$KV.>", "_INBOX.>", f"{API_PREFIX}*", "leafcast.>", "$JS.>")


def of_command(tree):
    """The way in that a command has."""
    admin = tree.place.admin()
    return admin["url"], admin["seed"]


def of_spaces(tree):
    """The way in that the centre has to its spaces."""
    folder = tree.place.node(NodePath())
    return tree.place.admin()["url"], json.loads((folder / "accounts.json").read_text())["space"]


async def connected(way, refused, **options):
    url, seed = way

    async def note(error):
        refused.append(str(error))

    return await nats.connect(url, nkeys_seed_str=seed, error_cb=note, **options)


def is_refused(said):
    """Whether the server said so by now: it does, and an answer to who waits is another message."""
    return any("permissions violation" in it.lower() for it in said)


async def written(tree):
    """What lies in the streams of the spaces under the subjects that are tried, if anything does.

    Also which of the streams are empty. What the centre itself writes meanwhile is none of it.
    """
    client = await connected(of_spaces(tree), [])
    try:
        found = []
        for stream in STREAMS:
            info = await client.jetstream().stream_info(stream, subjects_filter=">")
            found += {*WRITES, *ANSWERED}.intersection(info.state.subjects or ())
            found += [] if info.state.messages else [stream]
        return found
    finally:
        await client.close()


@pytest.fixture
async def asking(tree):
    """A raw client with a command's key, and what its server refused it."""
    refused = []
    # A command waits until it is answered, which a raw client does not.
    await asyncio.to_thread(did, tree, "status")
    client = await connected(of_command(tree), refused, inbox_prefix=ANSWERS.encode())
    yield client, refused
    await client.close()


async def test_it_asks_and_is_answered(asking):
    client, refused = asking
    answer = await client.request(f"{API_PREFIX}node-list", b"{}", timeout=15)
    assert "result" in json.loads(answer.data)
    assert refused == []


@pytest.mark.parametrize("subject", READS)
async def test_it_reads_no_bucket(asking, subject):
    client, refused = asking
    with pytest.raises((NatsTimeout, NatsError)):
        await client.request(subject, b"{}", timeout=0.5)
    await eventually(lambda: is_refused(refused), lambda: f"refused: {refused}")


async def test_it_writes_none(tree, asking):
    client, refused = asking
    for subject in WRITES:
        await client.publish(subject, b"{}")
        await client.flush()
    await eventually(lambda: len(refused) == len(WRITES), lambda: f"refused: {refused}")
    assert await written(tree) == []


async def test_nor_has_the_centre_write_for_it_by_where_it_wants_its_answer(tree, asking):
    """The centre itself may write there, and publishes answers where who asks says."""
    client, _ = asking
    for subject in ANSWERED:
        await client.publish(f"{API_PREFIX}node-list", b"{}", reply=subject)
    # What was asked before this was handled before it.
    await client.request(f"{API_PREFIX}node-list", b"{}", timeout=15)
    assert await written(tree) == []


@pytest.mark.parametrize("subject", HEARD)
async def test_it_hears_nothing_of_others(tree, asking, subject):
    client, refused = asking
    heard = []

    async def hear(message):
        heard.append(message.subject)

    await client.subscribe(subject, cb=hear)
    await client.flush()
    await asyncio.to_thread(
        did, tree, "label", "locations", "region-1-site-1", f"heard={len(subject)}", "--overwrite"
    )
    await client.flush()
    assert heard == []
    await eventually(lambda: is_refused(refused), lambda: f"refused: {refused}")


def test_no_file_that_commands_read_has_the_key_of_the_spaces(tree):
    assert of_spaces(tree)[1] not in (tree.place.folder / "admin.json").read_text()


def test_an_object_longer_than_a_message_is_applied_and_read(tree, tmp_path):
    long = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "long", "namespace": "default"},
        "data": {"text": 'é"\\' * 240_000},
    }
    file = tmp_path / "long.json"
    file.write_text(json.dumps(long))
    did(tree, "apply", "-f", str(file))
    assert tree.json("get", "configmap", "long")["data"] == long["data"]


def said_batch(*objects, **how):
    """A batch as a raw client says it, with what it likes in it."""
    form = {"namespace": None, "unread": False, "placing": None, "create_namespaces": False}
    loaded = [
        {"object": obj, "origin": "raw", "line": at, "notes": []} for at, obj in enumerate(objects)
    ]
    return {"batch": pack({**form, "loaded": loaded, **how}), "dry": False}


def placement_with(spec):
    version = "edge.kubestellar.io/v2alpha1"
    return {"apiVersion": version, "kind": "EdgePlacement", "metadata": {"name": "a"}, "spec": spec}


CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "raw"}}
MAPS = ["", "configmaps", "default"]
TARGET = ["edge.kubestellar.io", "synctargets", "", "region-1-site-1"]
REQUEST = {"id": "1", "action": "pause"}
WRITING = {"name": "workloads", "what": "apply", "arguments": {"obj": CONFIG, "manager": "m"}}
REFUSED = (
    ("space", WRITING, "reads nothing in a space"),
    ("space", {**WRITING, "what": "delete", "arguments": {"key": [*MAPS, "a"]}}, "reads nothing"),
    ("space", {**WRITING, "what": "get", "arguments": {"key": ["a"]}}, "reads nothing"),
    ("apply-begin", {"name": "a"}, "knows no 'apply-begin'"),
    ("confirm-removals", {"placements": {}}, "knows no"),
    ("apply-judge", {"batch": "?", "dry": False}, "it is no batch"),
    ("apply-judge", {"batch": 7, "dry": False}, "it is no batch"),
    ("apply-judge", {**said_batch(CONFIG), "manager": "leafcast-node"}, "unexpected keyword"),
    ("apply-judge", said_batch(placement_with({"downSync": []})), "spec.downSync: unknown field"),
    ("apply-judge", said_batch({**CONFIG, "metadata": {}}), "metadata.name"),
    ("apply-judge", said_batch({**CONFIG, "kind": "Nonsense"}), "no matches for kind"),
    ("apply-judge", said_batch({**CONFIG, "metadata": {"name": "../a"}}), "metadata.name"),
    ("apply-judge", said_batch("a"), "it is no batch"),
    ("apply-judge", said_batch(CONFIG, {**CONFIG, "data": 7}), "is given twice"),
    ("apply-judge", said_batch(CONFIG, namespace=7), "it is no batch"),
    ("apply-judge", said_batch(CONFIG, placing={"name": "A b"}), "it is no batch"),
    ("apply-judge", said_batch(*[CONFIG] * 50_001), "at most 50000 are taken"),
    ("changes-write", {"batch": "none"}, "nobody judged this batch"),
    ("changes-write", {"batch": ["none"]}, "nobody judged this batch"),
    ("changes-read", {"batch": "none", "page": "1"}, "the page"),
    ("delete-judge", {"objects": 7}, "no list"),
    ("delete-judge", {"objects": [["a"]]}, "[group, resource, namespace, name"),
    ("delete-judge", {"objects": [[*TARGET, ""]] * 50_001}, "at most 50000 are taken"),
    ("delete-judge", {"objects": [[*TARGET, ""]], "fate": "burn"}, "the fate"),
    ("delete-judge", {"objects": [[*TARGET, ""]], "force": "no"}, "/region-1/site-1"),
    ("label-judge", {"objects": [[*MAPS, "none"]], "labels": {"a": "b"}}, "not found"),
    ("label-judge", {"objects": [TARGET], "labels": {"a": "b c"}}, "the value"),
    ("label-judge", {"objects": [TARGET], "labels": {"a b": "c"}}, "the label"),
    ("label-judge", {"objects": [TARGET], "labels": []}, "no labels"),
    ("restore-judge", {"placement": []}, "no placement"),
    ("maintenance-set", {"targets": ["none"], "until_ms": 0}, "not found"),
    ("maintenance-set", {"targets": [TARGET[-1]], "until_ms": 10**18}, "the end of maintenance"),
    ("maintenance-set", {"targets": [TARGET[-1]], "until_ms": 0, "reason": "a\nb"}, "the reason"),
    ("rollout-request", {"rollout": "none", "request": REQUEST}, "not found"),
    ("rollout-request", {"rollout": "none", "request": {"id": "1", "action": "x"}}, "action"),
    ("rollout-request", {"rollout": "none", "request": [1]}, "what is asked of rollout/none"),
)


async def asked_raw(client, verb, arguments):
    """What the daemon answers, whatever the length of the question."""
    question = json.dumps(arguments)
    if len(question) > 500_000:
        for part in parts_of(verb, question, "raw"):
            answer = await asked_raw(client, PART, part)
        return answer
    answer = await client.request(f"{API_PREFIX}{verb}", question.encode(), timeout=60)
    return json.loads(answer.data)


async def content(client):
    """What people said in the spaces: all objects, without what the centre says of them."""
    found = {}
    for space in ("workloads", "inventory"):
        listing = {"group": "", "resource": "", "namespace": ""}
        asked = {"name": space, "what": "list", "arguments": listing}
        for obj in (await asked_raw(client, "space", asked))["result"]["value"]["objects"]:
            metadata = obj["metadata"]
            said = {name: metadata.get(name) for name in ("labels", "annotations", "managedFields")}
            found[space, obj["kind"], metadata["name"]] = obj.get("spec"), said
    return found


async def test_nonsense_is_refused_by_what_is_wrong_with_it_and_changes_nothing(asking):
    client, _ = asking
    before = await content(client)
    for verb, arguments, why in REFUSED:
        answer = json.dumps(await asked_raw(client, verb, arguments))
        assert why in answer, (verb, answer)
        assert "Internal" not in answer, (verb, answer)
        assert '"batch": "' not in answer or '"batch": ""' in answer, (verb, answer)
    assert await content(client) == before


async def test_what_was_judged_is_written_once_and_by_nobody_elses_name(tree, asking):
    client, _ = asking
    judged = (await asked_raw(client, "apply-judge", said_batch(CONFIG)))["result"]
    [planned] = unpack(judged["page"])
    assert planned["wish"]["manager"] == "leafcast-apply"
    written = await asked_raw(client, "changes-write", {"batch": judged["batch"]})
    assert written["result"]["done"]
    again = await asked_raw(client, "changes-write", {"batch": judged["batch"]})
    assert again["error"]["code"] == "NotJudged"
    await asyncio.to_thread(did, tree, "delete", "configmap", "raw")
