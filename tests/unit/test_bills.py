"""Bills of materials name what is installed, all of it, in a form that the standard takes."""

import hashlib
import json
import re
import tomllib

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.bills import (
    DOCKERFILE,
    LOCK,
    chart_bill,
    image_bill,
    of_files,
    package_bill,
    wheel_bill,
    write,
)

ENTRY = re.compile(r"\n(?=\S)")
PINNED = re.compile(r"(\S+)==([^\s\\]+)")
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@pytest.fixture(scope="module")
def wheel():
    return wheel_bill()


@pytest.fixture(scope="module")
def image(wheel):
    return image_bill(wheel, DOCKERFILE.read_text())


@pytest.fixture(scope="module")
def package(wheel):
    return package_bill(wheel, "python3.13", "3.13.5-2+deb13u5")


def packages(bill):
    """The packages by name, with version and hashes, as bills give them."""
    return {
        canonicalize_name(one["name"]): (one["version"], hashes_of(one))
        for one in bill["components"]
        if one["type"] == "library"
    }


def hashes_of(component):
    there = [component, *component.get("externalReferences", ())]
    return {row["content"] for part in there for row in part.get("hashes", ())}


WINDOWS_ALONE = "colorama"


def locked():
    """What is installed of the lock file; what only Windows has is not."""
    found = {}
    for entry in ENTRY.split(LOCK.read_text().strip()):
        name, version = PINNED.match(entry).groups()
        found[canonicalize_name(name)] = version, set(HASH.findall(entry))
    assert found.pop(WINDOWS_ALONE)
    return found


def test_a_bill_names_each_package_that_is_installed_by_version_and_hashes(wheel, image, package):
    assert packages(wheel) == packages(image) == packages(package) == locked()


def test_a_bill_is_of_our_program_in_its_version_and_licence(wheel, image, package):
    kinds = ((wheel, "application"), (image, "container"), (package, "application"))
    for bill, kind in kinds:
        product = bill["metadata"]["component"]
        assert (product["name"], product["type"]) == ("leafcast", kind)
        assert product["licenses"][0]["license"]["id"] == "Apache-2.0"
        # With a moment or a number of its own, it would differ each time that it is made.
        assert not bill.keys() & {"serialNumber"}
        assert "timestamp" not in bill["metadata"]


def test_a_bill_names_what_it_is_of_as_scanners_do(wheel, image, package):
    version = wheel["metadata"]["component"]["version"]
    bills = {
        "pkg:pypi/leafcast": wheel,
        "pkg:docker/leafcast": image,
        "pkg:deb/leafcast/leafcast": package,
        "pkg:generic/leafcast-chart": chart_bill(wheel),
    }
    for name, bill in bills.items():
        assert bill["metadata"]["component"]["purl"] == f"{name}@{version}"


def test_what_builds_our_program_is_in_no_bill(wheel, image, package):
    builders = {"hatchling", "trove-classifiers", "pluggy", "pathspec", "tomlkit"}
    for bill in (wheel, image, package):
        assert not packages(bill).keys() & builders


def test_the_bill_of_the_image_names_its_base_by_digest(image):
    (base,) = (one for one in image["components"] if one["type"] == "container")
    assert f"{base['name']}:{base['version']}@sha256:{base['hashes'][0]['content']}" in (
        DOCKERFILE.read_text()
    )
    product = image["metadata"]["component"]["bom-ref"]
    (needed,) = (row["dependsOn"] for row in image["dependencies"] if row["ref"] == product)
    assert base["bom-ref"] in needed


def test_the_bill_of_the_debian_packages_names_the_source_of_their_interpreter(package):
    (one,) = (it for it in package["components"] if it["type"] == "platform")
    assert one["purl"] == "pkg:deb/debian/python3.13@3.13.5-2%2Bdeb13u5?arch=source"
    product = package["metadata"]["component"]["bom-ref"]
    (needed,) = (row["dependsOn"] for row in package["dependencies"] if row["ref"] == product)
    assert one["bom-ref"] in needed


def test_a_bill_says_what_our_program_asks_for_itself(wheel):
    names = {one["bom-ref"]: canonicalize_name(one["name"]) for one in wheel["components"]}
    product = wheel["metadata"]["component"]["bom-ref"]
    (needed,) = (row["dependsOn"] for row in wheel["dependencies"] if row["ref"] == product)
    project = tomllib.loads((LOCK.parents[1] / "pyproject.toml").read_text())["project"]
    asked = {canonicalize_name(Requirement(one).name) for one in project["dependencies"]}
    assert {names[ref] for ref in needed} == asked


def test_a_bill_names_the_licence_of_each_package(wheel):
    assert not {one["name"] for one in wheel["components"] if not one.get("licenses")}
    named = {one["name"]: one["licenses"] for one in wheel["components"]}
    said = {"acknowledgement": "declared", "name": "MPL-2.0"}
    assert named["certifi"] == [{"license": said}]
    assert named["aiohttp"][0]["expression"] == "Apache-2.0 AND MIT"


def test_each_artefact_has_a_bill_with_its_own_sum(tmp_path):
    made = {
        "leafcast-1-py3-none-any.whl": "",
        "leafcast-1.tar.gz": "-sources",
        "leafcast-1.tgz": "-chart",
        "leafcast-image.tar": "-image",
    }
    for name in made:
        (tmp_path / name).write_text(name)
    write(tmp_path)
    for name, what in made.items():
        (file,) = (
            it
            for it in tmp_path.glob("*.cdx.json")
            if re.fullmatch(rf"leafcast-[0-9.]+{what}\.cdx\.json", it.name)
        )
        product = json.loads(file.read_text())["metadata"]["component"]
        (own,) = product["hashes"]
        assert own == {"alg": "SHA-256", "content": hashlib.sha256(name.encode()).hexdigest()}
        assert product["licenses"][0]["license"]["id"] == "Apache-2.0"


def test_a_bill_of_two_packages_has_the_sum_of_each(package, tmp_path):
    files = [tmp_path / f"leafcast_1_{arch}.deb" for arch in ("amd64", "arm64")]
    for file in files:
        file.write_text(file.name)
    product = of_files(package, files)["metadata"]["component"]
    assert "hashes" not in product
    assert {one["url"]: one["hashes"][0]["content"] for one in product["externalReferences"]} == {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files
    }


@pytest.mark.slow
def test_the_standard_takes_all_bills(wheel, image, package):
    validator = JsonStrictValidator(SchemaVersion.V1_6)
    both = of_files(package, (DOCKERFILE, LOCK))
    for bill in (wheel, image, package, chart_bill(wheel), of_files(wheel, (LOCK,)), both):
        assert validator.validate_str(json.dumps(bill)) is None
