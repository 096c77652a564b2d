"""A region on three machines of a network: one is lost without a word, and another comes.

All goes on meanwhile.
"""

import json
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from leafcast.join.folder import GRANT_FILE
from leafcast.join.kept_grant import read_grant
from leafcast.members.settings import kept_member
from tests.awaiting import until
from tests.nats.network import Machine, captured, machines

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(550)]
NAMES = ("m1", "m2", "m3")
LEAFCAST = (sys.executable, "-m", "leafcast")
WHOLE = ["active", "standby", "standby"]
REPLACE = ("node", "replace", "/emea", "--member")
PAUSE_SECONDS_MAX = 60
"""What a command and its wait may take on a busy machine, and a takeover within them."""
MARK = "nobody-on-the-way-reads-this-51c0"
PLACEMENT = """\
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: vault}
spec:
  locationSelectors: [{matchLabels: {id: emea-s1}}]
  downsync:
    - {apiGroup: "", resources: ["*"], namespaces: [vault], objectNames: ["*"]}
    - {apiGroup: "", resources: [namespaces], objectNames: [vault]}
---
apiVersion: v1
kind: Namespace
metadata: {name: vault, labels: {app: vault}}
"""


class Region:
    """A centre, the region /emea on three machines, and an edge below it, each on its own."""

    def __init__(self, folder: Path, stack: ExitStack, *spare: str) -> None:
        self.folder, self._stack = folder, stack
        names = (*NAMES, *spare)
        hosts = [f"{it}.example" for it in ("centre", *names, "edge")]
        self.centre, *members, self.edge = stack.enter_context(machines(folder, hosts))
        self.members = dict(zip(names, members, strict=True))
        self.told: dict[str, Path] = {}

    def join(self, machine: Machine, path: str, *more: str) -> list[str | Path]:
        """The words with which the machine joins, and is to be what more says."""
        token = self.folder / f"{len(list(self.folder.iterdir()))}.token"
        self.centre.leafcast("node", "add", path, "-o", token, *more)
        return [sys.executable, "-m", "leafcast", "join", token, "--data-dir", machine.folder / "n"]

    def begin(self) -> None:
        """Start all of it: the region alone, and then, by its users' way, on three machines."""
        self.centre.leafcast("up", "--regions=0", "--listen", "centre.example")
        self._stack.callback(self.centre.leafcast, "down")
        first = self.members["m1"]
        joins = self.join(first, "/emea", "--relay", "--approved")
        with first.running(*joins, "--listen", "m1.example:7522") as said:
            self.until_said(said, "is in session")
            joins = self.join(self.edge, "/emea/s1", "--approved")
            self.told["edge"] = self._stack.enter_context(self.edge.running(*joins))
            self.until_said(self.told["edge"], "is in session")
        for name in NAMES:
            self.run(name, self.join(self.members[name], "/emea", "--member"))
            self.until_said(self.told[name], "leafcast node grow /emea")
        self.centre.leafcast("node", "grow", "/emea")
        whole = ["active", "standby", "standby"]
        until(lambda: sorted(self.roles().values()) == whole, lambda: str(self.roles()))

    def run(self, name: str, joins: list[str | Path]) -> None:
        """Have a machine be a member, or ask to be one."""
        words = (*joins, "--listen", f"{name}.example:7522")
        self.told[name] = self._stack.enter_context(self.members[name].running(*words))

    def until_said(self, file: Path, words: str) -> None:
        until(lambda: words in file.read_text(), file.read_text)

    def roles(self) -> dict[str, str]:
        nodes = json.loads(self.centre.leafcast("tree", "--members", "-o", "json"))["nodes"]
        (region,) = [it for it in nodes if it["path"] == "/emea"]
        return {it["name"]: it["role"] for it in region["members"] or ()}

    def dialled(self) -> str:
        """The member that the edge has a link to; "" if it has none."""
        links = self.edge.run("ss", "-Htn", "state", "established", "dport = :7522").split()
        found = [name for name, it in self.members.items() if f"{it.address}:7522" in links]
        return found[0] if found else ""

    def deliver(self, name: str) -> None:
        """Have the edge hold an object more, and its count be exact."""
        file = self.folder / "object.yaml"
        file.write_text(
            f"{PLACEMENT}---\napiVersion: v1\nkind: ConfigMap\n"
            f"metadata: {{name: {name}, namespace: vault}}\ndata: {{it: {MARK}}}\n"
        )
        self.centre.leafcast("apply", "-f", file)
        self.centre.leafcast("wait", "vault", "--for", "synced", "--timeout", "100s")
        got = self.centre.leafcast("get", "configmaps", "-n", "vault", "--at", "/emea/s1")
        assert name in got


@contextmanager
def applies(region):
    """Objects applied one after the other: which were acknowledged, and how long each took."""
    acknowledged: list[str] = []
    took: list[float] = []
    over = threading.Event()
    file = region.folder / "more.yaml"

    def run():
        while not over.is_set():
            name, began = f"o{len(acknowledged)}", time.monotonic()
            file.write_text(
                f"{PLACEMENT}---\napiVersion: v1\nkind: ConfigMap\n"
                f"metadata: {{name: {name}, namespace: vault}}\ndata: {{it: {name}}}\n"
            )
            region.centre.leafcast("apply", "-f", file)
            region.centre.leafcast("wait", "vault", "--for", "synced", "--timeout", "100s")
            acknowledged.append(name)
            took.append(time.monotonic() - began)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield acknowledged, took
    finally:
        over.set()
        thread.join()


