"""What was aborted is written back at the centre: what a placement sends of it, and no more."""

import pytest

from controllers.core.rollout.restoring import restoration
from controllers.restoring import NotRestorable, read_restoration
from leafcast.ask.session import CallFailed
from leafcast.changes.restorations import RestoredObject
from leafcast.changes.space_pair import SpacePair
from leafcast.cli.commands.rollout_restore import restore
from leafcast.daemon.verbs.rollout_ends import register_restoring
from relay.space_errors import Conflict
from schemas.objects.objects import ObjectKey
from tests.doubles.changing_daemon import CLOCK, DICE, ChangingDaemon
from tests.doubles.memory_space import MemorySpace
from tests.unit.centre_world import config, config_key
from tests.unit.test_rejected_revisions import abort, steered

KEY = ObjectKey("", "services", "shop", "web")


def service(**spec):
    metadata = {"name": "web", "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def living(obj, **spec):
    """As it is at the centre: what the space added is there, too."""
    metadata = {**obj["metadata"], "uid": "u1", "resourceVersion": "7", "generation": 3}
    return {**obj, "metadata": metadata, "spec": {**obj["spec"], **spec}, "status": {"a": 1}}


def test_what_the_centre_added_stays_and_what_is_sent_is_put_back():
    sent = service(ports=[{"port": 81}], type="NodePort", more="1")
    former = service(ports=[{"port": 80}], type="NodePort")
    live = living(sent, clusterIP="10.0.0.1", ports=[{"port": 81, "nodePort": 31000}])
    found = restoration(KEY, live, sent, former)
    assert found.object["spec"] == {
        "ports": [{"port": 80, "nodePort": 31000}],
        "type": "NodePort",
        "clusterIP": "10.0.0.1",
    }
    # It is held to the version that was read.
    assert found.object["metadata"]["resourceVersion"] == "7"
    assert "generation" not in found.object["metadata"]


def test_what_was_removed_is_created_and_what_was_added_is_deleted_by_its_uid():
    former = service(type="ClusterIP")
    assert restoration(KEY, None, None, former).object == former
    found = restoration(KEY, living(former), former, None)
    assert (found.object, found.uid) == (None, "u1")


async def test_the_former_content_is_read_back_and_what_changed_or_is_lost_is_refused(tmp_path):
    async with steered(tmp_path, config("a"), config("b")) as centre:
        await abort(centre, config("a", value="bad"))
    async with centre.running() as controllers:
        await controllers.caught_up()
        found = await read_restoration(controllers, "shop", config_key("a"))
        assert found.object["data"] == {"key": "1"}
        with pytest.raises(NotRestorable):
            await read_restoration(controllers, "shop", config_key("b"))
        arms = controllers.translator.placements.rejections.arms("shop")
        del centre.relay.blobs[arms.target.entries[config_key("a")].address]
        with pytest.raises(NotRestorable) as refused:
            await read_restoration(controllers, "shop", config_key("a"))
        assert refused.value.message == "shop/configmaps/a: its former content is lost"


class Writing(MemorySpace):
    """Notes what is written, and says that somebody was faster with some objects."""

    def __init__(self, changed=()):
        super().__init__(CLOCK, DICE)
        self.changed, self.written = changed, []

    async def replace(self, obj, manager, *, dry_run=False):
        if obj["metadata"]["name"] in self.changed:
            raise Conflict("Conflict", "it is at another version")
        if not dry_run:
            self.written.append(obj["metadata"]["name"])
        return obj

    async def delete(self, key, uid=""):
        self.written.append(f"no {key.name}")
        return True


class Restoring(ChangingDaemon):
    """Answers how these are restored."""

    def __init__(self, workloads, restored):
        super().__init__(workloads, workloads)
        register_restoring(self.api, self.restored_of, SpacePair(workloads, workloads), self.verbs)
        self._restored = restored

    async def restored_of(self, placement):
        assert placement == "shop"
        return self._restored


def rejected(resource, namespace, name, *, was_there=True):
    obj = {"metadata": {"name": name, "resourceVersion": "1"}} if was_there else None
    return RestoredObject(ObjectKey("", resource, namespace, name), obj, "u")


REJECTED = (
    rejected("configmaps", "shop", "a"),
    rejected("configmaps", "shop", "b"),
    rejected("configmaps", "shop", "c", was_there=False),
    rejected("namespaces", "", "shop", was_there=False),
)


async def test_all_are_judged_before_the_first_is_written():
    space = Writing(changed={"b"})
    with pytest.raises(CallFailed) as refused:
        await restore(Restoring(space, REJECTED).session, "shop", lambda _: None)
    assert refused.value.message == "shop/configmaps/b: somebody changed it meanwhile"
    assert space.written == []


async def test_what_changes_while_it_is_written_ends_it_with_the_count_of_what_is_restored():
    class Late(Writing):
        async def replace(self, obj, manager, *, dry_run=False):
            made = await super().replace(obj, manager, dry_run=dry_run)
            self.changed = () if dry_run else {"b"}
            return made

    space = Late()
    with pytest.raises(CallFailed, match="meanwhile; 1 of 4 objects are restored"):
        await restore(Restoring(space, REJECTED).session, "shop", lambda _: None)
    assert space.written == ["a"]


async def test_what_was_added_is_deleted_but_nothing_with_which_more_would_go():
    space, said = Writing(), []
    assert await restore(Restoring(space, REJECTED).session, "shop", said.append) == 4
    assert space.written == ["a", "b", "no c"]
    assert said[2] == "shop/configmaps/c deleted"
    assert said[3].startswith("namespaces/shop was added, and is left")
