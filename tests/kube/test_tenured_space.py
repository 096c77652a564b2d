"""What a member that is active no more wrote late is refused by a real API server, verb by verb."""

import pytest

from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.kubernetes.kubeconfig import Kubeconfig
from relay.adapters.kubernetes.space import KubernetesSpace
from relay.claims.leases import SharedSpace
from relay.claims.tenured_space import TenuredSpace
from relay.space_errors import UNAVAILABLE, Conflict, FieldConflict, SpaceError
from relay.space_port import FinalizingSpace
from schemas.objects.objects import ObjectKey
from schemas.values.groups import GROUP, VERSION

pytestmark = [pytest.mark.kube, pytest.mark.timeout(120)]
LATE, NEW = "late", "successor"
FINALIZER = "example.com/held"


@pytest.fixture
async def space(server):
    made = KubernetesSpace(Kubeconfig(str(server.kubeconfig)), SystemClock(), SystemDice())
    yield made
    await made.close()


class Stopped:
    """The tenure of a member that is stopped once it is confirmed, and finds it over after that."""

    def __init__(self, meanwhile):
        self.meanwhile, self.asked = meanwhile, 0

    async def __call__(self):
        self.asked += 1
        if self.asked > 1:
            raise SpaceError(UNAVAILABLE, "another member is active")
        await self.meanwhile()


def settings(place, said, **more):
    metadata = {"name": "settings", "namespace": place, **more}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"by": said}}


def location(name, said):
    named, of = {"name": name, "labels": {"by": said}}, f"{GROUP}/{VERSION}"
    spec = {"resource": {"group": GROUP, "version": VERSION, "resource": "synctargets"}}
    return {"apiVersion": of, "kind": "Location", "metadata": named, "spec": spec}


LATE_WRITES = {
    "apply": lambda space, key: space.apply(settings(key.namespace, LATE), "leafcast"),
    "labels": lambda space, key: space.set_labels(key, {"by": LATE}, "leafcast"),
    "delete": lambda space, key: space.delete(key),
    "disown": lambda space, key: space.disown(key, UIDS[key], ["leafcast"], ["mark"]),
    "release": lambda space, key: space.release(key, FINALIZER, UIDS[key]),
}
UIDS = {}


@pytest.mark.parametrize("verb", LATE_WRITES)
async def test_nothing_lands_late_on_what_the_successor_wrote(space, place, verb):
    key = ObjectKey("", "configmaps", place, "settings")
    first = settings(place, "first", finalizers=[FINALIZER])
    UIDS[key] = (await space.apply(first, "leafcast"))["metadata"]["uid"]
    written = []

    async def successor():
        wish = settings(place, NEW, finalizers=[FINALIZER])
        written.append(await TenuredSpace(space, at_once).apply(wish, "leafcast"))

    tenure = Stopped(successor)
    with pytest.raises(SpaceError, match="another member is active"):
        await LATE_WRITES[verb](TenuredSpace(space, tenure), key)
    assert [await space.get(key)] == written
    # Whose tenure goes on does what it was asked.
    await LATE_WRITES[verb](TenuredSpace(space, at_once), key)
    assert (await space.get(key))["metadata"]["resourceVersion"] != version_of(written[0])
    await TenuredSpace(space, at_once).release(key, FINALIZER, UIDS[key])


async def test_a_status_that_is_written_late_does_not_land(space, place):
    key = ObjectKey(GROUP, "locations", "", place)
    await space.apply(location(place, "first"), "leafcast")
    written = []

    async def successor():
        written.append(await TenuredSpace(space, at_once).set_status(key, status(3)))

    with pytest.raises(SpaceError, match="another member is active"):
        await TenuredSpace(space, Stopped(successor)).set_status(key, status(2))
    assert [await space.get(key)] == written
    await TenuredSpace(space, at_once).set_status(key, status(4))
    assert (await space.get(key))["status"] == status(4)


@pytest.mark.parametrize("of_ours", [False, True])
async def test_what_the_successor_made_is_not_changed_by_who_read_that_nothing_is_there(
    space, place, of_ours
):
    wish = (lambda said: location(place, said)) if of_ours else (lambda said: settings(place, said))
    key = await space.key_of(wish(LATE))
    written = []

    async def successor():
        written.append(await TenuredSpace(space, at_once).apply(wish(NEW), "leafcast"))

    with pytest.raises(SpaceError, match="another member is active"):
        await TenuredSpace(space, Stopped(successor)).apply(wish(LATE), "leafcast")
    assert [await space.get(key)] == written


async def test_what_a_person_writes_meanwhile_is_kept_and_the_write_is_made_anew(space, place):
    key = ObjectKey("", "configmaps", place, "settings")
    await space.apply(settings(place, "first"), "leafcast")
    told = []

    async def person():
        if not told:
            told.append(await space.set_labels(key, {"of": "a-person"}, "person"))

    applied = await TenuredSpace(space, person).apply(settings(place, NEW), "leafcast")
    assert (applied["data"], applied["metadata"]["labels"]) == ({"by": NEW}, {"of": "a-person"})


async def test_a_wish_for_a_version_is_refused_once_and_what_others_own_is_theirs(space, place):
    key = ObjectKey("", "configmaps", place, "settings")
    held = TenuredSpace(space, at_once)
    assert isinstance(held, SharedSpace)
    assert isinstance(held, FinalizingSpace)
    made = await held.apply(settings(place, "first"), "leafcast")
    await held.set_labels(key, {"of": "a-person"}, "person")
    outdated = settings(place, NEW, resourceVersion=version_of(made))
    with pytest.raises(Conflict, match="its version is"):
        await held.apply(outdated, "leafcast")
    with pytest.raises(FieldConflict):
        await held.apply(settings(place, NEW), "another", force=False)
    with pytest.raises(Conflict, match="its uid is"):
        await held.delete(key, "another")
    assert await held.delete(key, made["metadata"]["uid"])
    assert not await held.delete(key)
    with pytest.raises(SpaceError, match="there is no such object"):
        await held.set_labels(key, {"of": "nobody"}, "person")
    with pytest.raises(Conflict, match="it is gone"):
        await held.apply(outdated, "leafcast")


async def at_once():
    """The tenure of who is active."""


def version_of(obj):
    return obj["metadata"]["resourceVersion"]


def status(clusters):
    return {"instances": clusters, "availableInstances": clusters}