def invited(region, lost, token):
    """Whether the place of a member can be taken; then the token for that is in the file."""
    words = [*LEAFCAST, *REPLACE, lost, "-o", token]
    command = region.centre.command(*words)
    done = subprocess.run(command, check=False, env=region.centre.environment)
    return done.returncode == 0


def is_whole(region, members):
    """Whether the members are these, one of them active; who is replaced is listed until then."""
    roles = region.roles()
    return sorted(roles) == members and sorted(roles.values()) == WHOLE


def listed(region):
    got = region.centre.leafcast(
        "get", "configmaps", "-n", "vault", "--at", "/emea/s1", "-o", "json"
    )
    return {it["metadata"]["name"] for it in json.loads(got)["items"]}


def let_another_come(region, lost, members):
    """Have m4 take a member's place while objects are applied, none of which is lost or late."""
    file = region.edge.folder / "n" / GRANT_FILE
    urls = {f"tls://{it}.example:7522" for it in members}
    with applies(region) as (acknowledged, took):
        token = region.folder / "m4.token"
        until(lambda: invited(region, lost, token), lambda: str(region.roles()))
        folder = region.members["m4"].folder / "n"
        region.run("m4", [*LEAFCAST, "join", token, "--data-dir", folder])
        until(lambda: is_whole(region, members), region.told["m4"].read_text)
        # It keeps the address with which it joined.
        until(lambda: urls <= set(read_grant(file).dialled), lambda: str(read_grant(file).dialled))
        done = len(acknowledged)
        until(lambda: len(acknowledged) > done + 1, lambda: str(region.roles()))
    assert listed(region) >= {"before", *acknowledged}
    assert max(took) < PAUSE_SECONDS_MAX


def test_a_region_goes_on_without_the_machine_its_edge_dials_and_with_one_in_its_place(tmp_path):
    with ExitStack() as stack:
        region = Region(tmp_path, stack, "m4")
        region.begin()
        for name in NAMES:
            # To clients and monitors it is on its machine alone.
            away = [
                at for at in region.members[name].listening() if not at.startswith("127.0.0.1:")
            ]
            assert sorted(away) == ["*:6222", "*:7522"]
        file = region.edge.folder / "n" / GRANT_FILE
        until(lambda: len(read_grant(file).dialled) == 3, lambda: str(read_grant(file).dialled))
        with captured(region.members["m2"], tmp_path / "wire.pcap"):
            region.deliver("before")
        passed = (tmp_path / "wire.pcap").read_bytes()
        assert len(passed) > 10_000
        member = kept_member(region.members["m2"].folder / "n")
        assert member is not None
        for word in (MARK, "before", "CONNECT {", member.cluster.password):
            assert word.encode() not in passed, word

        lost = region.dialled()
        runs = f"{lost} of /emea runs, and is heard"
        assert runs in region.centre.leafcast(*REPLACE, lost, fails=True)
        assert "no member 'm7'" in region.centre.leafcast(*REPLACE, "m7", fails=True)
        region.members[lost].unplug()
        others = [it for it in NAMES if it != lost]
        until(lambda: region.dialled() in others, region.told["edge"].read_text)
        until(
            lambda: sorted(region.roles().get(it, "") for it in others) == ["active", "standby"],
            lambda: str(region.roles()),
        )
        assert region.roles()[lost] == "silent"
        members = [*others, "m4"]
        let_another_come(region, lost, members)
        # The new one is a whole member: one of the others may be lost now.
        region.members[others[0]].unplug()
        left = (others[1], "m4")
        until(
            lambda: sorted(region.roles().get(it, "") for it in left) == WHOLE[:2],
            lambda: str(region.roles()),
        )
        region.deliver("after")
        region.members[lost].plug()
        gone = f"{lost} is no member of /emea any more, whose members are {', '.join(members)}"
        region.until_said(region.told[lost], gone)
        until(lambda: sorted(region.roles()) == members, lambda: str(region.roles()))


def test_a_region_goes_on_at_another_machine_where_its_active_one_alone_is_cut_off(
    tmp_path,
):
    with ExitStack() as stack:
        region = Region(tmp_path, stack)
        region.begin()
        (cut_off,) = [name for name, role in region.roles().items() if role == "active"]
        machine, way = region.members[cut_off], f"{region.centre.address}/32"
        machine.run("ip", "route", "add", "blackhole", way)
        others = [it for it in NAMES if it != cut_off]

        def is_moved() -> bool:
            roles = region.roles()
            return "active" in (roles.get(it) for it in others) and roles[cut_off] == "standby"

        until(is_moved, region.told[cut_off].read_text, seconds=180)
        region.deliver("elsewhere")
        assert "look at the network of this machine" in region.told[cut_off].read_text()
        # Back again, it stands by, and nothing moves.
        machine.run("ip", "route", "delete", "blackhole", way)
        region.deliver("again")
        assert is_moved()
