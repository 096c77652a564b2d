"""A syncer on a cluster with the usual controllers: what ends, and what they never give."""

import asyncio
import uuid

import pytest

from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.kubernetes.kubeconfig import Kubeconfig
from relay.adapters.kubernetes.space import KubernetesSpace
from schemas.objects import ObjectKey
from tests.contract.syncing import Bench

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def server(kube_bed):
    """One cluster for all tests of this module: each keeps to a namespace of its own."""
    with kube_bed.server(workloads=True) as server:
        yield server


@pytest.fixture
def place(server):
    name = f"t-{uuid.uuid4().hex[:8]}"
    server.kubectl("create", "namespace", name)
    return name


@pytest.fixture
async def bench(server):
    space = KubernetesSpace(Kubeconfig(str(server.kubeconfig)), SystemClock(), SystemDice())
    yield Bench(space, SystemClock(), SystemDice())
    await space.kinds()
    await space.close()


async def kubectl(server, *arguments, stdin=""):
    return await asyncio.to_thread(server.kubectl, *arguments, stdin=stdin)


def job(place, name="once", image="job:1", ttl=1, **spec):
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": image}]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": place},
        "spec": {"ttlSecondsAfterFinished": ttl, "template": {"spec": pod}, **spec},
    }


async def test_a_job_that_its_cluster_takes_after_its_time_ran_once_until_it_is_changed(
    server, place, bench
):
    key = ObjectKey("batch", "jobs", place, "once")

    async def is_gone():
        return await bench.space.get(key) is None

    async with bench.running():
        bench.want(job(place, ttl=0))
        await bench.until(lambda: (done := bench.done.of(key)) and done.ended)
        await bench.until(is_gone)
        await bench.settled()
        assert bench.space.applied.count("once") == 1
        assert bench.said[key].health == "healthy"
        first = bench.done.of(key).uid
        bench.want(job(place, image="job:2"))
        await bench.until(lambda: (done := bench.done.of(key)).uid != first and done.ended)
    # It is taken while nobody looks.
    await bench.until(is_gone)
    bench.said.clear()
    async with bench.running():
        bench.want(job(place, image="job:2"))
        await bench.until(lambda: key in bench.said and bench.said[key].present)
        await bench.settled()
        assert bench.space.applied.count("once") == 2
        assert bench.said[key].health == "healthy"


async def test_of_a_job_that_ended_while_nobody_looked_the_clusters_events_tell(
    server, place, bench
):
    key = ObjectKey("batch", "jobs", place, "once")
    async with bench.running():
        bench.want(job(place))
        await bench.settled()

    async def is_gone():
        return await bench.space.get(key) is None

    done = bench.done.of(key)
    await bench.until(is_gone)
    # As a node finds it that was killed at once after it had made the Job.
    [slot] = [slot for slot, held in bench.done.held.items() if held.key == key]
    bench.done.held[slot] = type(done)(
        *[getattr(done, name) for name in done.__struct_fields__][:14]
    )
    async with bench.running():
        bench.want(job(place))
        await bench.until(lambda: (done := bench.done.of(key)) and done.ended)
        await bench.settled()
        assert bench.space.applied.count("once") == 1
