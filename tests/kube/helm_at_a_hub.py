"""Helm 3 and 4 at a hub, with charts that have hooks, definitions and what would act there.

`test_end_to_end` runs these in its tree: a hub and two edges on API servers.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from leafcast.local.kube_servers.binaries import cache_folder, named_folders
from tests.awaiting import until
from tests.kube.build import HELM3, HELM4
from tests.kube.live_tree import EVERYWHERE, WAIT, namespace

__all__ = [
    "test_helm_3_installs_with_hooks_through_a_hub_and_its_own_notes_stay_there",
    "test_helm_4_waits_until_all_edges_have_it_with_hooks_and_several_destinations",
    "test_what_kustomize_makes_goes_through_the_filter_to_a_hub",
]
PLUGIN = Path(__file__).resolve().parents[2] / "deploy" / "helm-denature"
SITE_1 = "[{matchLabels: {id: region-1-site-1}}]"
BROUGHT = ["job.batch/before", "till.helm.example.org/one"]
CHART = {
    "Chart.yaml": "{apiVersion: v2, name: shop, version: 1.0.0}",
    "values.yaml": "{image: 'nginx:1', acting: false, password: sesame}",
    "crds/tills.yaml": """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tills.helm.example.org}
spec:
  group: helm.example.org
  names: {kind: Till, plural: tills}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {size: {type: integer}}}}
""",
    "templates/shop.yaml": """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "{{ .Values.image }}"}]}
---
apiVersion: helm.example.org/v1
kind: Till
metadata: {name: one}
spec: {size: 3}
""",
    "templates/hooks.yaml": """
apiVersion: batch/v1
kind: Job
metadata:
  name: before
  annotations:
    helm.sh/hook: pre-install,pre-upgrade
    helm.sh/hook-delete-policy: before-hook-creation
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: after
  annotations:
    helm.sh/hook: post-install,post-upgrade
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
spec:
  ttlSecondsAfterFinished: 0
  template: {spec: {restartPolicy: OnFailure, containers: [{name: c, image: x}]}}
