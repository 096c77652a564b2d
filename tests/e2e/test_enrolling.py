"""A site is let in by a token: it asks, a person approves, and its key never leaves it."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.awaiting import until
from tests.e2e.join_tree import Site, Tree
from tests.e2e.page_hand import did_at_page

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Iterator[Tree]:
    grown = Tree(tmp_path_factory.mktemp("enrolling"))
    grown.run("up", "--regions", "1", "--sites", "1")
    try:
        yield grown
    finally:
        for site in grown.sites:
            site.end()
        grown.run("down")


def invite(tree: Tree, path: str, *options: str) -> Path:
    file = tree.folder / f"{path.strip('/').replace('/', '-')}-{time.monotonic_ns()}.join"
    tree.run("node", "add", path, "-o", file, *options)
    return file


def asking(tree: Tree) -> list[str]:
    found = json.loads(tree.run("node", "requests", "-o", "json"))
    return [request["path"] for request in found]


def seeds_below(folder: Path) -> set[str]:
    """All seeds of users that any file below a folder holds."""
    found = set()
    for file in folder.rglob("*"):
        if file.is_file():
            words = file.read_text(errors="ignore").replace('"', " ").split()
            found |= {word.strip(",;") for word in words if word.startswith("SU")}
    return found


def asked(tree: Tree, path: str, folder: str, *options: str) -> tuple[Path, Site]:
    """A site that waits to be approved."""
    file = invite(tree, path, *options)
    site = tree.join(file, folder)
    site.until("asked to be let in")
    return file, site


def test_a_site_asks_is_no_node_until_it_is_approved_and_keeps_its_key(tree):
    path = "/region-1/store-1"
    file, site = asked(tree, path, "store-1", "--labels", "env=prod")
    assert asking(tree) == [path]
    assert "store-1" not in tree.run("tree") + tree.run("node", "list")
    assert "store-1" not in tree.run("get", "synctargets,locations")
    below = tree.run("node", "add", f"{path}/till", code=1)
    assert f"its parent {path} has not joined yet; leafcast node approve {path}" in below

    # It ends, and the centre with it; both ask and know the same afterwards.
    site.end()
    tree.run("down")
    tree.run("up")
    site = tree.join(file, "store-1")
    site.until("asked to be let in")
    assert asking(tree) == [path]

    assert did_at_page(tree.folder / "tree", "node-approve", path=path) == f"node {path} approved"
    site.until("in session with its parent")
    until(lambda: tree.reached()[path])
    assert asking(tree) == []
    labels = json.loads(tree.run("get", "synctarget", "region-1-store-1", "-o", "json"))["metadata"]
    assert labels["labels"]["env"] == "prod"
    assert "asked" not in tree.run("node", "tokens")

    bundle = json.loads((tree.folder / "store-1" / "bundle.json").read_text())
    assert bundle["seed"] not in seeds_below(tree.folder / "tree"), "its key never left it"

    # The same line again goes on where it was.
    site.end()
    site = tree.join(file, "store-1")
    site.until("in session with its parent")
    assert "asked" not in site.said
    site.end()

    # Who stole the token comes too late.
    thief = tree.join(file, "thief")
    assert thief.process.wait(60) == 1
    thief.end()
    assert f"the token for {path} was used already" in thief.said
    assert f"leafcast node revoke {path}" in thief.said
    tree.run("node", "remove", path, "--force")


def test_a_region_and_a_site_below_it_are_let_in_without_asking_anybody(tree):
    region = tree.join(invite(tree, "/far", "--relay", "--approved"), "far")
    region.until("in session with its parent")
    site = tree.join(invite(tree, "/far/store-2", "--approved"), "store-2")
    site.until("in session with its parent")
    until(lambda: tree.reached()["/far/store-2"])
    site.end()
    region.end()
    tree.run("node", "remove", "/far", "--force")


def test_a_request_is_denied_and_what_cannot_be_asked_is_said_with_its_remedy(tree):
    path = "/region-1/store-3"
    file, site = asked(tree, path, "store-3")
    assert f"node {path} denied" in tree.run("node", "deny", path)
    assert site.process.wait(60) == 1
    site.end()
    assert f"the request for {path} was denied; make another" in site.said

    before = tree.standing()
    for command, said in (
        (("approve", "/region-1/nobody"), "nobody asks to be /region-1/nobody; `leafcast node req"),
        (("approve", path), f"nobody asks to be {path}"),
        (("deny", "/region-1/nobody"), "no token for it is open"),
        (("add", "/nowhere/s1"), "its parent /nowhere is no node; add /nowhere first"),
        (("add", "/region-1/site-1"), 'node "/region-1/site-1" already exists'),
        (("add", "/region-1/*", "--approved"), "a token for several nodes always asks"),
        (("add", "/*/x"), "only the last name may have a star"),
        (("rotate", "/region-1/nobody"), "there is no such node"),
        (("revoke", "/region-1/nobody"), "there is no such node"),
    ):
        assert said in tree.run("node", *command, code=1), command

    url, token = file.read_text().split()
    for line, said in (
        ((url, "--token", token[:-3]), "cut short"),
        ((url,), "an address needs a token"),
        ((url, "--token", token, "--path", "/region-1/x"), f"the token is for {path}, not"),
        (("http://127.0.0.1", "--token", token), "it is no address of a server"),
    ):
        assert said in tree.run("join", *line, "--data-dir", tree.folder / "none", code=1), line
    assert tree.standing() == before


def test_a_token_of_another_tree_is_told_from_one_that_is_used(tree, tmp_path):
    other = Tree(tmp_path)
    other.run("up", "--regions", "1", "--sites", "1")
    try:
        _, token = invite(other, "/region-1/store-4").read_text().split()
    finally:
        other.run("down")
    url, _ = invite(tree, "/region-1/store-4").read_text().split()
    file = tmp_path / "mixed.join"
    file.write_text(f"{url} {token}\n")
    site = tree.join(file, "store-4")
    assert site.process.wait(60) == 1
    site.end()
    assert "does not know the tree that the token is of" in site.said
    tree.run("node", "deny", "/region-1/store-4")


def test_one_token_for_several_sites_lets_in_those_that_are_approved(tree):
    file = invite(tree, "/region-1/shop-*", "--uses", "2")
    sites = [Site(file, tree.folder / f"shop-{n}", "--path", f"/region-1/shop-{n}") for n in (1, 2)]
    tree.sites += sites
    for site in sites:
        site.until("asked to be let in")
    third = Site(file, tree.folder / "shop-3", "--path", "/region-1/shop-3")
    tree.sites.append(third)
    assert third.process.wait(60) == 1
    assert "the token is used up" in third.said
    said = tree.run("node", "approve", "--all")
    assert said.count("approved") == 2
    for number, site in enumerate(sites, 1):
        site.until("in session with its parent")
        site.end()
        tree.run("node", "remove", f"/region-1/shop-{number}", "--force")


def test_the_key_of_a_node_is_replaced_and_then_made_void(tree):
    path = "/region-1/store-5"
    site = tree.join(invite(tree, path, "--approved"), "store-5")
    site.until("in session with its parent")
    bundle = tree.folder / "store-5" / "bundle.json"
    old = json.loads(bundle.read_text())["seed"]
    assert "has a new key" in tree.run("node", "rotate", path)
    new = json.loads(bundle.read_text())["seed"]
    assert new != old
    until(lambda: tree.reached()[path])

    # The region and its site go on with theirs, and know them after a restart.
    tree.run("node", "rotate", "/region-1")
    tree.run("node", "rotate", "/region-1/site-1")
    tree.run("down")
    tree.run("up")
    until(lambda: all(tree.reached().values()))

    # Who copied the old key is not let in; who has the new one goes on after a start.
    site.end()
    now = bundle.read_text()
    site = tree.join(bundle, "store-5")
    site.until("in session with its parent")
    assert json.loads(now)["seed"] == new

    before = time.monotonic()
    assert "its link is cut" in tree.run("node", "revoke", path)
    site.until("does not know its key")
    took = time.monotonic() - before
    print(f"\nrevoked and refused after {took:.2f} s, with two starts of Python and a retry")
    for listing in (("node", "list"), ("tree",)):
        lines = tree.run(*listing).splitlines()
        assert any("store-5" in line and "revoked" in line for line in lines)
    tree.run("node", "rotate", path, code=1)
    site.end()

    # The place is there still: a token lets another key in.
    file = invite(tree, path, "--approved")
    site = tree.join(file, "store-5")
    site.until("in session with its parent")
    site.end()
    tree.run("node", "remove", path, "--force")


def test_many_are_invited_and_approved_as_one(tree):
    sites = tree.folder / "sites.csv"
    sites.write_text("path,env\n" + "".join(f"/region-1/many-{n},prod\n" for n in range(5)))
    out = tree.folder / "invited"
    said = tree.run("node", "add", "-f", sites, "--out", out)
    assert "5 nodes may ask to join" in said
    assert {file.name for file in out.iterdir()} == {f"region-1.many-{n}.join" for n in range(5)}
    assert "many-" not in tree.run("node", "list")
    again = tree.run("node", "add", "-f", sites, "--out", out)
    assert "5 tokens made earlier for the same paths: void" in again
    tree.run("node", "deny", *(f"/region-1/many-{n}" for n in range(5)))
