"""The program as its user runs it, on a data directory of its own, and kubectl beside it."""

import os
import subprocess
from pathlib import Path

from leafcast.local.kube_servers.binaries import KUBECTL
from tests.e2e import program
from tests.kube.bed import MEMORY_FOR_SPEED, need_binaries

STARTED = "LEAFCAST_TEST_UP"


class Program(program.Program):
    """The program on one data directory, and kubectl with the kubeconfig that it printed."""

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.kubeconfig = folder / "kube" / "kubeconfig"
        self.environment |= {STARTED: str(folder), **MEMORY_FOR_SPEED}

    def up(self, *options: str) -> str:
        done = self.run("up", *options)
        assert not done.returncode, done.stderr + self.place.log.read_text()
        return done.stdout

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """Run kubectl; what it printed."""
        done = self.try_kubectl(*arguments, stdin=stdin)
        assert not done.returncode, f"kubectl {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    def try_kubectl(self, *arguments: str, stdin: str = ""):
        """The same, for what may fail: all that came of it."""
        return subprocess.run(
            self.kubectl_command(*arguments),
            input=stdin,
            env=self.kubectl_environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def kubectl_command(self, *arguments: str) -> list[str]:
        return [str(need_binaries()[KUBECTL]), f"--kubeconfig={self.kubeconfig}", *arguments]

    @property
    def kubectl_environment(self) -> dict[str, str]:
        # Its cache of what servers serve is told apart by their ports alone.
        return {
            **os.environ,
            **MEMORY_FOR_SPEED,
            "KUBECACHEDIR": str(self.place.folder / "kubectl-cache"),
        }

    def processes(self) -> dict[int, str]:
        """What it started and what runs, by pid, with its command."""
        mark, found = f"{STARTED}={self.place.folder}".encode(), {}
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().decode()
            except OSError:
                continue
        return found
