"""What `leafcast upgrade` makes of words, folders and what the centre says."""

import errno
import hashlib
import os
import shutil

import click
import pytest

from leafcast.cli.commands.upgrade import (
    WAVES,
    check_publisher,
    give_pieces,
    read_waves,
    spec_to_begin,
    spec_to_plan,
)
from leafcast.cli.options.release_limits import ReleaseLimits, limit_options
from leafcast.publisher.pinning import pin_publisher
from leafcast.show.upgrade_notes import plan_notes
from leafcast.show.upgrade_tables import planned_view, upgrades_view, versions_view
from schemas.api.parsing import parse_wish
from schemas.releases.release_manifest import read_manifest
from tests.launched import KEY, ROOT_KEY, ROOTS, STRANGER
from tests.publishing import manifest, piece, release, root_after, wish
from tests.unit.releases_world import PIECES, leafcast_release, sha256, signed_manifest

COUNTS = [
    {"version": "0.2.0", "wanted": "0.3.0", "wave": 1, "state": "rolled-back", "count": 1},
    {"version": "0.3.0", "wanted": "0.3.0", "wave": 1, "state": "healthy", "count": 2},
]


def drawn(view):
    return [" ".join(line.split()) for line in view.lines()]


def test_words_of_waves_make_a_release_that_is_valid():
    waves = read_waves("canary,tier=gold,10%,100%")
    assert [wave["name"] for wave in waves] == ["canary", "gold", "share-10", "share-100"]
    assert parse_wish(leafcast_release("0.3.0", *waves)) is not None
    with pytest.raises(click.UsageError, match="write 1% to 100%"):
        read_waves("canary,0%")
    waves = read_waves("example.com/Canary,example.com/tier=Gold_1,100%")
    assert [wave["name"] for wave in waves] == ["example-com-canary", "gold-1", "share-100"]
    assert parse_wish(leafcast_release("0.3.0", *waves)) is not None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("canary,,100%", '"" is no label'),
        ("", '"" is no label'),
        ("Canary!", '"Canary!" is no label'),
        ("a=b=c", '"a=b=c" is no label'),
        ("=x", '"=x" is no label'),
        ("canary,100", "write 100%"),
        ("100%,100%", '"share-100" is there twice'),
    ],
)
def test_a_slip_in_waves_is_named_with_the_word(text, said):
    with pytest.raises(click.UsageError) as refused:
        read_waves(text)
    assert said in refused.value.message


def fills_the_disk(_source, target):
    target.write_bytes(b"half of")
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), target)


def test_the_centre_gets_each_piece_by_its_hash_and_what_lacks_is_named(tmp_path, monkeypatch):
    manifest = read_manifest(signed_manifest("0.3.0").encode())
    wheels, target = tmp_path / "wheels" / "any", tmp_path / "centre" / "pieces"
    wheels.mkdir(parents=True)
    first, second = PIECES.values()
    (wheels / "a.whl").write_bytes(first)
    with pytest.raises(click.ClickException, match=r"arm64.* not found"):
        give_pieces(manifest, tmp_path / "wheels", target)
    (wheels / "b.whl").write_bytes(second)
    with monkeypatch.context() as full:
        full.setattr(shutil, "copyfile", fills_the_disk)
        with pytest.raises(click.ClickException, match=r"pieces: No space left.*make room"):
            give_pieces(manifest, tmp_path / "wheels", target)
    assert not [it for it in target.iterdir() if it.suffix]
    give_pieces(manifest, tmp_path / "wheels", target)
    here = {hashlib.sha256(file.read_bytes()).hexdigest() for file in target.iterdir()}
    assert here == {file.name for file in target.iterdir()} == set(map(sha256, PIECES.values()))


