"""What the annotations of a placement ask for: what it waits for, and how it moves."""

from __future__ import annotations

from collections.abc import Mapping

from schemas import names
from schemas.faults import Fault, Faulty
from schemas.records import DEPENDENCIES_MAX

DEPENDS_ON = "leafcast.io/depends-on"


def check_annotations(name: str, annotations: Mapping[str, str]) -> None:
    """Refuse what a placement's annotations cannot mean; raises Faulty."""
    waits_for = dependencies_of(annotations)
    path = f"annotations[{DEPENDS_ON}]"
    if len(waits_for) > DEPENDENCIES_MAX:
        said = f"{len(waits_for)} placements, at most {DEPENDENCIES_MAX}"
        raise Faulty(Fault(path, said, "name fewer"))
    for each in waits_for:
        if fault := names.subdomain_fault(each):
            raise Faulty(Fault(path, fault, "name placements of the same kind: platform, crds"))
        if each == name:
            raise Faulty(Fault(path, "it names the placement itself", f"leave {name} out"))


def dependencies_of(annotations: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the placements that one waits for, each once."""
    listed = (part.strip() for part in annotations.get(DEPENDS_ON, "").split(","))
    return tuple(dict.fromkeys(filter(None, listed)))
