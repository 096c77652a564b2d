"""Health and actions for Argo CD, run as it runs them, on its own form of test data; and Flux's."""

import re
from typing import get_args

import cel
import pytest
import yaml

from schemas.api.parsing import parse_kind
from schemas.api.rollout_request import read_rollout_request
from schemas.api.rollout_status import Phase
from schemas.crds.definitions import custom_resource_definitions
from schemas.records.hold_reasons import AWAITING_APPROVAL, ROLLOUT_PAUSED
from tests.argocd import CUSTOMIZATIONS, FOLDER, health, read, run, settings

KINDS = sorted(path.parent for path in CUSTOMIZATIONS.glob("*/*/health.lua"))
ROLLOUT = CUSTOMIZATIONS / "leafcast.io" / "Rollout"
ACTIONS = read(ROLLOUT / "actions" / "action_test.yaml")
FLUX = read(FOLDER.parent / "flux" / "kustomization.yaml")
HEALTH_OF = {"current": "Healthy", "failed": "Degraded"}


def cases():
    for folder in KINDS:
        for case in read(folder / "health_test.yaml")["tests"]:
            yield pytest.param(folder, case, id=f"{folder.name}-{case['inputPath'][9:-5]}")


def columns(crd):
    return crd["spec"]["versions"][0]["additionalPrinterColumns"]


def test_each_kind_with_a_status_that_can_be_ready_has_a_script_and_all_have_one():
    ready = {
        (crd["spec"]["group"], crd["spec"]["names"]["kind"])
        for crd in custom_resource_definitions()
        if any(each["name"] == "Ready" for each in columns(crd))
    }
    assert {(folder.parent.name, folder.name) for folder in KINDS} == ready
    assert len({(folder / "health.lua").read_text() for folder in KINDS}) == 1


@pytest.mark.parametrize(("folder", "case"), [*cases()])
def test_an_object_is_as_healthy_as_it_says(folder, case):
    obj = read(folder / case["inputPath"])
    parse_kind(obj)
    told = case["healthStatus"]
    assert health(obj) == (told["status"], told["message"])


def test_a_reason_that_a_person_may_take_their_time_over_is_one_that_there_is():
    script = (ROLLOUT / "health.lua").read_text()
    named = set(re.findall(r"(\w+) = true", script))
    for each in FLUX["spec"]["healthCheckExprs"]:
        [listed] = re.findall(r"c\.reason in \[(.*?)\]", each["inProgress"])
        named |= {word.strip(" '") for word in listed.split(",")}
    assert named == {ROLLOUT_PAUSED, AWAITING_APPROVAL, "Paused"}
    assert named - {ROLLOUT_PAUSED} <= set(get_args(Phase))


def test_an_object_without_any_status_is_not_taken_for_done():
    for folder in KINDS:
        obj = {"kind": folder.name, "apiVersion": f"{folder.parent.name}/v1", "metadata": {}}
        assert health(obj)[0] == "Progressing"
        assert health({**obj, "status": {}})[0] == "Progressing"
        assert health({**obj, "status": {"conditions": []}})[0] == "Progressing"


@pytest.mark.parametrize("case", ACTIONS["discoveryTests"], ids=lambda case: case["inputPath"])
def test_only_what_can_be_done_now_can_be_asked(case):
    offered = run(ROLLOUT / "actions" / "discovery.lua", read(ROLLOUT / case["inputPath"]))
    found = [{"name": name, "disabled": offered[name]["disabled"]} for name in sorted(offered)]
    assert found == case["result"]
    assert {path.parent.name for path in ROLLOUT.glob("actions/*/action.lua")} == set(offered)


@pytest.mark.parametrize("case", ACTIONS["actionTests"], ids=lambda case: case["action"])
def test_an_action_asks_the_rollout_what_leafcast_understands(case):
    script = ROLLOUT / "actions" / case["action"] / "action.lua"
    changed = run(script, read(ROLLOUT / case["inputPath"]))
    assert changed == read(ROLLOUT / case["expectedOutputPath"])
    asked = changed["metadata"]["annotations"]["leafcast.io/rollout-request"]
    assert read_rollout_request(asked).action == case["action"]
    again = run(script, {**changed, "metadata": {**changed["metadata"], "resourceVersion": "4712"}})
    assert again["metadata"]["annotations"]["leafcast.io/rollout-request"] != asked


def test_the_patch_for_argo_cds_settings_holds_just_these_scripts():
    # If it does not: python -m tests.argocd > deploy/argocd/argocd-cm.yaml
    found = read(FOLDER / "argocd-cm.yaml")
    assert found == settings()
    key = "resource.customizations.actions.leafcast.io_Rollout"
    told = yaml.safe_load(found["data"][key])
    assert [each["name"] for each in told["definitions"]] == sorted(
        path.parent.name for path in ROLLOUT.glob("actions/*/action.lua")
    )


@pytest.mark.parametrize(("folder", "case"), [*cases()])
def test_flux_takes_for_current_what_is_healthy_and_fails_on_what_is_degraded(folder, case):
    exprs = [it for it in FLUX["spec"]["healthCheckExprs"] if it["kind"] == folder.name]
    if not exprs:
        return
    obj = read(folder / case["inputPath"])
    said = case["healthStatus"]["status"]
    # It looks at them in this order.
    order = ("inProgress", "failed", "current")
    first = next((name for name in order if holds(exprs[0][name], obj)), "")
    if "reason: Degraded" in (folder / case["inputPath"]).read_text():
        said = "Progressing"
    assert HEALTH_OF.get(first, "Progressing") == ("Progressing" if said == "Suspended" else said)


def holds(expression, obj):
    return cel.evaluate(expression, {name: obj.get(name, {}) for name in ("metadata", "status")})
