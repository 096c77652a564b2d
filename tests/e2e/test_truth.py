"""A centre that tells the truth: what cannot be as it was meant is told at once, by its name."""

import pytest

from tests.awaiting import until
from tests.e2e.program import did

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(240)]

PLACEMENT = """\
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {{name: {name}}}
spec:
  locationSelectors: [{{}}]
  downsync: [{clauses}]
  {more}
"""
SETTINGS = (
    "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}{more}}}, data: {{a: '1'}}}}\n"
)
OX = "{apiVersion: farm.example/v1, kind: Ox, metadata: {name: bill, namespace: farm}, spec: %s}\n"
FARM = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: oxen.farm.example}
spec:
  group: farm.example
  scope: Namespaced
  names: {kind: Ox, plural: oxen}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, required: [age], properties: {age: {type: integer}}}
---
apiVersion: v1
kind: Namespace
metadata: {name: farm}
"""


@pytest.mark.parametrize(
    ("name", "clauses", "said"),
    [
        (
            "typo",
            "{apiGroup: apps, resources: [deploymnets]}",
            'resource type "deploymnets" in group "apps"; did you mean "deployments"?',
        ),
        ("nowhere", "{namespaces: [nonesuch]}", 'namespaces "nonesuch" not found'),
        ("nothing", "{objectNames: [nonesuch]}", "no object is selected: apply some"),
    ],
)
def test_a_placement_of_what_is_not_there_says_so_and_is_waited_for_in_vain(
    tree, apply, name, clauses, said
):
    warned = apply(PLACEMENT.format(name=name, clauses=clauses, more="")).stderr
    assert warned.startswith(f"Warning: edgeplacement.edge.kubestellar.io/{name}: ")
    assert said in warned
    for condition in ("synced", "healthy"):
        assert said in did(tree, "wait", name, "--for", condition, code=1).stderr
    assert "timed out" not in did(tree, "wait", name, "--for", "synced", code=1).stderr
    assert said in did(tree, "describe", "epl", name).stdout
    [_, row] = did(tree, "get", "epl", name).stdout.splitlines()
    assert row.split()[1:5:2] == ["0", "0"]
    did(tree, "delete", "epl", name)


def test_what_comes_later_makes_a_placement_whole(tree, apply):
    apply(PLACEMENT.format(name="later", clauses="{namespaces: [later]}", more=""))
    did(tree, "wait", "later", "--for", "synced", code=1)
    space = "{apiVersion: v1, kind: Namespace, metadata: {name: later}}\n---\n"
    done = apply(space + SETTINGS.format(name="a", more=", namespace: later"))
    assert done.stderr == ""
    did(tree, "wait", "later", "--for", "synced")
    assert "Placements:   later" in did(tree, "describe", "cm", "a", "-n", "later").stdout
    assert "  objects:   1 selected" in did(tree, "status", "later").stdout
    did(tree, "delete", "epl", "later")


def test_a_selector_that_matches_nobody_is_told_of_before_and_holds_up_a_rollout(
    tree, apply, tmp_path
):
    apply(
        "{apiVersion: v1, kind: Namespace, metadata: {name: slip}}\n---\n"
        + SETTINGS.format(name="slip", more=", namespace: slip")
    )
    placement = PLACEMENT.format(name="slip", clauses="{namespaces: [slip]}", more="")
    empty = "spec.locationSelectors[1] (rigeon=x) matches no Location that has a SyncTarget"
    both = placement.replace("[{}]", "[{}, {matchLabels: {rigeon: x}}]")
    (tmp_path / "both.yaml").write_text(both)
    assert f"Note: edgeplacement/slip: {empty}" in _planned(tree, tmp_path / "both.yaml")
    assert f"edgeplacement.edge.kubestellar.io/slip: {empty}" in apply(both).stderr
    did(tree, "wait", "slip", "--for", "synced")
    [told] = _conditions(tree, "epl", "slip", "DestinationsSelected")
    assert (told["status"], told["message"]) == ("False", empty)
    apply(placement)
    did(tree, "wait", "slip", "--for", "synced")
    until(lambda: not _conditions(tree, "epl", "slip", "DestinationsSelected"), "still said")

    nobody = "no destination of the placement has rign=canary"
    said = f'wave "canary" admits nobody: {nobody}; correct the labels'
    (tmp_path / "rollout.yaml").write_text(ROLLOUT)
    assert f"Note: rollout/slip: {said}" in _planned(tree, tmp_path / "rollout.yaml")
    assert f"Warning: rollout/slip: {said}" in apply(ROLLOUT).stderr
    until(lambda: _conditions(tree, "rollout", "slip", "EmptyWaves"), "not said")
    changed = SETTINGS.format(name="slip", more=", namespace: slip").replace("'1'", "'2'")
    apply(changed)
    waits = did(tree, "wait", "slip", "--for", "rolled-out", code=1).stderr
    assert nobody in waits
    assert "leafcast rollout approve slip canary" in waits
    [site] = [line.split()[0] for line in did(tree, "get", "loc").stdout.splitlines()[1:2]]
    did(tree, "label", "synctarget", site, "rign=canary")
    did(tree, "wait", "slip", "--for", "rolled-out")
    until(lambda: not _conditions(tree, "rollout", "slip", "EmptyWaves"), "still said")
    did(tree, "label", "synctarget", site, "rign-")
    did(tree, "delete", "rollout", "slip")
    did(tree, "delete", "epl", "slip")


ROLLOUT = """\
apiVersion: leafcast.io/v1alpha1
kind: Rollout
metadata: {name: slip}
spec:
  placement: {name: slip}
  waves:
  - {name: canary, selector: {matchLabels: {rign: canary}}}
  - {name: rest, percent: 100}
