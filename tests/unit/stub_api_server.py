"""An API server's answers, as a test says them: for faults that no real one shows on demand."""

import asyncio
import json
from contextlib import asynccontextmanager, suppress
from urllib.parse import parse_qsl, urlsplit

from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.kubernetes.kubeconfig import Kubeconfig
from relay.adapters.kubernetes.space import KubernetesSpace

CONFIG_MAP_KIND = {
    "name": "configmaps",
    "kind": "ConfigMap",
    "namespaced": True,
    "verbs": ["get", "list", "watch", "patch"],
}


class StubServer:
    """Answers by path; an answer is a body, (status, body), or a function of the query."""

    def __init__(self):
        self.asked = []
        self.headers = []
        self.answers = {
            "/api/v1/namespaces/kube-system": {"metadata": {"uid": "one", "name": "kube-system"}},
            "/api": {"kind": "APIVersions", "versions": ["v1"]},
            "/apis": {"kind": "APIGroupList", "groups": []},
            "/api/v1": {"kind": "APIResourceList", "resources": [CONFIG_MAP_KIND]},
            "/api/v1/namespaces": {"metadata": {"resourceVersion": "7"}, "items": []},
        }
        self.connections = []
        self.prefix = ""
        self.url = ""

    def paths(self, path):
        """The queries of all requests for a path."""
        return [query for asked, query in self.asked if asked == path]

    async def serve(self, reader, writer):
        self.connections.append(asyncio.current_task())
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while True:
                    await self._one(reader, writer)
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _one(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {
            name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:])
        }
        await reader.readexactly(int(headers.get("content-length", 0)))
        target = urlsplit(head[0].split(" ")[1])
        query = dict(parse_qsl(target.query))
        path = target.path.removeprefix(self.prefix) if self.prefix else target.path
        self.asked.append((path, query))
        self.headers.append(headers)
        answer = self.answers.get(path, (404, {"kind": "Status", "reason": "NotFound"}))
        if callable(answer):
            answer = answer(query)
        status, body = answer if isinstance(answer, tuple) else (200, answer)
        if hasattr(body, "__aiter__"):
            await self._stream(writer, body)
            return
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        extra = "Retry-After: 0\r\n" if status == 429 else ""
        said = f"HTTP/1.1 {status} Said\r\nContent-Length: {len(data)}\r\n{extra}\r\n"
        writer.write(said.encode() + data)
        await writer.drain()

    async def _stream(self, writer, chunks):
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        async for chunk in chunks:
            writer.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()


@asynccontextmanager
async def stub_server():
    """One that runs, on a port of its own choosing."""
    stub = StubServer()
    server = await asyncio.start_server(stub.serve, "127.0.0.1", 0)
    stub.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield stub
    finally:
        server.close()
        for connection in stub.connections:
            connection.cancel()
        await asyncio.gather(*stub.connections, return_exceptions=True)


@asynccontextmanager
async def space_on(stub, folder, *, clock=None, user=None, prefix=""):
    """A space on it, by a kubeconfig in the folder."""
    stub.prefix = prefix
    file = write_kubeconfig(folder, stub.url + prefix, user or {"token": "secret"})
    space = KubernetesSpace(Kubeconfig(str(file)), clock or SystemClock(), SystemDice())
    try:
        yield space
    finally:
        await space.close()


def write_kubeconfig(folder, server, user):
    file = folder / "kubeconfig"
    form = {
        "current-context": "hub",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "hub", "context": {"cluster": "c", "user": "u"}}],
    }
    file.write_text(json.dumps(form))
    return file


def config_map_list(*names, revision="5", more=""):
    items = [
        {"metadata": {"name": name, "namespace": "shop", "resourceVersion": "1"}} for name in names
    ]
    metadata = {"resourceVersion": revision, "continue": more}
    return {"kind": "ConfigMapList", "metadata": metadata, "items": items}


def event(kind, name, revision, **data):
    metadata = {"name": name, "namespace": "shop", "resourceVersion": revision}
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


async def silent(*chunks):
    """A watch that brings these, then nothing."""
    for chunk in chunks:
        yield chunk
    await asyncio.Event().wait()


async def ended(*chunks):
    """A watch that brings these, and ends."""
    for chunk in chunks:
        yield chunk
