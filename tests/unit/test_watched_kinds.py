"""What an edge follows: each kind as a whole, and where that is forbidden in its namespaces."""

import pytest

from relay.space_port import Interest, Kind, KindsServed, Synced, Unserved
from relay.syncer.watched_kinds import WatchedKinds, scope_of
from schemas.objects.objects import ObjectKey

MAPS, ROLES, SPACES = ("", "configmaps"), ("rbac", "clusterroles"), ("", "namespaces")
A = ObjectKey(*MAPS, "shop", "a")
B = ObjectKey(*MAPS, "web", "b")
ROLE = ObjectKey(*ROLES, "", "reader")
SHOP = ObjectKey(*SPACES, "", "shop")
KINDS = tuple(
    Kind(name[0], "v1", name[1], "Kind", namespaced=name == MAPS) for name in (MAPS, ROLES, SPACES)
)


def watching(*keys):
    watched = WatchedKinds()
    watched.serves(KindsServed(KINDS))
    watched.want(set(keys))
    watched.told_all(Synced(watched.interests.wanted))
    return watched


def scopes(watched):
    return {scope_of(interest) for interest in watched.interests.wanted}


def interest_in(watched, scope):
    (found,) = (it for it in watched.interests.wanted if scope_of(it) == scope)
    return found


def forbid(watched, scope, reason="Forbidden"):
    return watched.unserved(Unserved(interest_in(watched, scope), reason, "no"), "now")


def test_a_kind_is_followed_as_a_whole_whatever_its_namespaces():
    watched = watching(A, B, ROLE, SHOP)
    assert scopes(watched) == {(*MAPS, ""), (*ROLES, ""), (*SPACES, "")}
    assert watched.synced
    assert watched.may_act(A)


def test_a_kind_that_may_not_be_is_followed_in_the_namespaces_of_its_objects():
    watched = watching(A, B, ROLE)
    forbid(watched, (*MAPS, ""))
    assert scopes(watched) == {(*MAPS, "shop"), (*MAPS, "web"), (*ROLES, "")}
    assert interest_in(watched, (*MAPS, "shop")).namespace == "shop"
    assert (watched.may_act(A), watched.may_act(ROLE), watched.trouble(A)) == (False, True, "")
    assert watched.told_all(Synced(watched.interests.wanted)) == {(*MAPS, "shop"), (*MAPS, "web")}
    assert watched.may_act(A)
    assert (watched.synced, watched.unready()) == (True, "")


def test_namespaces_that_may_not_be_listed_are_followed_by_their_names():
    watched = watching(SHOP, A)
    forbid(watched, (*SPACES, ""))
    found = interest_in(watched, (*SPACES, "shop"))
    assert (found.name, found.namespace) == ("shop", "")


def test_a_namespace_that_is_forbidden_holds_up_no_other():
    watched = watching(A, B)
    forbid(watched, (*MAPS, ""))
    watched.told_all(Synced(watched.interests.wanted))
    assert forbid(watched, (*MAPS, "web")) == (*MAPS, "web")
    assert watched.trouble(B).startswith("Forbidden")
    assert (watched.may_act(A), watched.may_act(B), watched.synced) == (True, False, False)
    assert watched.listed((*MAPS, "web"))
    assert watched.may_act(B)


@pytest.mark.parametrize(
    ("key", "reason"), [(ROLE, "Forbidden"), (A, "ServiceUnavailable"), (A, "NotFound")]
)
def test_what_has_no_parts_or_is_only_away_is_followed_as_before(key, reason):
    watched = watching(key)
    whole = (*key.group_resource, "")
    forbid(watched, whole, reason)
    assert scopes(watched) == {whole}
    assert watched.trouble(key)


def test_a_namespace_that_comes_later_is_followed_too():
    watched = watching(A)
    forbid(watched, (*MAPS, ""))
    watched.want({A, B})
    assert scopes(watched) == {(*MAPS, "shop"), (*MAPS, "web")}
    watched.want({B})
    assert scopes(watched) == {(*MAPS, "web")}


def test_an_interest_in_one_object_differs_from_one_in_all():
    assert scope_of(Interest(*SPACES, name="shop")) != scope_of(Interest(*SPACES))
