"""Argo CD's part in tests: its layout of customizations, and a Lua that runs them as it does."""

from pathlib import Path

import yaml

FOLDER = Path(__file__).resolve().parents[1] / "deploy" / "argocd"
CUSTOMIZATIONS = FOLDER / "resource_customizations"


def read(path):
    return yaml.safe_load(path.read_text())


def of_kind(obj):
    """The folder of an object's kind."""
    return CUSTOMIZATIONS / obj["apiVersion"].partition("/")[0] / obj["kind"]


def run(script, obj):
    """What a script makes of an object, which it has as `obj`; Argo CD's Lua is 5.1, and safe."""
    from lupa import lua51

    lua = lua51.LuaRuntime(unpack_returned_tuples=True)
    for name in ("io", "debug", "dofile", "loadfile", "python"):
        lua.globals()[name] = None
    lua.globals()["obj"] = lua.table_from(obj, recursive=True)
    return plain(lua.execute(script.read_text()))


def plain(value):
    """A value of Lua as one of JSON."""
    if not hasattr(value, "items"):
        return value
    found = {key: plain(item) for key, item in value.items()}
    if found and list(found) == list(range(1, len(found) + 1)):
        return list(found.values())
    return found


def health(obj):
    """How an object is, in Argo CD's words, and the message."""
    said = run(of_kind(obj) / "health.lua", obj)
    return said["status"], said["message"]


def settings():
    """The same customizations as Argo CD's settings have them, in its ConfigMap argocd-cm."""
    data = {}
    for script in sorted(CUSTOMIZATIONS.glob("*/*/health.lua")):
        folder = script.parent
        name = f"{folder.parent.name}_{folder.name}"
        data[f"resource.customizations.health.{name}"] = script.read_text()
        if (folder / "actions").exists():
            definitions = [
                {"name": path.parent.name, "action.lua": path.read_text()}
                for path in sorted(folder.glob("actions/*/action.lua"))
            ]
            discovery = (folder / "actions" / "discovery.lua").read_text()
            said = {"discovery.lua": discovery, "definitions": definitions}
            data[f"resource.customizations.actions.{name}"] = text(said)
    metadata = {"name": "argocd-cm", "namespace": "argocd"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


class Plain(yaml.SafeDumper):
    """Writes texts of several lines as they are."""


def as_block(dumper, value):
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


Plain.add_representer(str, as_block)


def text(value):
    return yaml.dump(value, Dumper=Plain, sort_keys=False, width=1000)


if __name__ == "__main__":
    print("# kubectl -n argocd patch configmap argocd-cm --patch-file argocd-cm.yaml")
    print(text(settings()), end="")
