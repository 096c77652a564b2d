"""Each copy fits its place, from kubectl at the centre to the API servers of two edges."""

import pytest

from tests.kube.bed import need_binaries
from tests.kube.live_tree import PATHS, SHAPE, SITES, WAIT, LiveTree
from tests.kube.test_end_to_end import namespace, value_is, value_of

pytestmark = [pytest.mark.kube, pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture
def tree(tmp_path):
    need_binaries()
    tree = LiveTree(tmp_path / "tree")
    try:
        tree.up("--kube=all", *SHAPE)
        yield tree
    finally:
        tree.run("down")


_FITTING = """
apiVersion: v1
kind: ConfigMap
metadata:
  name: fit
  namespace: fitting
  annotations:
    control.kubestellar.io/expand-templates: "true"
    edge.kubestellar.io/customizer: size
data: {value: "{{ .clusterName }} is {{ .size }}"}
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: Customizer
metadata: {name: size, namespace: fitting}
replacements:
- {path: $.data.more, value: '"made"'}
---
"""
_SIZES = """
apiVersion: v1
kind: Namespace
metadata: {name: customization-properties}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: region-1-site-1, namespace: customization-properties}
data: {size: large}
---
"""


def test_each_site_gets_the_copy_that_fits_it(tree):
    tree.apply(namespace("fitting") + _FITTING + _SIZES)
    tree.until_at(0, value_is(f"{SITES[0]} is large"), *value_of("fitting", "fit"))
    tree.until_said("fitting", "configmaps/fit", 'Frozen: data.value: no property "size"', PATHS[1])
    assert not tree.try_site(1, "get", "configmap", "fit", "-n", "fitting").stdout
    tree.centre("label", "synctarget", SITES[1], "size=small")
    tree.until_at(1, value_is(f"{SITES[1]} is small"), *value_of("fitting", "fit"))
    tree.synced("fitting")
    assert tree.site(1, "get", "cm", "fit", "-n", "fitting", "-o=jsonpath={.data.more}") == "made"
    before = tree.versions(0)
    tree.centre("-n", "fitting", "patch", "customizer", "size", "--type=merge", "-p", _BROKEN)
    tree.centre("wait", "epl/fitting", "--for=condition=Customized=False", WAIT)
    assert tree.versions(0) == before


_BROKEN = '{"replacements": [{"path": "$", "value": "1"}]}'
