"""A tree of three tiers whose centre and two edges are real API servers, in the hands of a test."""

import json
import os
import signal
import socket
from collections.abc import Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.awaiting import until
from tests.kube.program import Program

SITES = ("region-1-site-1", "region-1-site-2")
PATHS = ("/region-1/site-1", "/region-1/site-2")
SHAPE = ("--regions", "1", "--sites", "2")
WAIT = "--timeout=150s"
EVERYWHERE = "[{matchLabels: {region: region-1}}]"


class LiveTree(Program):
    """What a platform team does at the centre, and what the owner of an edge sees and breaks."""

    def centre(self, *arguments: str, stdin: str = "") -> str:
        return self.kubectl("--context=centre", *arguments, stdin=stdin)

    def site(self, number: int, *arguments: str, stdin: str = "") -> str:
        return self.kubectl(*self._own(number), *arguments, stdin=stdin)

    def try_site(self, number: int, *arguments: str):
        return self.try_kubectl(*self._own(number), *arguments)

    def _own(self, number: int) -> tuple[str, str]:
        # The tree's own file is what tests spoil.
        own = self.place.folder / "kube" / SITES[number] / "kubeconfig"
        return f"--kubeconfig={own}", f"--context={SITES[number]}"

    def leafcast(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert not done.returncode, f"leafcast {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    def apply(self, text: str) -> str:
        return self.centre("apply", "-f", "-", stdin=text)

    def established(self, *definitions: str) -> None:
        """Wait until the centre serves what these define, and names it: kubectl goes by that."""

        def served():
            got = self.centre("get", "crd", *definitions, "-o", "json")
            read = json.loads(got)
            found = read.get("items", [read])
            return {it["metadata"]["name"] for it in found} <= named() and all(
                any(
                    (its["type"], its["status"]) == ("Established", "True")
                    for its in definition.get("status", {}).get("conditions") or ()
                )
                for definition in found
            )

        def named():
            said = self.try_kubectl("--context=centre", "api-resources", "-o", "name")
            return {*said.stdout.split()}

        until(served)

    def synced(self, placement: str, *there: str, at: Sequence[int] = (0, 1)) -> None:
        """Wait until its destinations have all of it, also `there`, as kubectl names it to `get`.

        A condition speaks of what the centre has read: what was just written may be none of it.
        """
        self.centre("wait", f"epl/{placement}", "--for=condition=Synced", WAIT)
        for number in at if there else ():
            until(
                lambda number=number: not self.try_site(number, "get", *there).returncode,
                lambda number=number: str(self.try_site(number, "get", *there)),
            )
        if there:
            self.synced(placement)

    def status(self, placement: str) -> dict:
        return json.loads(self.centre("get", "epl", placement, "-o", "json")).get("status", {})

    def until_said(self, placement: str, *words: str) -> dict:
        """Wait until one of the placement's errors has these words; its status then."""

        def said():
            status = self.status(placement)
            fits = (all(word in error for word in words) for error in status.get("errors", ()))
            return status if any(fits) else None

        return until(said, lambda: f"no error says {words}: {self.status(placement)}")

    def blamed(self, placement: str) -> list[dict]:
        """What the doctor says fails of a placement."""
        checks = json.loads(self.run("doctor", "-o", "json").stdout)["checks"]
        return [it for it in checks if it["state"] == "failure" and placement in it["said"]]

    def until_at(self, number: int, holds, *arguments: str) -> None:
        """Wait until what kubectl prints at a site is as wanted."""
        until(
            lambda: holds(self.try_site(number, *arguments).stdout),
            lambda: f"{arguments}: {self.try_site(number, *arguments)}",
        )

    def versions(self, number: int, of: str = "") -> dict[str, tuple[str, str]]:
        """UID and resourceVersion of what the tree applied at a site, but for what lives there.

        `of` is in the name of each. What is being deleted is left out: a namespace goes a while
        after the placement that had it, and so may what another test had.
        """
        kinds = "configmaps,secrets,serviceaccounts,namespaces,customresourcedefinitions"
        got = self.site(number, "get", kinds, "-A", "-l", "leafcast.io/tree", "-o", "json")
        found = ((item["kind"], item["metadata"]) for item in json.loads(got)["items"])
        named = {
            f"{kind} {its.get('namespace', '')}/{its['name']}": (its["uid"], its["resourceVersion"])
            for kind, its in found
            if "deletionTimestamp" not in its
        }
        return {name: known for name, known in named.items() if of in name}

    @contextmanager
    def server_down(self, name: str):
        """It is killed, and cannot come back before the end."""
        port = json.loads((self.place.folder / "kube" / name / "port.json").read_text())["port"]
        with socket.socket() as held:
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            os.kill(self._server(name), signal.SIGKILL)
            until(lambda: _bound(held, port), f"port {port} is not given up")
            # One that listened and may not be shared keeps the port, and answers nobody.
            held.listen()
            held.shutdown(socket.SHUT_RDWR)
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
            yield

    def _server(self, name: str) -> int:
        running = self.processes().items()
        (pid,) = (p for p, words in running if "kube-apiserver\0" in words and f"/{name}/" in words)
        return pid

    @contextmanager
    def credentials(self, number: int, token: str):
        """The tree has only this token for a site until the end."""
        before = self.kubeconfig.read_text()
        own = (self.place.folder / "kube" / SITES[number] / "kubeconfig").read_text()
        (known,) = (line.split()[1] for line in own.splitlines() if "token:" in line)
        assert known in before
        _replace(self.kubeconfig, before.replace(known, token))
        try:
            yield
        finally:
            _replace(self.kubeconfig, before)


def _bound(held: socket.socket, port: int) -> bool:
    with suppress(OSError):
        held.bind(("127.0.0.1", port))
        return True
    return False


def _replace(file: Path, text: str) -> None:
    fresh = file.with_suffix(".fresh")
    fresh.write_text(text)
    fresh.chmod(0o600)
    fresh.replace(file)


def namespace(name, *others):
    """A placement that carries a namespace and all in it, and what else its clauses say."""
    itself = f'{{apiGroup: "", resources: [namespaces], objectNames: [{name}]}}'
    return f"""
apiVersion: v1
kind: Namespace
metadata: {{name: {name}}}
---{placement(name, itself, f"{{namespaces: [{name}]}}", *others)}---
"""


def placement(name, *clauses):
    """What goes to all edges of the region, as these clauses of its downsync say."""
    downsync = "\n  - ".join(["  downsync:", *clauses])
    return f"""
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {{name: {name}}}
spec:
  locationSelectors: {EVERYWHERE}
{downsync}
"""


def config_map(where, name, value):
    return f"""
apiVersion: v1
kind: ConfigMap
metadata: {{name: {name}, namespace: {where}}}
data: {{value: "{value}"}}
---
"""


def value_is(wanted):
    return lambda printed: printed == wanted


def value_of(where, name):
    return ("-n", where, "get", "configmap", name, "-o", "jsonpath={.data.value}")