"""


def _planned(tree, file):
    done = tree.run("plan", "-f", str(file))
    return f"{done.stdout}{done.stderr}"


def _conditions(tree, kind, name, type_):
    status = tree.json("get", kind, name).get("status") or {}
    return [item for item in status.get("conditions", ()) if item["type"] == type_]


def test_what_no_placement_selects_is_told_to_stay(tree, apply):
    assert "Note: no placement selects" in apply(SETTINGS.format(name="alone", more="")).stderr
    assert apply("{apiVersion: v1, kind: Namespace, metadata: {name: alone}}").stderr == ""
    told = did(tree, "describe", "cm", "alone").stdout
    assert "Placements:   <none> (it stays at the centre)" in told


def test_a_template_of_what_no_destination_has_is_told_of_at_once(tree, apply):
    asks = ", annotations: {control.kubestellar.io/expand-templates: 'true', a: '%s'}"
    said = apply(
        SETTINGS.format(name="asks", more=asks % "{{ .nope }} at {{ .clusterName }}")
    ).stderr
    assert (
        'Warning: configmap/asks: metadata.annotations.a: no destination has a property "nope": '
        "its placements are frozen everywhere;"
    ) in said
    assert said.count("no destination has") == 1
    said = apply(SETTINGS.format(name="asks", more=asks % "{{ .region }}")).stderr
    assert "no destination has" not in said


def test_a_placement_made_of_files_follows_them_and_takes_nothing_else(tree, apply):
    """Another project in the same namespace goes elsewhere, and much that leaves is asked for."""
    apply("{apiVersion: v1, kind: Namespace, metadata: {name: vendor}}")
    settings = [SETTINGS.format(name=f"v{at}", more=", namespace: vendor") for at in range(24)]
    apply(SETTINGS.format(name="of-others", more=", namespace: vendor"))
    done = apply("---\n".join(settings), "--place", "vendor", "--where", "nonesuch=x")
    assert "edgeplacement.edge.kubestellar.io/vendor created" in done.stdout
    assert "it goes nowhere" in done.stderr
    done = apply("---\n".join(settings), "--place", "vendor", "--where", "!nonesuch")
    did(tree, "wait", "vendor", "--for", "synced")
    [site, *_] = (line.split()[0] for line in did(tree, "get", "loc").stdout.splitlines()[1:])
    site = f"/{site.replace('-site', '/site')}"
    there = did(tree, "get", "cm", "-n", "vendor", "--at", site, "-o", "name").stdout.split()
    assert sorted(there) == sorted(f"configmap/v{at}" for at in range(24))

    said = apply("---\n".join(settings[:12]), "--place", "vendor", code=1).stderr
    assert "12 objects (vendor/configmaps/v12, " in said
    assert "say --prune-all" in said
    said = apply(SETTINGS.format(name="new", more=""), "--place", "vendor", code=1).stderr
    assert "of 25 are in the files no more" in said
    assert apply("", "--place", "vendor", code=1).stderr.startswith("error: no objects in")

    done = apply("---\n".join(settings[:20]), "--place", "vendor", "--confirm-removals")
    assert "left epl/vendor, being in the files no more" in done.stderr
    apply("---\n".join(settings[:2]), "--place", "vendor", "--prune-all")
    did(tree, "wait", "vendor", "--for", "synced")
    assert "  objects:   3 selected" in did(tree, "status", "vendor").stdout
    assert len(did(tree, "get", "cm", "-n", "vendor", "-o", "name").stdout.split()) == 25
    apply(PLACEMENT.format(name="by-hand", clauses="{namespaces: [vendor]}", more=""))
    said = apply(settings[0], "--place", "by-hand", code=1).stderr
    assert "selects objects otherwise than by names (downsync[0])" in said
    did(tree, "delete", "epl", "vendor", "by-hand", "--confirm-removals")
    gone = did(tree, "wait", "vendor", "epl/by-hand", "--for", "delete").stdout
    assert gone.splitlines() == [
        "vendor condition met",
        "edgeplacement.edge.kubestellar.io/by-hand condition met",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "{apiVersion: apps/v1, kind: Deploymnet, metadata: {name: a}}",
            'no matches for kind "Deploymnet" in version "apps/v1"; did you mean "Deployment"?',
        ),
        (
            "{apiVersion: extensions/v1beta1, kind: Deployment, metadata: {name: a}}",
            'no matches for kind "Deployment" in version "extensions/v1beta1"; write apps/v1',
        ),
        (SETTINGS.format(name="a", more=", namespace: x"), 'configmap/a: namespaces "x" not found'),
        (
            (OX % "{}").replace("farm.example", "wild.example"),
            'no matches for kind "Ox" in version "wild.example/v1"',
        ),
        (f"{OX % '{}'}---\n{FARM}", "ox.farm.example/bill: spec.age: Required value"),
        (
            f"{OX % '{age: x}'}---\n{FARM}",
            'spec.age: Invalid value: "string": spec.age in body must be of type integer',
        ),
    ],
)
def test_what_is_not_served_is_refused_and_nothing_is_applied(tree, apply, text, said):
    refused = apply(f"{SETTINGS.format(name='fine', more='')}---\n{text}", code=1)
    assert said in refused.stderr
    assert refused.stdout == ""
    did(tree, "get", "cm", "fine", code=1)


def test_a_batch_brings_what_it_needs_in_any_order(tree, apply):
    said = apply(f"{OX % '{age: 3, horns: 2}'}---\n{FARM}")
    assert said.stdout.splitlines()[-1] == "ox.farm.example/bill created"
    kept = did(tree, "get", "oxen", "bill", "-n", "farm", "-o", "yaml").stdout
    assert "age: 3" in kept
    assert "horns" not in kept
    assert 'Warning: ox.farm.example/bill: unknown field "spec.horns"' in said.stderr


def test_what_lies_at_the_centre_does_not_pretend_to_run(tree, apply):
    apply("{apiVersion: apps/v1, kind: Deployment, metadata: {name: w}, spec: {replicas: 2}}")
    done = did(tree, "get", "deploy", "w")
    assert done.stdout.splitlines()[1].split()[:4] == ["w", "-/2", "-", "-"]
    assert done.stderr.startswith("Note: nothing runs at the centre; see: leafcast status")
