"""A centre on three machines of a network, of which two are lost for good."""

import re
import sys
from contextlib import ExitStack

import pytest

from tests.awaiting import until
from tests.nats.network import machines

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(400)]
PLACEMENT = """\
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: vault}
spec:
  locationSelectors: [{matchLabels: {id: s1}}]
  downsync:
    - {apiGroup: "", resources: ["*"], namespaces: [vault], objectNames: ["*"]}
    - {apiGroup: "", resources: [namespaces], objectNames: [vault]}
---
apiVersion: v1
kind: Namespace
metadata: {name: vault}
"""
NONE = r"no member is active since \d+ s; accepted: nothing"


def written(folder, name):
    """A file of a ConfigMap of this name, and of the placement that delivers it."""
    file = folder / "object.yaml"
    file.write_text(
        f"{PLACEMENT}---\napiVersion: v1\nkind: ConfigMap\n"
        f"metadata: {{name: {name}, namespace: vault}}\n"
    )
    return file


def test_a_centre_goes_on_at_the_one_machine_that_is_left_of_three(tmp_path):
    with ExitStack() as stack:
        hosts = ["c1.example", "c2.example", "c3.example", "edge"]
        first, *others, edge = stack.enter_context(machines(tmp_path, hosts))

        def join(machine, name, path, *more, listen=()):
            """Have a machine join with a token; the file of what it says."""
            token = tmp_path / f"{name}.token"
            first.leafcast("node", "add", path, "-o", token, *more)
            words = ("join", token, "--data-dir", machine.folder / "n", *listen)
            return stack.enter_context(machine.running(sys.executable, "-m", "leafcast", *words))

        def until_said(file, words):
            until(lambda: words in file.read_text(), file.read_text)

        def told(*words):
            """What a command says that may be refused."""
            return first.run("sh", "-c", f'{sys.executable} -m leafcast "$@" || true', "sh", *words)

        def roles():
            return sorted(re.findall("active|standby", told("tree", "--members")))

        def deliver(name):
            first.leafcast("apply", "-f", written(tmp_path, name))
            first.leafcast("wait", "vault", "--for", "synced", "--timeout", "100s")
            assert name in first.leafcast("get", "configmaps", "-n", "vault", "--at", "/s1")

        first.leafcast("up", "--regions=0", "--listen", "c1.example")
        stack.callback(first.leafcast, "down")
        until_said(join(edge, "edge", "/s1", "--approved"), "is in session")
        for machine, name in zip(others, ("c2", "c3"), strict=True):
            listen = ("--listen", f"{name}.example:7522")
            until_said(join(machine, name, "/", "--member", listen=listen), "leafcast node grow /")
        first.leafcast("node", "grow", "/", "--host", "c1.example")
        until(lambda: roles() == ["active", "standby", "standby"], lambda: str(roles()))
        deliver("before")

        for machine in others:
            machine.unplug()
        # What is asked at first may have reached one of them, and be taken.
        asked = []

        def is_refused():
            asked.append(f"lost-{len(asked):03}")
            return re.search(NONE, told("apply", "-f", written(tmp_path, asked[-1])))

        until(is_refused, "it is not refused")
        first.leafcast("down")
        said = first.leafcast("recover", "--from-member", "--yes")
        assert "start the centre: leafcast up" in said
        first.leafcast("up")
        assert roles() == []
        deliver("after")
        got = first.leafcast("get", "configmaps", "-n", "vault", "--at", "/s1")
        assert "before" in got
        assert asked[-1] not in got