def test_what_is_there_with_other_bytes_is_mended_or_named(tmp_path):
    manifest = read_manifest(signed_manifest("0.3.0").encode())
    wheels, target = tmp_path / "wheels", tmp_path / "pieces"
    wheels.mkdir()
    for each in manifest.all_pieces.values():
        data = next(it for it in PIECES.values() if sha256(it) == each.sha256)
        (wheels / each.name).write_bytes(data)
    give_pieces(manifest, wheels, target)
    damaged, kept = sorted(target.iterdir())
    flipped = bytearray(damaged.read_bytes())
    flipped[7] ^= 1
    damaged.write_bytes(flipped)
    with pytest.raises(click.ClickException, match="whl is there, but with other bytes; name"):
        give_pieces(manifest, None, target)
    before = kept.stat().st_ino
    give_pieces(manifest, wheels, target)
    assert sha256(damaged.read_bytes()) == damaged.name
    assert kept.stat().st_ino == before
    # The same of a wheel in the folder.
    for file in target.iterdir():
        file.unlink()
    (wheels / manifest.all_pieces[damaged.name].name).write_bytes(flipped)
    with pytest.raises(click.ClickException) as said:
        give_pieces(manifest, wheels, target)
    assert "whl is there, but with other bytes" in said.value.message
    assert "not found" not in said.value.message


def test_of_a_wrong_folder_some_files_are_named(tmp_path):
    pieces = tuple(piece(f"p{n}-1.0-py3-none-any.whl", b"%d" % n) for n in range(8))
    many = manifest(pieces={"linux-amd64": pieces})
    with pytest.raises(click.ClickException) as said:
        give_pieces(many, tmp_path, tmp_path / "pieces")
    assert said.value.message.count(".whl") == 3
    assert "5 more" in said.value.message


def let_out(data: bytes, data_dir, *listed):
    check_publisher("release.json", data.decode(), data_dir, listed)


def refused_by(match, data: bytes, data_dir, *listed):
    with pytest.raises(click.ClickException, match=match) as said:
        let_out(data, data_dir, *listed)
    assert said.value.message.startswith("release.json: ")


def test_what_nodes_would_refuse_by_who_signed_it_does_not_go_out(tmp_path):
    good = release(ROOTS, KEY)
    let_out(good, tmp_path)
    refused_by("release: 0 of the 1 signatures .* are there; have", release(ROOTS), tmp_path)
    refused_by("release: 0 of the 1 signatures", release(ROOTS, STRANGER), tmp_path)
    altered = good.replace(b'"nats_server": "2.15.1"', b'"nats_server": "2.15.2"')
    refused_by("1 that does not hold: it was altered since", altered, tmp_path)
    alone = signed_manifest("0.3.0").encode()
    refused_by("it names no root of its publisher", alone, tmp_path)
    refused_by("0.4.0 or later: nobody", release(ROOTS, KEY, of=follows("0.4.0")), tmp_path)


def test_what_another_publisher_signed_goes_out_to_nobody_who_is_known_to_pin_one(tmp_path):
    stranger = root_after(None, wish([STRANGER], 1, [STRANGER]), STRANGER)
    other = release(stranger, STRANGER)
    let_out(other, tmp_path)
    # Nodes run what the one signed.
    former = leafcast_release("0.2.0")
    former["spec"]["manifest"] = release(ROOTS, KEY, of=manifest("0.2.0")).decode()
    let_out(other, tmp_path, former)
    former["status"] = {"waves": [{"name": "all", "healthy": 3}]}
    refused_by("publisher: the publisher whose 0.2.0 nodes run does not", other, tmp_path, former)
    let_out(release(ROOTS, KEY), tmp_path, former, leafcast_release("0.1.0"))
    # So does this centre.
    (tmp_path / "root.json").write_bytes(ROOTS.data)
    pin_publisher(tmp_path, tmp_path / "root.json")
    refused_by("publisher: the publisher whom this centre pins does not", other, tmp_path)
    let_out(release(ROOTS, KEY), tmp_path)
    # Where it moved on, what it allows no more is named.
    lowest = root_after(ROOTS, wish(lowest="0.4.0"), ROOT_KEY)
    (tmp_path / "root.json").write_bytes(lowest.data)
    pin_publisher(tmp_path, tmp_path / "root.json")
    refused_by(r"version: 0\.3\.0 is below 0\.4\.0", release(ROOTS, KEY), tmp_path)


