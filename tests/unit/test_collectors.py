"""StatusCollectors as users write them, and as the centre keeps them."""

import pytest

from controllers.core.workloads.collectors import Collectors
from schemas.api.parsing import parse_wish
from schemas.crds.definitions import custom_resource_definitions
from schemas.crds.structural import schema_faults
from schemas.reports.collectors import LIMIT_MAX
from schemas.values.faults import InvalidObject

SCHEMA = next(
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for crd in custom_resource_definitions()
    if crd["spec"]["names"]["kind"] == "StatusCollector"
)


def collector(**spec):
    spec = spec or {"combinedFields": [{"name": "n", "type": "COUNT"}]}
    version = "control.kubestellar.io/v1alpha1"
    metadata = {"name": "ready"}
    return {"apiVersion": version, "kind": "StatusCollector", "metadata": metadata, "spec": spec}


def of_quantile(text):
    field = {"name": "q", "type": "QUANTILE", "subject": "1", "quantile": text}
    return collector(combinedFields=[field])


@pytest.mark.parametrize("text", ["0", "1", "0.5", "0.95", "0.999999", "1.0"])
def test_a_quantile_is_a_part_of_1(text):
    known = Collectors()
    known.put("ready", of_quantile(text))
    assert not schema_faults(of_quantile(text), SCHEMA)
    assert known.values["ready"].combined[0].quantile == text


@pytest.mark.parametrize(
    "text",
    ["NaN", "sNaN", "Infinity", "-0", "1.1", "1e-999999999", "0.1234567", "\u0660.5", ""],
)
def test_a_quantile_that_is_no_part_of_1_makes_the_collector_invalid(text):
    known = Collectors()
    known.put("ready", of_quantile(text))
    assert schema_faults(of_quantile(text), SCHEMA)
    assert not known.values
    assert "is no part of 1; write it as" in known.invalid["ready"][0]


def test_a_limit_beyond_the_greatest_counts_as_that():
    for limit in (LIMIT_MAX, 5000, 2**63 - 1):
        obj = collector(select=[{"name": "who", "def": "inventory.name"}], limit=limit)
        assert not schema_faults(obj, SCHEMA)
        assert parse_wish(obj).program.limit == LIMIT_MAX


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_that_keeps_nothing_is_refused(limit):
    with pytest.raises(InvalidObject, match=r"spec\.limit"):
        parse_wish(collector(select=[{"name": "who", "def": "inventory.name"}], limit=limit))


def test_a_collector_that_is_terminating_counts_as_gone():
    known = Collectors()
    known.put("ready", collector())
    obj = collector()
    obj["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    known.put("ready", obj)
    assert not known.values
    assert not known.objects
