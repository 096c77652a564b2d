"""`make kube` finds before it builds, builds once, and says what is missing; no server runs."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from leafcast.local.kube_servers.binaries import KUBE_VERSION, KWOK, STAGES
from tests.awaiting import until
from tests.kube import build

ROOT = Path(__file__).resolve().parents[2]
# Stands in for Go: what is tried is when it is called, and what becomes of what it writes.
GO = """#!/bin/sh
case $1 in
  list) echo {module} ;;
  build)
    echo "$*" >>{called}
    while [ -e {hold} ]; do sleep 0.05; done
    while [ "$1" != -o ]; do shift; done
    printf '#!/bin/sh\\n' >"$2"; chmod +x "$2" ;;
esac
"""


class Machine:
    """A cache, and perhaps a Go, of a machine that has nothing yet."""

    def __init__(self, folder: Path):
        self.cache = folder / "cache" / "leafcast" / "kube" / KUBE_VERSION
        self.called, self.hold = folder / "called", folder / "hold"
        self.path = folder / "path"
        self.path.mkdir()
        module = folder / "kwok"
        for part in ("node", "pod"):
            stages = module / "kustomize" / "stage" / part / "fast"
            stages.mkdir(parents=True)
            (stages / f"{part}-ready.yaml").write_text(part)
            (stages / "kustomization.yaml").write_text("not a stage")
        self._go = GO.format(module=module, called=self.called, hold=self.hold)
        self._environment = {
            "PATH": f"{self.path}:/usr/bin:/bin",
            "XDG_CACHE_HOME": str(folder / "cache"),
            "PYTHONPATH": str(ROOT),
        }

    def install_go(self):
        program(self.path / "go", self._go)

    def start(self, **environment: str):
        return subprocess.Popen(
            [sys.executable, "-m", "tests.kube.build"],
            cwd=ROOT,
            env={**self._environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def make_kube(self, **environment: str):
        process = self.start(**environment)
        said, told = process.communicate()
        return process.returncode, said.strip(), told

    @property
    def builds(self):
        return self.called.read_text().splitlines() if self.called.exists() else []


def program(file: Path, text: str = "#!/bin/sh\n") -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(file.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_the_version_that_is_looked_for_is_the_one_that_is_built():
    assert build.version("kube-apiserver") == f"k8s.io/kubernetes@{KUBE_VERSION}"
    assert all(build.version(name) for name in build.BUILT)
    staging = (build.HERE / "go.mod").read_text()
    published = KUBE_VERSION.replace("v1.", "v0.")
    assert f"k8s.io/api => k8s.io/api {published}" in staging


def test_what_was_built_is_not_built_again(machine):
    machine.install_go()
    assert machine.make_kube()[:2] == (0, str(machine.cache))
    assert len(machine.builds) == len(build.BUILT)
    assert {file.name for file in (machine.cache / STAGES).iterdir()} == {
        "node-ready.yaml",
        "pod-ready.yaml",
    }
    assert machine.make_kube() == (0, str(machine.cache), "")
    assert len(machine.builds) == len(build.BUILT)


def test_what_go_mod_names_at_another_version_is_built_again(machine):
    machine.install_go()
    machine.make_kube()
    kept = machine.cache / build.FROM
    kept.write_text(kept.read_text().replace(build.version(KWOK), "sigs.k8s.io/kwok@v0.0.1"))
    machine.make_kube()
    assert machine.builds[len(build.BUILT) :] == [machine.builds[-1]]
    assert "cmd/kwok" in machine.builds[-1]


@pytest.mark.parametrize("variable", ["LEAFCAST_KUBE_ASSETS", "KUBEBUILDER_ASSETS"])
def test_only_what_a_named_folder_lacks_is_built(machine, tmp_path, variable):
    machine.install_go()
    named = tmp_path / "assets"
    for name in ("etcd", "kube-apiserver", "kubectl"):
        program(named / name)
    code, said, _ = machine.make_kube(**{variable: str(named)})
    assert (code, said) == (0, os.pathsep.join((str(named), str(machine.cache))))
    built = {
        line.split()[line.split().index("-o") + 1].rpartition("/")[2] for line in machine.builds
    }
    assert built == {
        "kube-controller-manager",
        "kube-scheduler",
        "kwok",
        "kstatus",
        "helm3",
        "helm4",
    }


def test_without_go_it_says_how_to_get_the_programs(machine):
    code, said, told = machine.make_kube()
    assert (code, said) == (1, "")
    assert "there is no Go here" in told
    assert "LEAFCAST_KUBE_ASSETS=/path/to/programs" in told


def test_of_two_at_the_same_time_one_builds_and_the_other_finds(machine):
    machine.install_go()
    machine.hold.touch()
    first = machine.start()
    until(lambda: machine.builds)
    second = machine.start()
    assert "waiting for it" in second.stderr.readline()
    machine.hold.unlink()
    assert [its.communicate()[0].strip() for its in (first, second)] == [str(machine.cache)] * 2
    assert len(machine.builds) == len(build.BUILT)


def test_a_build_that_is_ended_leaves_nothing_behind(machine):
    machine.install_go()
    machine.hold.touch()
    running = machine.start()
    until(lambda: machine.builds)
    running.terminate()
    running.communicate()
    assert running.returncode == 143
    machine.hold.unlink()
    assert {entry.name for entry in machine.cache.iterdir()} == {"lock"}
    assert machine.make_kube()[0] == 0
