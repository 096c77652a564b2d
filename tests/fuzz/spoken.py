"""What people write, and what nodes elsewhere answer to them: manifests, kinds, selectors, asks."""

from __future__ import annotations

import asyncio
import base64
import copy
import json
import re
import zlib
from contextlib import suppress
from functools import partial
from typing import Any

from controllers.core.workloads.transforms import TransformFailed, Transforms, transform
from leafcast.ask.api import Api
from leafcast.ask.asked_space import key_form
from leafcast.ask.decode import BadAnswer, read_copies, read_objects, read_orphans, read_proof
from leafcast.ask.destinations import page_of
from leafcast.ask.remote import checked_answer
from leafcast.ask.resource_names import ResourceKinds, UnknownKind
from leafcast.changes.forms import (
    BadBatch,
    TooLargeBatch,
    apply_text,
    pack_change,
    read_apply,
    read_change,
    read_key,
)
from leafcast.cli.commands.label import read_words
from leafcast.cli.options.label_selectors import (
    BadLabelText,
    read_label_selector,
    read_some_label_selector,
)
from leafcast.cli.resource_arguments import BadResourceArguments, read_arguments
from leafcast.denatured_text import denatured_text
from leafcast.explain.waterfall import NodeTrace, next_child, read_trace, waterfall
from leafcast.node.answers import read_selector
from leafcast.node.copies_answer import read_after
from leafcast.show.durations import moment_seconds
from leafcast.show.json_path_output import BadTemplate, read_path, read_template
from leafcast.ui.acts import NoSuchAct, act_from
from relay.core.asks.answers import BadAskArguments as BadAsk
from relay.shell.asker import AskFailed, open_answer
from schemas.api.parsing import parse_kind
from schemas.content.answer_sealing import AnswerKey, sealed_answer
from schemas.objects.json_paths import JsonPath
from schemas.objects.manifest_files import InvalidManifest, load_manifests
from schemas.objects.objects import ObjectKey
from schemas.objects.selectors import LabelSelector
from schemas.objects.yaml_writing import write_yaml
from schemas.records.maintenance import MAINTENANCE, MAINTENANCE_REASON, maintenance_of
from schemas.values import codec
from schemas.values.durations import BadDuration, read_duration
from schemas.values.faults import Faulty, InvalidObject
from schemas.values.identity import NodePath
from schemas.values.refusals import BadSelector, CodecError, RecordRefused
from schemas.values.traceparent import EXAMPLE, read_traceparent
from schemas.values.wire import encode
from tests.fuzz.inputs import text_of
from tests.fuzz.target import Form, Target

PATH = NodePath.parse("/emea")
ANSWER_KEY = AnswerKey(b"a" * 32)
KINDS = ResourceKinds()
JSON_PATH_ROOT = {"a": [{"b": 1}, "c"], "b": {"c": {"d": None}}}
MANIFEST = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: a, labels: &l {app: web}}
data: {"on": yes, x: 0x1F, y: 1e3, z: !!str 7}
---
apiVersion: v1
kind: ConfigMapList
items:
- metadata: {name: b, labels: {<<: *l}}
- &o {metadata: {name: c}, data: {k: |
    text
  }}
"""
PLACEMENT = """\
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: shop}
spec:
  locationSelectors: [{matchLabels: {env: prod}}]
  downsync:
  - apiGroup: ""
    resources: [configmaps]
    namespaces: [shop]
    objectNames: ["*"]
"""
TARGET = """\
apiVersion: edge.kubestellar.io/v2alpha1
kind: SyncTarget
metadata: {name: t, annotations: {leafcast.io/path: /emea/s1}, labels: {env: prod}}
"""
LOCATION = """\
apiVersion: edge.kubestellar.io/v2alpha1
kind: Location
metadata: {name: l}
spec:
  resource: {group: edge.kubestellar.io, version: v2alpha1, resource: synctargets}
  instanceSelector: {matchLabels: {id: t}}
