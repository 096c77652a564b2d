"""Software bills of materials (CycloneDX) of all that is built: `make dist` writes them.

They are made from the lock file that the image is installed from, so they need neither, and are the
same wherever they are made. All else in the image comes with its base, which is named by digest:
its publisher says what it holds. Licences are what the metadata of the packages says that are
installed where they are made. Each bill has the sums of the files that it is of.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

Bill: TypeAlias = dict[str, Any]

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "deploy" / "requirements.txt"
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
_BASE = re.compile(r"PYTHON_IMAGE:-(?P<name>[^:]+):(?P<tag>[^@]+)@sha256:(?P<digest>[0-9a-f]{64})")
_BASE_REF, _INTERPRETER_REF = "base-image", "interpreter"
_LICENCE_NAME_MAX = 60
_ENTRY = re.compile(r"\n(?=\S)")
_RUNS_ON = {
    "implementation_name": "cpython",
    "os_name": "posix",
    "platform_python_implementation": "CPython",
    "platform_system": "Linux",
    "sys_platform": "linux",
}
"""What markers of the lock file are asked of; the Python is the one that asks."""


def wheel_bill() -> Bill:
    """What is installed with the wheel: each package, with its version and the hashes of files."""
    options = ("--pyproject", "pyproject.toml", "--mc-type", "application")
    form = ("--output-reproducible", "--output-format", "JSON", "--spec-version", "1.6")
    # It warns that the product needs nothing, which is said below; a test reads what comes out.
    words = ("-W", "ignore", "-m", "cyclonedx_py", "requirements", "--no-validate", *options, *form)
    made = subprocess.run(
        [sys.executable, *words, "-"],
        cwd=ROOT,
        input=installed_lines(LOCK.read_text()),
        capture_output=True,
        check=False,
        text=True,
    )
    assert made.returncode == 0, made.stderr
    bill: Bill = json.loads(made.stdout)
    asked = _asked()
    for component in bill["components"]:
        # The line of the lock file, once more.
        component.pop("description", None)
        if found := _licences(component["name"], component["version"]):
            component["licenses"] = found
    product = bill["metadata"]["component"]
    product["purl"] = f"pkg:pypi/{product['name']}@{product['version']}"
    needed = [
        one["bom-ref"] for one in bill["components"] if canonicalize_name(one["name"]) in asked
    ]
    return _needing(bill, needed)


def installed_lines(lock: str) -> str:
    """What of a lock file is installed where Leafcast runs, wherever this is asked."""
    entries = _ENTRY.split(lock.strip())
    return "".join(f"{entry}\n" for entry in entries if _is_installed(entry))


def _is_installed(entry: str) -> bool:
    requirement = Requirement(entry.partition("\\")[0].strip())
    return requirement.marker is None or requirement.marker.evaluate(_RUNS_ON)


def _licences(name: str, version: str) -> list[Bill]:
    """What a package says of its licence; nothing where it is not here in that version."""
    try:
        package = distribution(name)
    except PackageNotFoundError:
        return []
    if package.version != version:
        return []
    about = package.metadata
    if expression := "".join(about.get_all("License-Expression", [])):
        return [{"acknowledgement": "declared", "expression": expression}]
    said = "".join(about.get_all("License", []))
    classified = about.get_all("Classifier", [])
    names = [it.rpartition(" :: ")[2] for it in classified if it.startswith("License :: ")]
    # Some have the whole text there.
    if said and "\n" not in said and len(said) <= _LICENCE_NAME_MAX:
        names = [said]
    return [{"license": {"acknowledgement": "declared", "name": it}} for it in names]


def _asked() -> set[str]:
    """The names of what the wheel asks for itself."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return {canonicalize_name(Requirement(asked).name) for asked in project["dependencies"]}


def _needing(bill: Bill, needed: list[str]) -> Bill:
    """The bill with these as what its product needs, beside what it needed."""
    product = bill["metadata"]["component"]["bom-ref"]
    rows = {row["ref"]: row for row in bill["dependencies"]}
    there = rows.get(product, {}).get("dependsOn", [])
    rows[product] = {"ref": product, "dependsOn": sorted([*there, *needed])}
    return {**bill, "dependencies": list(rows.values())}


