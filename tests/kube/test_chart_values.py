"""deploy/helm/leafcast: each value does something for each role, or is refused by its name."""

import copy
import json

import pytest
import yaml

from tests.kube.build import HELM4
from tests.kube.helm_program import CHART, SYSTEM, Helm
from tests.unit.test_chart_page import SCHEMA, leaves

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(180)]

MONITORS = "--api-versions=monitoring.coreos.com/v1/ServiceMonitor"
FORMS = [
    {"role": "edge"},
    {"role": "relay"},
    {"role": "centre"},
    {"role": "relay", "members": 3},
    {"role": "centre", "members": 3},
]
PEERS = [{"ipBlock": {"cidr": "10.0.0.0/8"}}]
OTHERS = {
    "image.digest": "sha256:" + "0" * 64,
    "image.pullPolicy": "Always",
    "image.pullSecrets": ["mine"],
    "logFormat": "text",
    "join.proxy": "http://proxy.example:3128",
    "join.durability": "disk",
    "listen.port": 7522,
    "listen.issuer": {"name": "internal"},
    "listen.authorities": True,
    "service.type": "NodePort",
    "service.annotations": {"a": "b"},
    "service.loadBalancerSourceRanges": ["10.0.0.0/8"],
    "rbac.create": False,
    "rbac.namespaces": ["shop"],
    "persistence.size": "3Gi",
    "resources": {"limits": {"cpu": "3"}},
    "serverResources": {"limits": {"cpu": "3"}},
    "networkPolicy.enabled": False,
    "networkPolicy.children": PEERS,
    "networkPolicy.egress": [{"to": PEERS}],
    "podDisruptionBudget.enabled": False,
    "podDisruptionBudget.maxUnavailable": 0,
    "monitoring.enabled": False,
    "monitoring.from": PEERS,
    "monitoring.interval": "1m",
    "monitoring.labels": {"a": "b"},
    "podAnnotations": {"a": "b"},
    "podLabels": {"a": "b"},
    "nodeSelector": {"a": "b"},
    "tolerations": [{"operator": "Exists"}],
    "affinity": {"podAffinity": {}},
}
"""Another value than that of values.yaml; of all others the text `other`."""
SWITCHES = [
    ({"role": "relay", "networkPolicy": {"enabled": False}}, ("networkPolicy.", "monitoring.f")),
    ({"role": "relay", "monitoring": {"enabled": False}}, ("monitoring.",)),
    ({"role": "edge", "podDisruptionBudget": {"enabled": False}}, ("podDisruptionBudget.",)),
    ({"role": "edge", "rbac": {"create": False}}, ("rbac.",)),
    ({"role": "centre", "hub": {"secret": ""}}, ("hub.key",)),
    ({"role": "relay", "service": {"type": "NodePort"}}, ("service.",)),
    ({"role": "relay", "service": {"type": "LoadBalancer"}}, ("service.",)),
    ({"role": "centre", "members": 3, "service": {"type": "LoadBalancer"}}, ("service.",)),
    ({"role": "relay", "members": 3, "listen": {"host": "a.example"}}, ("service.", "listen.")),
    ({"role": "relay", "listen": {"issuer": {"name": "internal"}}}, ("listen.",)),
]
"""What puts out others, and what those may be."""


@pytest.fixture(scope="module")
def helm4(tmp_path_factory):
    return Helm(HELM4, tmp_path_factory.mktemp("helm"))


def other(values, name):
    """The same values with one that is another."""
    made = copy.deepcopy(values)
    *above, last = name.split(".")
    place = made
    for word in above:
        place = place.setdefault(word, {})
    place[last] = OTHERS.get(name, "other")
    return made


def is_idle(helm, folder, values, name):
    """Whether what is made is the same with another value; one that is refused is named."""
    file = folder / "values.yaml"

    def rendered(of):
        file.write_text(yaml.safe_dump(of))
        return helm.run("template", "x", CHART, "-n", SYSTEM, "-f", file, MONITORS)

    fine, before = rendered(values)
    assert fine, before
    fine, after = rendered(other(values, name))
    if not fine:
        assert name in after
        assert "execution error" in after
    return after == before


def idle(helm, folder, values, names):
    return [name for name in names if is_idle(helm, folder, values, name)]


@pytest.mark.parametrize("values", FORMS, ids=json.dumps)
def test_no_value_is_taken_that_does_nothing_for_a_role(helm4, tmp_path, values):
    names = [name for name in leaves(SCHEMA) if name not in ("role", "members")]
    assert {*OTHERS} <= {*names}
    assert idle(helm4, tmp_path, values, names) == []


@pytest.mark.parametrize(("values", "starts"), SWITCHES, ids=json.dumps)
def test_no_value_is_taken_that_another_one_puts_out(helm4, tmp_path, values, starts):
    names = [name for name in leaves(SCHEMA) if name.startswith(starts)]
    # What is the switch itself is as it is said.
    names = [name for name in names if other(values, name) != values]
    assert names
    assert idle(helm4, tmp_path, values, names) == []
