"""What kstatus makes of objects, by which Flux and Helm wait: its own code in a program of ours."""

import json
import shutil
import subprocess

import pytest

from leafcast.local.kube_servers.binaries import cache_folder, named_folders
from tests.kube.build import KSTATUS


def kstatus(objects):
    """Each object's status in kstatus's words, and its message."""
    places = (*named_folders(), cache_folder())
    found = shutil.which(KSTATUS, path=":".join(map(str, places)))
    if found is None:
        if shutil.which("go"):
            pytest.fail("run `make kube` first, once: it builds kstatus", pytrace=False)
        pytest.skip("NOT RUN: no kstatus on this machine, and no Go to build it with")
    lines = "".join(json.dumps(obj) + "\n" for obj in objects)
    done = subprocess.run([found], input=lines, capture_output=True, text=True, check=True)
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]
