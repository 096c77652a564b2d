"""A version of Helm, as tests of the chart run it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from leafcast.local.kube_servers.binaries import cache_folder, named_folders

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
CHART = DEPLOY / "helm" / "leafcast"
SYSTEM = "leafcast-system"


class Helm:
    """One version of Helm, with a home of its own."""

    def __init__(self, program, folder):
        places = os.pathsep.join(map(str, (*named_folders(), cache_folder())))
        found = shutil.which(program, path=places)
        if found is None:
            if shutil.which("go"):
                pytest.fail(f"run `make kube` first, once: it builds {program}", pytrace=False)
            pytest.skip(f"NOT RUN: no {program} on this machine, and no Go to build it with")
        own = {f"HELM_{name}_HOME": str(folder / name) for name in ("CACHE", "CONFIG", "DATA")}
        self._program, self._environment = found, {**os.environ, **own}

    def run(self, *words):
        """Whether it succeeded, and what it said."""
        done = subprocess.run(
            [self._program, *map(str, words)],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode == 0, done.stdout if done.returncode == 0 else done.stderr

    def __call__(self, *words):
        fine, said = self.run(*words)
        assert fine, f"helm {' '.join(map(str, words))}: {said}"
        return said

    def listed(self, role, *more):
        """All objects that the chart makes of a role."""
        words = ("template", "leafcast", CHART, "-n", SYSTEM, f"--set=role={role}", *more)
        return [*filter(None, yaml.safe_load_all(self(*words)))]

    def template(self, role, *more):
        """The same, by kind and name."""
        return {(one["kind"], one["metadata"]["name"]): one for one in self.listed(role, *more)}


def pod(made):
    """The template of the Pods of what was made."""
    (one,) = (obj for (kind, _), obj in made.items() if kind == "StatefulSet")
    return one["spec"]["template"]