def image_bill(wheel: Bill, dockerfile: str) -> Bill:
    """The same of a container that stands on the base image of this Dockerfile."""
    found = _BASE.search(dockerfile)
    assert found, "deploy/Dockerfile names its base by tag and digest"
    name, tag, digest = found["name"], found["tag"], found["digest"]
    base = {
        "bom-ref": _BASE_REF,
        "type": "container",
        "name": name,
        "version": tag,
        "hashes": [{"alg": "SHA-256", "content": digest}],
        "purl": f"pkg:oci/{name}@sha256%3A{digest}"
        f"?repository_url=docker.io%2Flibrary%2F{name}&tag={tag}",
    }
    product = wheel["metadata"]["component"]
    return _on(wheel, base, "container", f"pkg:docker/{product['name']}@{product['version']}")


def package_bill(wheel: Bill, source: str, version: str) -> Bill:
    """The same of the Debian packages, with the source that their interpreter was built from."""
    interpreter = {
        "bom-ref": _INTERPRETER_REF,
        "type": "platform",
        "name": source,
        "version": version,
        "purl": f"pkg:deb/debian/{source}@{quote(version, safe='')}?arch=source",
    }
    product = wheel["metadata"]["component"]
    purl = f"pkg:deb/leafcast/{product['name']}@{product['version']}"
    return _on(wheel, interpreter, product["type"], purl)


def chart_bill(wheel: Bill) -> Bill:
    """Of the chart, which is text of ours: it names the image, and brings nothing of others."""
    product = wheel["metadata"]["component"]
    image = {
        "bom-ref": "image",
        "type": "container",
        "name": product["name"],
        "version": product["version"],
        "licenses": product["licenses"],
    }
    purl = f"pkg:generic/{product['name']}-chart@{product['version']}"
    about = {**wheel["metadata"], "component": {**product, "purl": purl}}
    bare = {**wheel, "metadata": about}
    return _needing({**bare, "components": [image], "dependencies": [{"ref": "image"}]}, ["image"])


def of_files(bill: Bill, files: Iterable[Path]) -> Bill:
    """The bill with the sums of the files that it is of: of one as its own, else by their names."""
    sums = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(files)}
    hashes = {name: [{"alg": "SHA-256", "content": said}] for name, said in sums.items()}
    own: Bill = {}
    if len(hashes) == 1:
        (own["hashes"],) = hashes.values()
    own["externalReferences"] = [
        {"type": "distribution", "url": name, "hashes": said} for name, said in hashes.items()
    ]
    product = {**bill["metadata"]["component"], **(own if hashes else {})}
    return {**bill, "metadata": {**bill["metadata"], "component": product}}


def _on(wheel: Bill, base: Bill, kind: str, purl: str) -> Bill:
    """The bill with what it all stands on, as a product of this kind and of this name."""
    product = {**wheel["metadata"]["component"], "type": kind, "purl": purl}
    whole = {
        **wheel,
        "metadata": {**wheel["metadata"], "component": product},
        "components": [base, *wheel["components"]],
        "dependencies": [*wheel["dependencies"], {"ref": base["bom-ref"]}],
    }
    return _needing(whole, [base["bom-ref"]])


def write(folder: Path) -> None:
    """Those of wheel, sources, chart and image as files of this folder, of what lies there."""
    wheel = wheel_bill()
    image, chart = image_bill(wheel, DOCKERFILE.read_text()), chart_bill(wheel)
    for bill, pattern, what in (
        (wheel, "leafcast-*.whl", ""),
        (wheel, "leafcast-*.tar.gz", "-sources"),
        (chart, "leafcast-*.tgz", "-chart"),
        (image, "leafcast-image.tar", "-image"),
    ):
        write_bill(folder, of_files(bill, folder.glob(pattern)), what)


def write_bill(folder: Path, bill: Bill, what: str = "") -> None:
    """A bill as a file of this folder, named after the product, its version, and what it is of."""
    product = bill["metadata"]["component"]
    file = folder / f"{product['name']}-{product['version']}{what}.cdx.json"
    file.write_text(json.dumps(bill, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    sys.stderr.write(f"{file}\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
