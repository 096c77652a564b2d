"""Which spaces a node works on, as configuration says it: a word, or a context of a kubeconfig.

`embedded` lies on the node's own nats-server; `simulated` is a cluster that only pretends;
`in-cluster` is the one whose Pod this is; `{kubeconfig: FILE, context: NAME}` is any API server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from schemas.values.faults import Fault, Faulty

_FIELDS = ("kubeconfig", "context")


@dataclass(frozen=True, slots=True)
class SpaceSetting:
    """One space; `kubeconfig` "" is the file that kubectl takes, `context` "" its current one."""

    kind: str
    kubeconfig: str = ""
    context: str = ""

    @property
    def title(self) -> str:
        """The space, for people."""
        if self.kind != "kubeconfig":
            return f"the {self.kind} space"
        file = self.kubeconfig or "kubectl's own kubeconfig"
        return f'context "{self.context}" of {file}' if self.context else file

    @property
    def is_kubernetes(self) -> bool:
        return self.kind in ("kubeconfig", "in-cluster")

    def form(self) -> str | dict[str, str]:
        """As configuration says it."""
        if self.kind != "kubeconfig":
            return self.kind
        return {field: getattr(self, field) for field in _FIELDS if getattr(self, field)}

    def seen_from(self, folder: Path) -> SpaceSetting:
        """The same, its file named so that it is found from anywhere."""
        if not self.kubeconfig:
            return self
        return replace(self, kubeconfig=str(folder / Path(self.kubeconfig).expanduser()))


EMBEDDED, SIMULATED = SpaceSetting("embedded"), SpaceSetting("simulated")
IN_CLUSTER = SpaceSetting("in-cluster")
_CENTRE_WORDS = {one.kind: one for one in (EMBEDDED, IN_CLUSTER)}
_EDGE_WORDS = {one.kind: one for one in (SIMULATED, IN_CLUSTER)}


def centre_space(form: object) -> SpaceSetting:
    """Read one of the centre's spaces; raises Faulty."""
    return _read(form, _CENTRE_WORDS)


def edge_cluster(form: object) -> SpaceSetting:
    """Read what an edge is attached to; raises Faulty."""
    return _read(form, _EDGE_WORDS)


def _read(form: object, words: Mapping[str, SpaceSetting]) -> SpaceSetting:
    remedy = f"write {', '.join(words)}, or kubeconfig: FILE and context: NAME"
    if isinstance(form, SpaceSetting):
        return form
    if isinstance(form, str) and form in words:
        return words[form]
    if not isinstance(form, Mapping):
        raise Faulty(Fault("", "not a space", remedy))
    faults = [Fault(str(name), "unknown field", remedy) for name in form if name not in _FIELDS]
    faults += [
        Fault(name, "not a text", "quote it")
        for name in _FIELDS
        if not isinstance(form.get(name, ""), str)
    ]
    if not faults and not any(form.get(name) for name in _FIELDS):
        faults = [Fault("", "names no API server", remedy)]
    if faults:
        raise Faulty(*faults)
    return SpaceSetting("kubeconfig", form.get("kubeconfig", ""), form.get("context", ""))


@dataclass(frozen=True, slots=True)
class CentreSpaces:
    """All spaces of a centre: at least one of each sort."""

    workloads: tuple[SpaceSetting, ...] = (EMBEDDED,)
    inventory: tuple[SpaceSetting, ...] = (EMBEDDED,)
    # Whether workload objects may come to life where they are written.
    allow_live: bool = False

    def named(self) -> tuple[SpaceSetting, ...]:
        """All of them, those of workloads first."""
        return self.workloads + self.inventory

    def form(self) -> dict[str, Any]:
        """As JSON says it."""
        return {
            "workloads": [one.form() for one in self.workloads],
            "inventory": [one.form() for one in self.inventory],
            "allowLive": self.allow_live,
        }


def read_centre_spaces(form: Mapping[str, Any] | None) -> CentreSpaces:
    """What `CentreSpaces.form` said; the embedded ones if nothing was. Raises Faulty."""
    if form is None:
        return CentreSpaces()
    live = form.get("allowLive") is True
    return CentreSpaces(_all(form["workloads"]), _all(form["inventory"]), allow_live=live)


def _all(forms: Iterable[object]) -> tuple[SpaceSetting, ...]:
    return tuple(map(centre_space, forms))
