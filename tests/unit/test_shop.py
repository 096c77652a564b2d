"""The shop that the demo delivers hangs together, and travels with the installed package."""

from importlib.resources import files
from typing import Any

from schemas.api.parsing import parse_kind
from schemas.api.placement import EdgePlacement
from schemas.objects.manifest_files import load_manifests

Object = dict[str, Any]


def shop() -> list[Object]:
    """All objects, as the program itself reads them: an invalid one raises."""
    sources = files("leafcast").joinpath("shop").iterdir()
    return [
        dict(loaded.object)
        for source in sources
        if source.name.endswith(".yaml")
        for loaded in load_manifests(source.read_text(), source.name)
    ]


def named(kind: str) -> dict[str, Object]:
    return {obj["metadata"]["name"]: obj for obj in shop() if obj["kind"] == kind}


def test_the_package_carries_the_whole_shop():
    assert set(named("Deployment")) == {"web", "catalog", "cart", "checkout", "cache"}
    assert set(named("Service")) == set(named("Deployment"))
    assert set(named("EdgePlacement")) == {"shop"}


def test_the_placement_is_valid_and_goes_everywhere():
    placement = parse_kind(named("EdgePlacement")["shop"])
    assert isinstance(placement, EdgePlacement)
    assert [selector.is_everything for selector in placement.spec.location_selectors] == [True]


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
