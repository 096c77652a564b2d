"""What a node answers to asks for it: who it is, the state of a placement, objects it holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import version
from typing import Protocol

from relay.asker import Answerer, AskFailed
from relay.core.answers import BadArguments, node_answer, objects_answer, status_answer
from relay.core.node import Node
from relay.driver import Driver
from relay.ports import Object, Space
from schemas.asks import GET, NODE, STATUS, AskFault
from schemas.identity import NodePath
from schemas.objects import ObjectKey
from schemas.records import AskRecord
from schemas.selectors import LabelSelector


class AskedNode(Protocol):
    """A node that runs here; see leafcast.node_runtime."""

    path: NodePath

    @property
    def attached(self) -> bool: ...

    @property
    def driver(self) -> Driver | None: ...

    @property
    def node(self) -> Node | None: ...

    @property
    def objects_applied(self) -> int: ...

    @property
    def leaf_url(self) -> str:
        """Where servers of children dial in."""
        ...

    @property
    def cluster(self) -> Space | None:
        """The workload execution cluster, at an edge."""
        ...


def answerers(runtime: AskedNode) -> dict[str, Answerer]:
    """What a node that runs here answers to asks for it."""
    path = str(runtime.path)

    async def node(_record: AskRecord) -> object:
        driver = runtime.driver
        assert driver is not None
        role = "edge" if runtime.attached else "relay"
        return {
            **node_answer(driver.node, path),
            "role": "centre" if runtime.path.is_root else role,
            "version": version("leafcast"),
            "leafUrl": runtime.leaf_url,
            "objectsApplied": runtime.objects_applied,
            "mailWritten": driver.counters.mail_written,
            "noted": dict(driver.counters.noted),
        }

    async def status(record: AskRecord) -> object:
        if runtime.node is None:
            raise AskFailed(AskFault("NotReady", f"{path} is starting", path))
        return status_answer(runtime.node, path, record.arguments)

    async def get(record: AskRecord) -> object:
        return objects_answer(await _objects(runtime, record.arguments), record.arguments)

    return {GET: get, STATUS: status, NODE: node}


async def _objects(runtime: AskedNode, arguments: Mapping[str, str]) -> list[Object]:
    space, path = runtime.cluster, str(runtime.path)
    if space is None:
        raise AskFailed(AskFault("NoCluster", f"{path} has no cluster of its own", path))
    group, resource = arguments.get("group", ""), arguments.get("resource", "")
    namespace, name = arguments.get("namespace", ""), arguments.get("name", "")
    if not resource:
        raise BadArguments("resource: it is missing; name a plural such as configmaps")
    if name:
        found = await space.get(ObjectKey(group, resource, namespace, name))
        return [] if found is None else [found]
    selector = _selector(arguments.get("selector", ""))
    listing = await space.list(group, resource, namespace=namespace, selector=selector)
    return list(listing.objects)


def _selector(text: str) -> LabelSelector | None:
    if not text:
        return None
    try:
        form = json.loads(text)
        return LabelSelector.from_kubernetes(form)
    except (ValueError, AttributeError, TypeError) as error:
        raise BadArguments(f"selector: {error}") from error
