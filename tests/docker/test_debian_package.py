"""The Debian package on bare machines of two releases: installed without a network, and run."""

import subprocess
import sys
from functools import partial

import pytest

from leafcast.bundles.packing import make_bundle
from tests.bundle_parts import add_image
from tests.debian_package import packages
from tests.docker.daemon import PYTHON_IMAGE, ROOT, need_docker
from tests.interpreter import kept, own_arch

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(540)]

# Debian 12 and 13; tests/docker/prepare makes them.
DEBIANS = {"bookworm": "leafcast-debian:bookworm", "trixie": PYTHON_IMAGE}
LIFE = """\
set -eux
echo force-unsafe-io >/etc/dpkg/dpkg.cfg.d/quick
sh /package/leafcast-*/install.sh package
test "$(/opt/leafcast/bin/python -c 'import sys; print(sys.base_prefix)')" = /opt/leafcast/python
leafcast up --regions 1 --sites 1
leafcast tree
leafcast down
leafcast version --verify
kubectl-leafcast --version
leafcast-launcher --help
test -f /usr/lib/systemd/system/leafcast-edge.service
test -f /usr/share/man/man1/leafcast-join.1.gz
# What runs writes nothing to where the program lies.
test -z "$(dpkg --verify leafcast)"
dpkg --remove leafcast
test ! -e /opt/leafcast
test ! -e /usr/bin/leafcast
getent passwd leafcast
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    need_docker(*DEBIANS.values())
    pythons = kept()
    if pythons is None:
        pytest.skip("NOT RUN: no interpreter is built; `python -m tests.interpreter` builds it")
    out = tmp_path_factory.mktemp("dist")
    build = ("-m", "build", "--no-isolation", "--wheel", "--outdir", out, ROOT)
    subprocess.run([sys.executable, *build], check=True, capture_output=True)
    (wheel,) = out.iterdir()
    (made,) = packages(wheel, [own_arch()], pythons, out)
    bundle = out.parent / f"{out.name}.tar"
    make_bundle(out, bundle, None)
    subprocess.run(["tar", "-xf", bundle, "-C", out], check=True)
    return made


@pytest.mark.parametrize("suite", DEBIANS)
def test_a_bare_machine_runs_the_package_and_is_bare_again_without_it(package, suite):
    words = ("--rm", "--network", "none", "--volume", f"{package.parent}:/package:ro")
    done = subprocess.run(
        ["docker", "run", *words, DEBIANS[suite], "sh", "-c", LIFE],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    assert "└─ site-1" in done.stdout


def test_images_of_a_bundle_are_loaded_again(tmp_path):
    need_docker()
    (tmp_path / "leafcast-1.0-py3-none-any.whl").touch()
    (tmp_path / "small.tar").write_bytes(bytes(10240))
    image = "leafcast-test-bundle:1"
    docker = partial(subprocess.run, check=True, capture_output=True, text=True)
    docker(["docker", "import", tmp_path / "small.tar", image])
    try:
        add_image(tmp_path, image)
        make_bundle(tmp_path, tmp_path / "bundle.tar", None)
        docker(["docker", "rmi", image])
        docker(["tar", "-xf", tmp_path / "bundle.tar", "-C", tmp_path])
        said = docker(["sh", tmp_path / "leafcast-1.0" / "install.sh", "images"]).stdout
        assert image in said
        docker(["docker", "image", "inspect", image])
    finally:
        subprocess.run(["docker", "rmi", image], check=False, capture_output=True)
