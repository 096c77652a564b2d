"""The shop that the demo delivers hangs together, and travels with the installed package."""

from importlib.resources import files
from typing import Any

import yaml

Object = dict[str, Any]


def shop() -> list[Object]:
    sources = (item for item in files("leafcast").joinpath("shop").iterdir())
    texts = [item.read_text() for item in sources if item.name.endswith(".yaml")]
    return [document for text in texts for document in yaml.safe_load_all(text)]


def named(kind: str) -> dict[str, Object]:
    return {obj["metadata"]["name"]: obj for obj in shop() if obj["kind"] == kind}


def test_the_package_carries_the_whole_shop():
    assert set(named("Deployment")) == {"web", "catalog", "cart", "checkout", "cache"}
    assert set(named("Service")) == set(named("Deployment"))
    assert set(named("EdgePlacement")) == {"shop"}


def test_all_but_namespace_and_placement_lie_in_the_namespace_shop():
    outside = {obj["kind"] for obj in shop() if obj["metadata"].get("namespace") != "shop"}
    assert outside == {"Namespace", "EdgePlacement"}


def test_every_service_finds_pods_and_their_port():
    deployments = named("Deployment")
    for name, service in named("Service").items():
        template = deployments[name]["spec"]["template"]
        assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()
        ports = {port["name"] for port in template["spec"]["containers"][0]["ports"]}
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports


def test_every_deployment_selects_its_own_pods_and_finds_its_settings():
    config_maps, accounts = named("ConfigMap"), named("ServiceAccount")
    for deployment in named("Deployment").values():
        spec = deployment["spec"]
        pod = spec["template"]["spec"]
        assert spec["selector"]["matchLabels"].items() <= (
            spec["template"]["metadata"]["labels"].items()
        )
        assert pod["serviceAccountName"] in accounts
        wanted = [volume["configMap"]["name"] for volume in pod.get("volumes", [])]
        for container in pod["containers"]:
            wanted += [source["configMapRef"]["name"] for source in container.get("envFrom", [])]
            mounts = {mount["name"] for mount in container.get("volumeMounts", [])}
            assert mounts == {volume["name"] for volume in pod.get("volumes", [])}
        assert set(wanted) <= set(config_maps)
