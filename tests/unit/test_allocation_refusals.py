"""What is said of an object that a cluster refuses for what it alone hands out."""

import pytest

from relay.objects.allocation_refusals import with_remedy
from schemas.objects.objects import ObjectKey

SERVICE = ObjectKey("", "services", "shop", "web")
JOB = ObjectKey("batch", "jobs", "shop", "tick")
REFUSED = {
    "taken": (
        SERVICE,
        (
            'Service "web" is invalid: spec.clusterIPs: Invalid value: ["10.0.0.191"]: failed to '
            "allocate IP 10.0.0.191: provided IP is already allocated"
        ),
    ),
    "port": (
        SERVICE,
        (
            'Service "web" is invalid: spec.ports[0].nodePort: Invalid value: 80: provided port is '
            "not in the valid range. The range of valid ports is 30000-32767"
        ),
    ),
    "family": (
        SERVICE,
        (
            'Service "web" is invalid: spec.ipFamilies[0]: Invalid value: "IPv6": not configured '
            "on this cluster"
        ),
    ),
    "health check": (
        SERVICE,
        (
            "Internal error occurred: failed to allocate requested HealthCheck NodePort 30080: "
            "provided port is already allocated"
        ),
    ),
    "selector": (JOB, 'Job "tick" is invalid: spec.selector: Required value'),
}


@pytest.mark.parametrize("case", REFUSED)
def test_the_remedy_stands_behind_the_words_of_the_server(case):
    key, message = REFUSED[case]
    said = with_remedy(key, message)
    begin = message.partition(" is invalid: ")[2] or message
    assert said.startswith(begin)
    assert said.endswith("say `cleaning: KubeStellar` in the placement")


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (SERVICE, 'Service "web" is invalid: spec.ports[0].port: Invalid value: 0: must be …'),
        (ObjectKey("apps", "deployments", "shop", "web"), "spec.selector: Required value"),
    ],
)
def test_other_refusals_are_left_as_they_are(key, message):
    assert with_remedy(key, message) == message