def follows(version):
    return manifest("0.3.0", upgrades_from=version)


def test_a_release_that_went_out_before_begins_anew_by_its_version_alone(tmp_path):
    former = leafcast_release("0.3.0", {"name": "a", "percent": 50}, aborted=True, attempt=2)
    former["spec"] |= {"path": "/emea", "windows": [{"cron": "0 1 * * 1", "duration": "1h"}]}
    former["status"] = {"phase": "Aborted", "attempt": 2}
    again = spec_to_begin("0.3.0", {}, {}, [former])
    gone = {"aborted"}
    kept = {name: said for name, said in former["spec"].items() if name not in gone}
    assert again == {**kept, "attempt": 3}
    waves = read_waves("100%")
    soaked = spec_to_begin("0.3.0", {"waves": waves, "path": "/"}, {"soak": "1h"}, [former])
    assert (soaked["path"], soaked["waves"]) == ("/", [{**waves[0], "soak": "1h"}])
    passed = spec_to_begin("0.3.0", {}, {"allowEmpty": True}, [former])
    assert passed["waves"] == [{"name": "a", "percent": 50, "allowEmpty": True}]
    # With a manifest it is let out as a new one.
    other = spec_to_begin("0.3.0", {"manifest": "{}"}, {}, [former])
    assert (other["path"], "windows" in other, other["attempt"]) == ("/", False, 3)
    with pytest.raises(click.ClickException, match=r"no release 0.4.0 .*0.4.0 --manifest FILE"):
        spec_to_begin("0.4.0", {}, {}, [former])
    with pytest.raises(click.ClickException, match=r"pieces: .*not found"):
        give_pieces(read_manifest(former["spec"]["manifest"].encode()), None, tmp_path / "pieces")


def limits_said(*words):
    found = []

    @click.command()
    @limit_options
    def start(limits):
        found.append(limits)

    start.main([*words], standalone_mode=False)
    return found[0]


def test_words_of_limits_make_a_release_that_is_valid():
    words = ("--window", "0 2 * * 2-5 for 4h", "--window", "0 3 * * 1 for 1h in Europe/Berlin")
    said = limits_said(*words, "--failures", "2", "--offline", "0%", "--success", "99.5%")
    obj = leafcast_release("0.3.0", **said.spec)
    spec = parse_wish(obj).spec
    assert [it.zone for it in spec.windows] == ["destination", "Europe/Berlin"]
    assert (spec.failures.maximum, spec.failures.at_least) == (2, 1)
    assert (spec.offline.maximum, spec.success.minimum) == ("0%", "99.5%")
    assert limits_said("--failures", "2.5%").spec == {"failures": {"maximum": "2.5%"}}
    assert limits_said("--soak", "1h", "--allow-empty").waves == {"soak": "1h", "allowEmpty": True}
    assert limits_said() == ReleaseLimits({}, {})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--window", "0 2 * * *"), 'is no window; write one such as "0 2 '),
        (("--window", "0 2 * * for 4h"), "is no cron line"),
        (("--window", "0 2 * * * for 4"), '"4" is not a duration'),
        (("--window", "0 2 * * * for 4h in Mars"), '"Mars" is no time zone'),
        (("--failures", "-1"), "not a number or a share"),
        (("--offline", "3"), '"3" is not a share'),
    ],
)
def test_a_slip_in_limits_is_named(words, said):
    with pytest.raises(click.BadParameter) as refused:
        limits_said(*words)
    assert said in str(refused.value)


def test_a_limit_that_is_said_replaces_that_one_alone():
    own = {"name": "a", "percent": 100, "windows": [{"cron": "0 1 * * 1", "duration": "1h"}]}
    former = leafcast_release("0.3.0", own, failures={"maximum": "5%", "atLeast": 3})
    said = limits_said("--failures", "9").spec
    again = spec_to_begin("0.3.0", said, {}, [former])
    assert again["failures"] == {"maximum": 9, "atLeast": 3}
    assert again["waves"] == former["spec"]["waves"]
    # Windows of a wave would go before those of all.
    said = limits_said("--window", "0 2 * * * for 4h").spec
    again = spec_to_begin("0.3.0", said, {}, [former])
    assert (again["windows"], again["waves"]) == (said["windows"], [{"name": "a", "percent": 100}])