"""
RELEASE = """\
apiVersion: leafcast.io/v1alpha1
kind: LeafcastRelease
metadata: {name: 0.3.0}
spec: {version: 0.3.0, manifest: "{}", path: /emea, waves: [{name: all, percent: 100, soak: 1h}]}
"""


def manifests(data: bytes) -> None:
    """Any text is objects that can be written and read again, or is refused with a place."""
    with suppress(InvalidManifest):
        denatured_text(text_of(data), "any.yaml", "shop")
    try:
        loaded = load_manifests(text_of(data), "any.yaml")
    except InvalidManifest:
        return
    for found in loaded:
        again = load_manifests(write_yaml(found.object), "again.yaml")
        assert [it.object for it in again] == [found.object]
        with suppress(InvalidObject):
            parse_kind(found.object)
        with suppress(CodecError):
            codec.canonical(found.object)


def selector(data: bytes) -> None:
    with suppress(BadAsk):
        read_selector(text_of(data))
    try:
        form = json.loads(data)
    except (ValueError, RecursionError):
        return
    if isinstance(form, dict):
        with suppress(BadSelector):
            found = LabelSelector.from_kubernetes(form)
            assert LabelSelector.from_kubernetes(found.to_kubernetes()) == found
            assert LabelSelector.from_wire(codec.unpack(encode(found))) == found
    with suppress(RecordRefused):
        LabelSelector.from_wire(form)


def taken_off(data: bytes) -> None:
    """Any CustomTransform is read or held to be wrong, and leaves an object that is itself."""
    try:
        said = codec.from_json(data)
        codec.canonical(said)  # No space holds what has no canonical bytes.
    except CodecError:
        return
    transforms, obj = Transforms(), copy.deepcopy(OBJECT)
    spec = {"apiGroup": "apps", "resource": "deployments", "remove": said}
    transforms.put("t", {**TRANSFORM, "spec": spec})
    with suppress(TransformFailed):
        transform(obj, transforms.of(OBJECT_KEY))
        assert (obj["kind"], obj["metadata"]["name"]) == ("Deployment", "web")
    for text in said if isinstance(said, list) else ():
        if isinstance(text, str):
            with suppress(Faulty):
                JsonPath(text).replace(obj, {"a": 1})


OBJECT_KEY = ObjectKey("apps", "deployments", "shop", "web")
OBJECT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop", "labels": {"a/b": "c"}},
    "spec": {"containers": [{"name": "main", "env": [{"name": "a"}]}, {"name": "side"}]},
}
TRANSFORM = {
    "apiVersion": "control.kubestellar.io/v1alpha1",
    "kind": "CustomTransform",
    "metadata": {"name": "t"},
}
REMOVES = (
    ["$.spec.containers[?@.name == 'side' && !@.env].name", "$..env[*]", "$.spec.containers.0"],
    ["$.metadata.labels['a/b']", "$.spec.containers[-1:]", "$[", "$"],
)


def words(data: bytes) -> None:
    """An argument of a command."""
    text = text_of(data)
    with suppress(BadLabelText):
        read_label_selector(text)
        assert not read_some_label_selector(text).is_everything
    with suppress(BadDuration):
        assert read_duration(text) >= 0
    until_ms = maintenance_of({MAINTENANCE: text, MAINTENANCE_REASON: text}).until_ms
    assert until_ms >= 0
    with suppress(BadResourceArguments):
        _, labels = read_words(text.split())
        assert labels
    moment_seconds(text)
    with suppress(BadResourceArguments, UnknownKind):
        read_arguments(KINDS, text.split())
    with suppress(BadTemplate):
        read_template(text).of(JSON_PATH_ROOT)
    with suppress(BadTemplate):
        read_path(text).values(JSON_PATH_ROOT, JSON_PATH_ROOT)


def told(data: bytes) -> None:
    """What a node elsewhere answers, and it may be anyone's."""
    with suppress(AskFailed):
        open_answer(sealed_answer(data, ANSWER_KEY.public), ANSWER_KEY)
    try:
        answer = open_answer(data, ANSWER_KEY)
    except AskFailed:
        return
    with suppress(AskFailed):
        assert isinstance(checked_answer(PATH, answer)["children"], dict)
    with suppress(BadAnswer):
        page_of(PATH, answer)
    proved = partial(read_proof, of_object=True)
    for read in (read_objects, read_orphans, read_proof, proved):
        with suppress(BadAnswer):
            read(answer, "")
    with suppress(BadAnswer):
        said = read_trace(answer)
        assert all(form["path"] == "/" for form in waterfall([NodeTrace("/", said)], 1))
        next_child(said)
    with suppress(BadAnswer):
        copies, _, following = read_copies(answer, PATH, "")
        assert all(copy.path.parent == PATH for copy in copies)
        with suppress(BadAsk):
            read_after(following)


def asked_act(data: bytes) -> None:
    """What a browser asks the page to do is a command that one may paste, or refused."""
    with suppress(NoSuchAct, CodecError):
        assert re.fullmatch(r"leafcast [-\w ./:]+", act_from(data).command)


async def nothing(**_: object) -> None:
    """A verb of a daemon."""


def question(data: bytes) -> None:
    """Whatever is asked, the daemon answers, in JSON."""
    api = Api()
    api.register("verb", nothing)
    answer = asyncio.run(api.answer("lc-api.verb", data))
    assert isinstance(json.loads(answer), dict)


