"""A tree of trios as its user runs it: who is active, and changes without a pause."""

import json
import os
import re
import signal
import threading
from itertools import count
from pathlib import Path

from leafcast.daemon.trios import MEMBER_NAMES
from tests.awaiting import until
from tests.e2e.program import Program
from tests.processes import alive

ROLES = re.compile(
    r"^(\S+ \S+) .* member (\S+) of \S+ (is active|stands by|has lost)", re.MULTILINE
)
NUMBERS = count()
"""No object is applied twice: what lies there already proves nothing."""
STARTS = re.compile(r"starting, process (\d+)")


class TrioProgram(Program):
    """The program on a data directory of trios; a node is `centre`, or as in `lc_region-1`."""

    def log(self, node: str, member: str) -> str:
        file = self.folder(node, member) / "daemon.log"
        return file.read_text() if file.exists() else ""

    def folder(self, node: str, member: str) -> Path:
        return self.place.folder / "members" / f"{node}-{member}"

    def pid(self, node: str, member: str) -> int:
        """Of the process of a member that started last; 0 if it does not run."""
        found = STARTS.findall(self.log(node, member))
        return int(found[-1]) if found and alive(int(found[-1])) else 0

    def kill_active(self, node: str) -> str:
        """End the process of the active member, and wait until it or another one is."""
        starts = self.starts(node)
        self.kill(node, self.until_active(node))
        return self.until_active(node, after=starts)

    def starts(self, node: str) -> int:
        """How often a member of the node became active."""
        logs = (self.log(node, member) for member in MEMBER_NAMES)
        return sum(role == "is active" for log in logs for *_, role in ROLES.findall(log))

    def active(self, node: str) -> str:
        """The member that became active last, if it is so still; "" if none is."""
        times = {}
        for member in MEMBER_NAMES:
            last = (ROLES.findall(self.log(node, member)) or [("", "", "")])[-1]
            if self.pid(node, member) and last[2] == "is active":
                times[member] = last[0]
        return max(times, key=times.__getitem__, default="")

    def until_active(self, node: str, after: int = 0) -> str:
        """Wait until a member is active, and members became so more often than that."""
        until(
            lambda: self.starts(node) > after and self.active(node), f"nobody of {node} is active"
        )
        return self.active(node)

    def may_restart(self, path: str) -> bool:
        """Whether the doctor says so of the next member of a node, which is called by its path."""
        done = self.run("doctor", "-o", "json")
        found = [it for it in json.loads(done.stdout)["checks"] if it["group"] == "Members"]
        return [it["state"] for it in found if it["about"] == path] == ["ok"]

    def kill(self, node: str, member: str) -> None:
        """End a member's process at once; its server goes with it."""
        os.kill(self.pid(node, member), signal.SIGKILL)

    def kill_server(self, node: str, member: str) -> None:
        """End a member's server at once; its process starts it again."""
        config = str(self.folder(node, member))
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                words = (entry / "cmdline").read_bytes().decode().split("\0")
            except OSError:
                continue
            if "nats-server" in words[0] and any(config in word for word in words):
                os.kill(int(entry.name), signal.SIGKILL)
                return
        raise AssertionError(f"no server runs in {config}")


def uids_at(program: Program, site: str) -> dict[str, str]:
    """Of the ConfigMaps in the namespace shop that a site holds; none while it cannot be asked."""
    done = program.run("get", "configmaps", "-n", "shop", "--at", site, "-o", "json")
    found = json.loads(done.stdout)["items"] if done.returncode == 0 else ()
    return {it["metadata"]["name"]: it["metadata"]["uid"] for it in found}


class Applies:
    """Applies an object after the other, and notes which of them were acknowledged."""

    def __init__(self, program: Program, folder: Path) -> None:
        self._program, self._file = program, folder / "object.yaml"
        self.acknowledged: list[str] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Applies":
        self._thread.start()
        return self

    def __exit__(self, *error) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.is_set():
            name = f"o{next(NUMBERS)}"
            self._file.write_text(
                "apiVersion: v1\nkind: ConfigMap\n"
                f"metadata: {{name: {name}, namespace: shop}}\ndata: {{at: {name}}}\n"
            )
            done = self._program.run("apply", "-f", str(self._file))
            if done.returncode == 0:
                self.acknowledged.append(name)

    def more(self, count: int = 3) -> None:
        """Wait for so many more to be acknowledged."""
        before = len(self.acknowledged)
        until(lambda: len(self.acknowledged) >= before + count, "nothing is acknowledged")