def test_a_plan_is_of_what_start_would_let_out():
    assert spec_to_plan("0.4.0", {}, []) == {"path": "/", "waves": read_waves(WAVES)}
    former = leafcast_release("0.3.0", {"name": "a", "percent": 50}, path="/emea")
    planned = spec_to_plan("0.3.0", {}, [former])
    assert planned == spec_to_begin("0.3.0", {}, {}, [former]) == former["spec"]
    assert spec_to_plan("0.3.0", {"path": "/"}, [former])["path"] == "/"
    # With a manifest it is a new one.
    assert spec_to_plan("0.3.0", {"manifest": "{}"}, [former])["path"] == "/"


def test_tables_say_who_runs_what_and_how_far_a_release_is():
    own = {"counts": [{**COUNTS[1], "count": 1}]}
    found = {"counts": COUNTS, "centre": own, "children": {"emea": {"counts": COUNTS[1:]}}}
    assert drawn(versions_view(found, 0)) == [
        "BELOW VERSION STATE NODES",
        "/emea 0.3.0 healthy 2",
        "the centre 0.3.0 healthy 1",
        "whole tree 0.2.0 rolled-back 1",
        "whole tree 0.3.0 healthy 2",
    ]
    wave = {"name": "canary", "phase": "Failed", "members": 3, "healthy": 2, "failed": 1}
    status = {"phase": "Failed", "message": "nothing more begins", "waves": [wave]}
    status |= {"centre": "healthy"}
    status |= {"failures": ["/: rolled-back: it ended", "/s1: refused: disk: 3 MB are free"]}
    wave["failed"] = 3
    lines = drawn(upgrades_view([{**leafcast_release("0.3.0"), "status": status}], 0))
    assert lines[0] == "0.3.0: Failed. nothing more begins"
    assert lines[2] == "canary Failed 3 2 3 0 0"
    assert lines[3] == "the centre: healthy"
    assert lines[4:] == ["/s1: refused: disk: 3 MB are free", "and 2 more"]
    ended = {"phase": "Aborted", "message": "it goes out no further", "waves": [wave]}
    lines = drawn(upgrades_view([{**leafcast_release("0.3.0"), "status": ended}], 0))
    assert lines == ["0.3.0: Aborted. it goes out no further"]
    through = {"phase": "Complete", "message": "all waves are through", "versions": []}
    through["versions"] = [{"version": v, "nodes": 2} for v in ("0.2.0", "0.3.0", "0.4.0")]
    lines = drawn(upgrades_view([{**leafcast_release("0.3.0"), "status": through}], 0))
    assert [line[:40] for line in lines[1:]] == ["2 nodes with 0.4.0, which is newer and s"]
    planned = {**found, "waves": [{"name": "canary", "relays": 1, "edges": 2}], "path": "/"}
    planned["version"] = "0.3.0"
    lines = drawn(planned_view(planned, 0))
    assert lines[1] == "canary 1 2"
    assert "No release 0.3.0 is known here: --manifest FILE" in " ".join(lines[2:])


def test_a_plan_names_what_it_waits_for_whom_it_bars_and_whom_it_leaves():
    other = {**leafcast_release("0.2.5"), "status": {"phase": "Soaking"}}
    old = {"version": "0.1.0", "state": "healthy", "count": 2}
    found = {"counts": [old, *COUNTS], "children": {"emea": {"counts": [old]}, "us": COUNTS[1:]}}
    found["children"]["us"] = {"counts": COUNTS}
    found |= {"version": "0.3.0", "path": "/", "waves": [planned_wave(relays=1, edges=4)]}
    waits, barred, left = plan_notes("0.2.0", read_waves("canary,10%"), found, [other])
    assert waits.startswith("0.2.5 goes out now (Soaking). One release goes out at a time: 0.3.0")
    assert barred.startswith("2 nodes with 0.1.0 will refuse it (/emea: 2): 0.3.0 follows 0.2.0")
    assert left.startswith("The waves end at 10%: who is in none of them stays")
    assert plan_notes("", read_waves("100%"), {**found, "version": "0.2.5"}, [other]) == []
    planned = {"counts": [], "waves": [], "version": "0.3.0", "path": "/", "notes": [left]}
    assert "The waves end at 10%" in " ".join(drawn(planned_view(planned, 0)))


