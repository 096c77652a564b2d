"""deploy/helm/leafcast: text stays text, also where YAML would read a number, a date or a truth."""

import json
import re

import pytest
import yaml

from tests.kube.build import HELM4
from tests.kube.helm_program import CHART, Helm
from tests.unit.test_chart_page import SCHEMA

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(180)]

PLAIN = "qqq"
WORDS = ("123", "0123", "1e3", "0x1f", "2024-1-1", "true", "on", "y", "null")
APIS = (
    "--api-versions=monitoring.coreos.com/v1/ServiceMonitor",
    "--api-versions=cert-manager.io/v1/Certificate",
)


def texts(word):
    """For each kind of node, every value that is text, as this word."""
    pairs, peers = {word: word}, [{"podSelector": {"matchLabels": {word: word}}}]
    for_all = {
        "nameOverride": word,
        "fullnameOverride": word,
        "image": {"repository": word, "tag": word, "pullSecrets": [word]},
        "persistence": {"storageClass": word},
        "networkPolicy": {"egress": [{"to": peers}]},
        "monitoring": {"from": peers, "labels": pairs},
        "podAnnotations": pairs,
        "podLabels": pairs,
        "nodeSelector": pairs,
        "tolerations": [{"key": word, "value": word}],
        "priorityClassName": word,
    }
    token = {"secret": word, "key": word}
    way = {"join": {**token, "proxySecret": word}}
    reached = {"service": {"annotations": pairs}}
    listen = {"host": word, "issuer": {"name": word, "group": word}}
    own = {"host": word, "certificateSecret": word}
    three = {"members": 3, **reached, "listen": {"host": word}}
    hub = {"secret": word, "key": word}
    proxy = {"join": {**token, "proxy": f"http://{word}:3128"}}
    kinds = (
        {"role": "edge", "rbac": {"namespaces": [word]}, **way},
        {"role": "edge", **proxy},
        {"role": "relay", "listen": listen, **reached, **way},
        {"role": "relay", "listen": own, **way},
        {"role": "relay", "join": token, **three},
        {"role": "centre", "listen": {"host": word}, "hub": hub, **reached},
        {"role": "centre", "join": {"secret": word}, "hub": hub, **three},
    )
    return [{**for_all, **kind} for kind in kinds]


def paths(values, above=""):
    for key, inner in values.items():
        if isinstance(inner, dict):
            yield from paths(inner, f"{above}{key}.")
        yield above + key


def text_values(form, above=""):
    """The names of the values that are text of any words."""
    for name, inner in form["properties"].items():
        if inner.get("type") == "string":
            yield above + name, inner.get("pattern", "")
        elif inner.get("properties"):
            yield from text_values(inner, f"{above}{name}.")


@pytest.fixture(scope="module")
def helm4(tmp_path_factory):
    return Helm(HELM4, tmp_path_factory.mktemp("helm"))


def unquoted(helm, folder, values, release, word):
    """What stands there without quotation marks and begins with a word."""
    file = folder / "values.json"
    # As YAML Python writes 1e3 without quotation marks.
    file.write_text(json.dumps(values))
    where = "leafcast-system" if values["role"] == "edge" else release
    shown = helm("template", release, CHART, "-n", where, "-f", file, *APIS)
    scalars = [it for it in yaml.parse(shown) if isinstance(it, yaml.ScalarEvent)]
    assert len([it for it in scalars if it.style and it.value.startswith(release)]) > 20
    return sorted(it.value for it in scalars if not it.style and it.value.startswith(word))


@pytest.mark.parametrize("word", WORDS)
def test_no_text_becomes_something_else(helm4, tmp_path, word):
    for plain, values in zip(texts(PLAIN), texts(word), strict=True):
        at_first = unquoted(helm4, tmp_path, plain, PLAIN, word)
        assert unquoted(helm4, tmp_path, values, word, word) == at_first


def test_each_text_value_is_among_them():
    tried = {path for values in texts(PLAIN) for path in paths(values)}
    free = {name for name, pattern in text_values(SCHEMA) if re.search(pattern, "123")}
    # It is a size in any case.
    assert free - tried == {"persistence.size"}