CHILD = {
    "name": "s1",
    "destination": "inv-mb-u",
    "silentSinceMs": 3,
    "inSession": True,
    "left": False,
    "lag": 2,
    "exact": True,
    "states": {"synced": 1},
    "health": {"healthy": 1},
    "exceptions": [{"object": "o", "reason": "r", "count": 1, "path": "/emea/s1"}],
    "counts": {"destinations": 1, "synced": 1, "healthy": 1, "complete": True},
}
ORPHAN = {
    "key": "k",
    "kind": "delta",
    "namespace": "",
    "name": "shop",
    "generation": 7,
    "term": "0" * 16,
}
ANSWERS = (
    {
        "children": {"s1": CHILD},
        "nowMs": 7,
        "objectsApplied": 3,
        "claim": "refused",
        "unclaimed": "this cluster is already the edge /a",
        "leafUrls": ["nats://127.0.0.1:1"],
    },
    {"children": [CHILD], "next": "s1", "known": True},
    {"orphans": [ORPHAN], "children": ["s1"], "next": "k"},
    {"keys": "00", "records": [{"key": "k", "message": "c0"}], "next": "k"},
    {"objects": [{"kind": "Pod", "metadata": {"name": "a"}}], "next": ""},
    {
        "copies": [
            {"path": str(PATH.child("s1")), "asOfMs": 7, "object": {"metadata": {"name": "a"}}}
        ],
        "relays": ["r"],
        "next": "s1/7",
    },
    {
        "nowMs": 9,
        "beganMs": 1,
        "forgotten": 0,
        "generation": 7,
        "held": 7,
        "isEdge": False,
        "stages": {"received": 5, "content complete": 6, "a later one": 7},
        "hops": [2, 3],
        "generations": [7],
        "late": ["s1"],
        "lateCount": 1,
        "lastChild": "",
        "children": ["s1"],
    },
)
FORMS = (
    {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "k", "operator": "Exists"}]},
    [["k", "In", ["v"]]],
)
WORDS = (
    "app=web,tier!=db,env in (a,b),!old",
    "1h30m",
    "2026-01-31T12:00:00Z",
    "deploy/web cm/a",
    '{range .a[?(@.b==1)]}{..c}{"\\n"}{end}{.a[0:2]}',
    ".a[0].b",
)


def change(data: bytes) -> None:
    """What `plan` hands to the centre, in its wrapping and without."""
    for text in (text_of(data), base64.b64encode(zlib.compress(data)).decode()):
        with suppress(BadBatch, TooLargeBatch):
            written, inventory, named = read_change(text)
            assert read_change(pack_change({**written, **inventory}, named))[2] == named


CHANGE = {"changes": [[["", "configmaps", "shop", "c"], {"metadata": {"name": "c"}}]], "named": []}


def batch(data: bytes) -> None:
    """What a command has the centre judge, in its wrapping and without."""
    for text in (text_of(data), base64.b64encode(zlib.compress(data)).decode()):
        with suppress(BadBatch, TooLargeBatch):
            asked = read_apply(text)
            assert read_apply(apply_text(asked)) == asked
            if asked.caller is not None:
                assert read_traceparent(str(asked.caller)) == asked.caller


def object_key(data: bytes) -> None:
    """What names an object in a batch."""
    with suppress(CodecError, BadBatch):
        found = read_key(codec.from_json(data))
        assert read_key(key_form(found)) == found


ACT = {
    "name": "rollout-approve",
    "words": {"rollout": "shop", "wave": "canary"},
    "command": "leafcast rollout approve shop canary",
}
BATCH = {
    "loaded": [
        {"object": {"kind": "ConfigMap"}, "origin": "a.yaml", "line": 1, "notes": ["a note"]}
    ],
    "namespace": "shop",
    "unread": False,
    "placing": {"name": "a", "where": [["a", "In", ["b"]]], "prune_all": False},
    "create_namespaces": True,
    "traceparent": EXAMPLE,
}

TARGETS = {
    "manifests": Target(
        manifests, lambda: [it.encode() for it in (MANIFEST, PLACEMENT, TARGET, LOCATION, RELEASE)]
    ),
    "selector": Target(selector, lambda: [json.dumps(it).encode() for it in FORMS], Form.JSON),
    "taken_off": Target(taken_off, lambda: [json.dumps(it).encode() for it in REMOVES], Form.JSON),
    "words": Target(words, lambda: [it.encode() for it in WORDS], bytes_max=4096),
    "told": Target(told, lambda: [codec.pack(it) for it in ANSWERS], Form.MSGPACK),
    "act": Target(asked_act, lambda: [json.dumps(ACT).encode()], Form.JSON),
    "change": Target(change, lambda: [json.dumps(CHANGE).encode()], Form.JSON),
    "batch": Target(batch, lambda: [json.dumps(BATCH).encode()], Form.JSON),
    "object_key": Target(
        object_key, lambda: [b'["apps", "deployments", "shop", "web"]'], Form.JSON
    ),
    "question": Target(question, lambda: [b'{"a": 1}'], Form.JSON),
}
