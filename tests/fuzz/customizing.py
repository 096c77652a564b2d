"""What people say of customization, and what of it travels: it makes an object, or an error."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from controllers.core.workloads.customizers import CUSTOMIZERS, Customizers
from relay.objects.customization import (
    CustomizationFailed,
    SentCustomizer,
    SentReplacement,
    customize,
)
from relay.objects.expansion import Syntax
from relay.syncer.customized_content import customized
from schemas.objects.objects import ObjectKey
from schemas.records.properties import read_properties
from schemas.values import codec
from schemas.values.faults import Faulty
from schemas.values.refusals import CodecError
from tests.fuzz.target import Form, Target

KEY = ObjectKey("", "configmaps", "shop", "c")
BY = ObjectKey(*CUSTOMIZERS, "shop", "by")
OBJECT = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {
        "name": "c",
        "namespace": "shop",
        "annotations": {
            "edge.kubestellar.io/customizer": "by",
            "edge.kubestellar.io/expand-parameters": "true",
            "control.kubestellar.io/expand-templates": "true",
        },
    },
    "data": {"a": "%(zone) {{ .zone }} %%", "b": ["%(zone"]},
}
CUSTOMIZER = {
    "apiVersion": "edge.kubestellar.io/v2alpha1",
    "kind": "Customizer",
    "metadata": {"name": "by", "namespace": "shop"},
    "replacements": [{"path": "$.data.c[?@.d==1]", "value": "1"}, {"path": "$..a", "value": "{}"}],
}
VALUES = {"zone": "north", "clusterName": "s-001"}
WRITTEN = SentReplacement("$.data.%(zone)", '"{{ .zone }}"')
TRAVELLING = SentCustomizer("shop/by", Syntax(True, True), (WRITTEN,))


def said(data: bytes) -> None:
    """An object, a Customizer and a ConfigMap, as people write them."""
    try:
        form = json.loads(data, parse_constant=_no_json)
    except (ValueError, RecursionError):
        return
    match form:
        case [dict(obj), dict(by), dict(config_map)]:
            pass
        case _:
            return
    with suppress(Faulty):
        read_properties(config_map)
    known = Customizers()
    if isinstance(by.get("metadata"), dict):
        known.put(BY, by)
    known.select("shop", KEY, obj)
    casting = known.casting(KEY, obj)
    assert known.missing("shop") or not known.lacks(KEY, obj)
    if casting.template and not casting.faults:
        _made(obj, known.asked_by(KEY, obj))


def _no_json(text: str) -> Any:
    raise ValueError(text)


def _made(obj: dict[str, Any], by: SentCustomizer | None) -> None:
    with suppress(CustomizationFailed):
        made = customize(KEY, obj, by, VALUES, "s-001").object
        assert made["metadata"].get("name") == obj["metadata"].get("name")


def travelling(data: bytes) -> None:
    """The bytes of a template, and those of a Customizer."""
    for plain, by in ((codec.canonical(OBJECT), data), (data, TRAVELLING.encode()), (data, None)):
        with suppress(CustomizationFailed, CodecError):
            customized(KEY, plain, by, VALUES, "s-001")


def seeds() -> list[bytes]:
    config_map = {"data": {"a": "b"}, "binaryData": {"c": "ZA=="}}
    return [json.dumps([OBJECT, CUSTOMIZER, config_map]).encode()]


TARGETS = {
    "customization": Target(said, seeds, Form.JSON),
    "customizer": Target(
        travelling, lambda: [TRAVELLING.encode(), codec.canonical(OBJECT)], Form.MSGPACK
    ),
}
