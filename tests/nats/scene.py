"""The stage of the isolation tests: the centre, and below it an intruder `ea` and a victim `eb`."""

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import NoRespondersError
from nats.errors import TimeoutError as NatsTimeout

from schemas.values.subjects import STREAMS
from tests.nats.conftest import Grove, Node, call, in_force, make_streams, until_answered

HASH = "0" * 64
SECRET = b"what only eb may see"
# Answers may be missing altogether; NATS says at once when nobody listens.
SILENCE_SECONDS = 0.25


@dataclass
class Scene:
    grove: Grove
    centre: Node
    edge_a: Node
    edge_b: Node
    relay: Client
    intruder: Client
    victim: Client
    space: Client
    victim_mail: list[Msg]

    async def stored(self) -> dict[str, object]:
        """All that is kept and is not a report of the intruder's own; consumers of others too."""
        found: dict[str, object] = {}
        for stream in (*STREAMS, "ea", "eb"):
            info = await call(
                self.relay, f"$JS.API.STREAM.INFO.{stream}", {"deleted_details": True}
            )
            for sequence in range(1, info["state"]["last_seq"] + 1):
                body = {"seq": sequence}
                answer = await call(self.relay, f"$JS.API.STREAM.MSG.GET.{stream}", body)
                message = answer.get("message")
                if message and not self.may_change(message["subject"]):
                    found[f"{stream}/{message['subject']}"] = (sequence, message.get("data"))
            found[stream] = (info["config"], info["state"]["consumer_count"])
        workloads = await call(self.space, "$JS.API.STREAM.INFO.KV_workloads")
        found["workloads"] = (workloads["config"], workloads["state"])
        eb = await call(self.relay, "$JS.API.CONSUMER.INFO.MAIL.eb")
        found["eb"] = (eb["config"], eb["created"], eb["delivered"], eb["ack_floor"])
        return found

    @staticmethod
    def may_change(subject: str) -> bool:
        return subject.startswith("lc.ea.") and "._mail." not in subject

    async def settle(self) -> None:
        """All that the intruder sent has been dealt with: one connection, one order."""
        await self.intruder.request("lc.ea._node.self", b"beat", timeout=30)
        await call(self.victim, "up.info")
        await in_force(self.relay)


@asynccontextmanager
async def staged(grove: Grove):
    async with grove:
        centre = await grove.plant()
        edge_a = await grove.plant("/ea", centre)
        edge_b = await grove.plant("/eb", centre)
        relay = await grove.connect(centre, centre.seeds.relay)
        await make_streams(relay, centre.path, "ea", "eb")
        victim = await grove.connect(edge_b, edge_b.seeds.uplink, inbox_prefix="_INBOX_eb")
        await until_answered(victim, "lc.eb._node.self")
        space = await grove.connect(centre, centre.seeds.space)
        bucket = {"name": "KV_workloads", "subjects": ["$KV.workloads.>"], "allow_direct": True}
        assert "error" not in await call(space, "$JS.API.STREAM.CREATE.KV_workloads", bucket)
        await space.request("$KV.workloads.k", SECRET, timeout=30)
        victim_mail: list[Msg] = []
        came = asyncio.Event()

        async def keep(message: Msg) -> None:
            victim_mail.append(message)
            came.set()

        # A consumer notices interest in exactly its deliver subject; a wildcard would not do.
        own = (".m", ".welcome", ".ask.get")
        for subject in [f"lc._d.eb{tail}" for tail in own]:
            await victim.subscribe(subject, cb=keep)
        await in_force(victim)
        await victim.request("lc.eb._stat.k", b"eb's report", timeout=30)
        await victim.request("lc.eb._node.self", b"beat", timeout=30)
        await victim.request("lc.eb._up.k", SECRET, timeout=30)
        for subject in ("lc.eb._mail.k", "lc.ea._mail.k", f"lc._blob.{HASH}", "lc._own.k"):
            body = SECRET if ".eb." in subject else b"of the centre"
            await relay.request(subject, body, timeout=30)
        async with asyncio.timeout(60):
            await came.wait()
        intruder = await grove.connect(edge_a, edge_a.seeds.uplink)
        await until_answered(intruder, "lc.ea._node.self")
        yield Scene(grove, centre, edge_a, edge_b, relay, intruder, victim, space, victim_mail)


async def answer_to(client: Client, subject: str, body: bytes = b"", **options) -> Msg | None:
    try:
        return await client.request(subject, body, timeout=SILENCE_SECONDS, **options)
    except (NoRespondersError, NatsTimeout):
        return None


def grants(answer: Msg | None) -> bool:
    """Whether it is more than a refusal."""
    if answer is None or (answer.headers and int(answer.headers.get("Status", "200")) >= 400):
        return False
    try:
        return "error" not in json.loads(answer.data)
    except ValueError:
        return True


async def ask_system(scene: Scene, request: str) -> Msg:
    """A question to the centre's server by the one who supervises it."""
    system = await scene.grove.connect(scene.centre, scene.centre.seeds.system)
    return await system.request(f"$SYS.REQ.SERVER.{request}", timeout=30)
