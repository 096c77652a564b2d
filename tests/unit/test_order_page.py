"""The manifests on the page about order are valid, and say what the page says."""

import re

import pytest

from schemas.api.placement import EdgePlacement
from schemas.kind_check import parse_own_kind
from schemas.objects.manifest_files import load_manifests
from schemas.objects.order import WAVE, wave_fault
from schemas.records.placing import dependencies_of, move_seconds
from tests.unit.test_tidy import ROOT

PAGE = (ROOT / "docs" / "order.md").read_text()
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS)
def test_every_manifest_is_valid(block):
    for loaded in load_manifests(block, "docs/order.md"):
        parse_own_kind(loaded.object)
        assert wave_fault(loaded.object) is None


def test_its_annotations_are_those_that_are_read():
    objects = [it.object for block in BLOCKS for it in load_manifests(block, "docs/order.md")]
    said = [it["metadata"].get("annotations", {}) for it in objects]
    assert {each[WAVE] for each in said if WAVE in each} == {"-1", "1"}
    placements = [made for it in objects if isinstance(made := parse_own_kind(it), EdgePlacement)]
    annotations = [it.metadata.annotations for it in placements]
    assert [dependencies_of(each) for each in annotations] == [("platform", "crds"), ()]
    assert [move_seconds(each) for each in annotations] == [None, 1800.0]
