"""The manifests on the page about health are valid, and say what the page says."""

import re

import pytest

from relay.objects.health_rules import annotation_fault, rule_faults
from schemas.api.health_rule import HealthRule
from schemas.kind_check import parse_own_kind
from schemas.objects.manifest_files import load_manifests
from tests.unit.test_tidy import ROOT

PAGE = (ROOT / "docs" / "health.md").read_text()
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS)
def test_every_manifest_is_valid(block):
    for loaded in load_manifests(block, "docs/health.md"):
        parsed = parse_own_kind(loaded.object)
        assert annotation_fault(loaded.object) is None
        assert not isinstance(parsed, HealthRule) or not rule_faults(parsed.program)


def test_the_table_of_a_rule_has_all_its_fields():
    rows = re.findall(r"^\| (`.*?) \|", PAGE.partition("## A rule for a kind")[2], re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)", row)}
    fields = {
        "apiGroup" if it == "api_group" else it
        for it in HealthRule.model_fields["spec"].annotation.model_fields
    }
    assert named - {"true"} == fields