""",
    "templates/acting.yaml": """
{{- if .Values.acting }}
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: web}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: "{{ .Release.Namespace }}-guard", labels: {app: guard}}
webhooks:
- name: guard.helm.example.org
  clientConfig: {url: "https://127.0.0.1:1/guard"}
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  namespaceSelector: {matchLabels: {guarded: "true"}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
{{- end }}
""",
}


class Helm:
    """One version of Helm at the hub of a tree, with a chart."""

    def __init__(self, tree, program: str, folder: Path) -> None:
        places = os.pathsep.join(map(str, (*named_folders(), cache_folder())))
        found = shutil.which(program, path=places)
        if found is None:
            if shutil.which("go"):
                pytest.fail(f"run `make kube` first, once: it builds {program}", pytrace=False)
            pytest.skip(f"NOT RUN: no {program} on this machine, and no Go to build it with")
        self._program = found
        self.tree, self.chart = tree, folder / "chart"
        for name, text in CHART.items():
            file = self.chart / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        own = {f"HELM_{name}_HOME": str(folder / name) for name in ("CACHE", "CONFIG", "DATA")}
        path = os.pathsep.join((str(program_folder(folder)), os.environ["PATH"]))
        self._environment = {**tree.kubectl_environment, **own, "PATH": path}

    def __call__(self, *words: str) -> str:
        """Run it; what it said. It has to succeed."""
        at = (f"--kubeconfig={self.tree.kubeconfig}", "--kube-context=centre")
        done = subprocess.run(
            [self._program, *at, *words],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert not done.returncode, f"helm {' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout

    def release(self, verb: str, where: str, *options: str) -> str:
        return self(verb, "shop", str(self.chart), "-n", where, "--timeout=60s", *options)


def program_folder(folder: Path) -> Path:
    """A folder with `leafcast` in it, as PATH has one."""
    file = folder / "bin" / "leafcast"
    file.parent.mkdir()
    file.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m leafcast "$@"\n')
    file.chmod(0o755)
    return file.parent


def place(tree, where: str, sites: str, asked: str = "", in_clause: str = "") -> None:
    """A Namespace and all in it, and the webhooks of its guard, with the statuses asked for."""
    clause = f"{{namespaces: [{where}], {in_clause}}}"
    guard = f"{{apiGroup: admissionregistration.k8s.io, objectNames: [{where}-guard]}}"
    text = namespace(where).replace(f"{{namespaces: [{where}]}}", f"{clause}\n  - {guard}")
    tree.apply(text.replace(f"{EVERYWHERE}\n", f"{sites}\n  {asked}\n"))


def image(tree, site: int, where: str) -> str:
    path = "jsonpath={.spec.template.spec.containers[0].image} {.status.updatedReplicas}"
    return tree.site(site, "-n", where, "get", "deploy", "web", "-o", path)


def marks(tree, where: str, *site: int) -> tuple[list[str], list[str]]:
    """The annotations and labels of the chart's Deployment, at the hub or at a site."""
    asked = ("-n", where, "get", "deploy", "web", "-o", "json")
    got = tree.site(site[0], *asked) if site else tree.centre(*asked)
    metadata = json.loads(got)["metadata"]
    return [*metadata.get("annotations", ())], [*metadata.get("labels", ())]


def guarded(tree, site: int, where: str) -> list[str]:
    """What of the chart acts at a site, and never at the hub: a Role and a webhook."""
    asked = ("-n", where, "get", "role,validatingwebhookconfiguration", "-o", "name")
    found = tree.site(site, *asked).split()
    assert not [name for name in tree.centre(*asked).split() if name in found]
    names = (name.partition("/")[2] for name in found)
    return sorted(name for name in names if name in ("web", f"{where}-guard"))


def test_helm_3_installs_with_hooks_through_a_hub_and_its_own_notes_stay_there(tree, tmp_path):
    helm, where = Helm(tree, HELM3, tmp_path), "helm-3"
    place(tree, where, SITE_1, asked="wantSingletonReportedState: true")
    helm.release("install", where)
    tree.centre("wait", f"epl/{where}", "--for=condition=Ready", WAIT)
    assert image(tree, 0, where) == "nginx:1 2"
    # The hub's watches hear of the last object, and of the hook that is gone, after Helm's end.
    # A server names a new kind, by which kubectl goes, a moment after it serves it.
    listed = ("-n", where, "get", "till,job", "-o", "name")
    until(
        lambda: sorted(tree.try_site(0, *listed).stdout.split()) == BROUGHT,
        lambda: f"the site has {tree.try_site(0, *listed)}",
    )
    # A release holds the values of a chart, passwords too; by its marks Helm would adopt a copy.
    assert "sh.helm.release.v1.shop.v1" in tree.centre("-n", where, "get", "secret", "-o", "name")
    assert tree.site(0, "-n", where, "get", "secret", "-o", "name") == ""
    assert any("meta.helm.sh/" in key for key in marks(tree, where)[0])
    annotations, labels = marks(tree, where, 0)
    assert not any("meta.helm.sh/" in key for key in annotations)
    assert {"app", "app.kubernetes.io/managed-by"} <= {*labels}

    # Who runs the space says which marks are meant.
    listed = "leafcast.io/tracking-marks=standard,app.kubernetes.io/managed-by"
    tree.centre("annotate", "namespace", "leafcast-system", listed)
    until(lambda: "app.kubernetes.io/managed-by" not in marks(tree, where, 0)[1])
    tree.centre("annotate", "namespace", "leafcast-system", "leafcast.io/tracking-marks-")

    # What would act at the hub goes into Denatureds on the way.
    filtered = ("--post-renderer=leafcast", "--post-renderer-args=denature")
    by = (*filtered, f"--post-renderer-args=--namespace={where}")
    helm.release("upgrade", where, "--set=image=nginx:2,acting=true", *by)
    until(lambda: guarded(tree, 0, where) == [f"{where}-guard", "web"])
    until(lambda: image(tree, 0, where) == "nginx:2 2")
    acts = [it for it in tree.status(where)["conditions"] if it["type"] == "ActsAtCentre"]
    helm("uninstall", "shop", "-n", where)
    until(lambda: guarded(tree, 0, where) == [])
    assert not acts
    tree.centre("delete", "epl", where, WAIT)


def test_helm_4_waits_until_all_edges_have_it_with_hooks_and_several_destinations(tree, tmp_path):
    helm, where = Helm(tree, HELM4, tmp_path), "helm-4"
    place(tree, where, EVERYWHERE, in_clause="wantMultiWECReportedState: true")
    helm("plugin", "install", str(PLUGIN))
    helm.release("install", where, "--wait")
    assert [image(tree, site, where) for site in (0, 1)] == ["nginx:1 2"] * 2
    by = ("--post-renderer=denature", f"--post-renderer-args=--namespace={where}")
    helm.release("upgrade", where, "--wait", "--set=image=nginx:2,acting=true", *by)
    assert [image(tree, site, where) for site in (0, 1)] == ["nginx:2 2"] * 2
    for site in (0, 1):
        until(lambda at=site: guarded(tree, at, where) == [f"{where}-guard", "web"])
    helm("rollback", "shop", "1", "-n", where, "--wait", "--timeout=60s")
    assert [image(tree, site, where) for site in (0, 1)] == ["nginx:1 2"] * 2
    # What is complete in all places is so at the hub, with the times that its server asks for.
    status = ("-n", where, "get", "job", "before", "-o", "jsonpath={.status.completionTime}")
    assert tree.centre(*status)
    tree.centre("delete", "epl", where, WAIT)
    for site in (0, 1):
        until(lambda at=site: f"{where}-guard" not in guarded(tree, at, where))


def test_what_kustomize_makes_goes_through_the_filter_to_a_hub(tree, tmp_path):
    where = "kustomized"
    (tmp_path / "kustomization.yaml").write_text(f"{{namespace: {where}, resources: [all.yaml]}}")
    (tmp_path / "all.yaml").write_text(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {smile: '\U0001f600'}}\n---\n"
        "{apiVersion: v1, kind: LimitRange, metadata: {name: small},"
        " spec: {limits: [{type: Pod, max: {cpu: '1'}}]}}\n"
    )
    tree.apply(namespace(where))
    built = tree.centre("kustomize", str(tmp_path))
    words = [program_folder(tmp_path) / "leafcast", "denature"]
    made = subprocess.run(words, input=built, capture_output=True, text=True, check=True)
    tree.apply(made.stdout)
    tree.until_at(0, lambda shown: "small" in shown, "-n", where, "get", "limits", "-o", "name")
    asked = ("-n", where, "get", "cm", "a", "-o", "jsonpath={.data.smile}")
    tree.until_at(0, lambda shown: shown == "\U0001f600", *asked)
    assert tree.centre("-n", where, "get", "limits", "-o", "name") == ""