def planned_wave(relays, edges):
    return {"name": "all", "relays": relays, "edges": edges}


def barred_by(path, relays, edges, emea, centre=()):
    found = {"version": "0.3.0", "path": path, "waves": [planned_wave(relays, edges)]}
    el = {"version": "0.2.0", "state": "idle", "count": 1}
    found["children"] = {"el": {"counts": [el]}, "emea": {"counts": emea}}
    found["centre"] = {"counts": centre}
    said = plan_notes("0.2.5", read_waves("100%"), found, [])
    return said[0] if said else ""


def test_a_plan_bars_nobody_who_is_elsewhere_or_upgraded_by_hand():
    old = [{"version": "0.2.0", "state": state, "count": 2} for state in ("idle", "healthy")]
    hand = [
        {"version": "0.2.0", "state": state, "count": 1}
        for state in ("managed-elsewhere", "pins-no-publisher")
    ]
    said = barred_by("/", 2, 6, [*old, *hand], hand[:1])
    assert said.startswith("5 nodes with 0.2.0 will refuse it (/el: 1, /emea: 4): 0.3.0 follows")
    said = barred_by("/", 2, 6, hand, [{**old[0], "count": 1}])
    assert said.startswith("2 nodes with 0.2.0 will refuse it (/el: 1, the centre: 1): ")
    assert barred_by("/emea", 1, 3, hand) == ""
    assert barred_by("/emea", 1, 3, old).startswith("4 nodes with 0.2.0 will refuse it (/emea: 4)")
    said = barred_by("/emea/s1", 1, 1, old)
    assert said.startswith("at most 2 nodes, of 4 with 0.2.0, will refuse it (/emea: 4): ")
    none = barred_by("/emea/none", 0, 0, old)
    assert none == "No wave admits anybody at or below /emea/none."


def test_a_plan_names_waves_of_nobody_at_which_the_release_would_wait():
    waves = read_waves("canary,10%,100%")
    counts = zip(waves, (0, 0, 4), strict=True)
    found = {"version": "0.3.0", "path": "/", "counts": [], "children": {}}
    found["waves"] = [{"name": it["name"], "relays": 0, "edges": n} for it, n in counts]
    (said,) = plan_notes("", waves, found, [])
    assert said.startswith('Wave "canary" admits nobody: the release would wait there. Label')
    waves[0]["allowEmpty"] = True
    assert plan_notes("", waves, found, []) == []


@pytest.mark.parametrize(
    ("goes", "why", "refused", "said"),
    [
        ("first", "", "", "The centre goes first; the wire would allow the other order, too."),
        ("first", "nodes say wire 3", "", "The centre goes first: nodes say wire 3."),
        ("last", "it reads no 3", "", "The centre goes last, and edges before relays: it reads"),
        ("", "", "it speaks wire 3", "Refused: it speaks wire 3."),
    ],
)
def test_a_plan_says_when_the_centre_goes_or_why_nobody_does(goes, why, refused, said):
    order = {"goes": goes, "why": why, "refused": refused}
    planned = {"counts": [], "waves": [], "version": "0.3.0", "order": order, "path": "/"}
    assert said in " ".join(drawn(planned_view(planned, 0)))
    of_part = " ".join(drawn(planned_view({**planned, "path": "/emea"}, 0)))
    assert ("The centre is left as it is: the release is for /emea." in of_part) == (not refused)
    assert ("The centre goes" in of_part, "runs the centre" in of_part) == (False, False)
    assert ("Edges go before relays: it reads no 3." in of_part) == (goes == "last")
