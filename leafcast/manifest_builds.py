"""Files that lie among manifests and are none: what Kustomize and Helm build manifests from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

_KUSTOMIZE_GROUP = "kustomize.config.k8s.io/"
_CHART_FIELDS = frozenset({"apiVersion", "name", "version"})
CHART = "Chart.yaml"
TEMPLATES = "templates"


def built_from(origin: str, text: str) -> str:
    """What such a file is, and how its manifests are made; empty for a file of manifests."""
    file = PurePath(origin)
    stem, named = file.stem, file.suffix in (".yaml", ".yml")
    folder = str(file.parent)
    if _KUSTOMIZE_GROUP in text or (named and stem in ("kustomization", "Chart", "values")):
        root = _root(text, origin)
        if str(root.get("apiVersion", "")).startswith(_KUSTOMIZE_GROUP) or (
            stem == "kustomization" and not _is_typed(root)
        ):
            return f"Kustomize builds objects from it: kubectl kustomize {folder}"
        if stem == "Chart" and "kind" not in root and root.keys() >= _CHART_FIELDS:
            return f"a Helm chart: helm template NAME {folder}"
        if stem == "values" and not _is_typed(root):
            return f"values of a Helm chart: helm template NAME CHART -f {origin}"
    return ""


def _root(text: str, origin: str) -> Mapping[str, Any]:
    """The first document; nothing if it cannot be read, or is no mapping."""
    # To read YAML is loaded only by who has some to read.
    from schemas.objects.yaml_documents import InvalidManifest, read_documents  # noqa: PLC0415

    try:
        document = next(read_documents(text, origin), None)
    except InvalidManifest:
        return {}
    return document.root if document is not None and isinstance(document.root, dict) else {}


def _is_typed(root: Mapping[str, Any]) -> bool:
    return "apiVersion" in root and "kind" in root
