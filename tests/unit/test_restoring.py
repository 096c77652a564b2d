"""What was aborted is written back at the centre: what a placement sends of it, and no more."""

import pytest

from controllers.core.rollout.restoring import restoration
from controllers.restoring import NotRestorable, read_restoration
from leafcast.ask.rejected import restore
from leafcast.ask.session import CallFailed
from relay.ports import Conflict
from schemas.objects.objects import ObjectKey
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


class Session:
    """Answers what is to be written, and writes it, unless somebody was faster."""

    def __init__(self, answers, changed=()):
        self.answers, self.changed, self.written = answers, changed, []
        self.workloads = self

    async def call(self, verb, **arguments):
        if verb == "rejected":
            return {"keys": [list(key) for key in self.answers]}
        return self.answers[tuple(arguments["key"])]

    async def replace(self, obj, _manager, *, dry_run):
        if obj["metadata"]["name"] in self.changed:
            raise Conflict("Conflict", "it is at another version")
        if not dry_run:
            self.written.append(obj["metadata"]["name"])

    async def delete(self, key, _uid):
        self.written.append(f"no {key.name}")
        return True


def write(name):
    return {"object": {"metadata": {"name": name, "resourceVersion": "1"}}, "uid": "u"}


ANSWERS = {
    ("", "configmaps", "shop", "a"): write("a"),
    ("", "configmaps", "shop", "b"): write("b"),
    ("", "configmaps", "shop", "c"): {"object": None, "uid": "u"},
    ("", "namespaces", "", "shop"): {"object": None, "uid": "u"},
}


async def test_all_are_judged_before_the_first_is_written():
    session = Session(ANSWERS, changed={"b"})
    with pytest.raises(CallFailed) as refused:
        await restore(session, "shop", lambda _: None)
    assert refused.value.message == "shop/configmaps/b: somebody changed it meanwhile"
    assert session.written == []


async def test_what_was_added_is_deleted_but_nothing_with_which_more_would_go():
    session, said = Session(ANSWERS), []
    assert await restore(session, "shop", said.append) == 4
    assert session.written == ["a", "b", "no c"]
    assert said[2] == "shop/configmaps/c deleted"
    assert said[3].startswith("namespaces/shop was added, and is left")
