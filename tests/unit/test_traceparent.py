"""Who applies may say in which span: that is read strictly, and kept with what is written."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from leafcast.changes.forms import ApplyBatch, apply_text, pack, unpack
from leafcast.cli.commands.apply import apply, apply_all
from leafcast.client import Tree
from relay.adapters.clock import SystemClock, SystemDice
from relay.shell.trace_ring import TraceStage
from schemas.objects.manifest_files import load_manifests
from schemas.objects.objects import ObjectKey
from schemas.values.identity import mail_key
from schemas.values.traceparent import EXAMPLE, BadTraceparent, read_traceparent
from tests.doubles.changing_daemon import ChangingDaemon
from tests.doubles.memory_space import MemorySpace
from tests.doubles.watches import issued_of

CLOCK, DICE = SystemClock(), SystemDice()
SHOP = "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}"


def manifests(text):
    return load_manifests(text, "m.yaml")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is of another form"),
        (EXAMPLE.upper(), "it is of another form"),
        (f"{EXAMPLE}\n", "it is of another form"),
        (f"{EXAMPLE}-more", "it goes on behind the flags"),
        (f"ff{EXAMPLE[2:]}", "there is no version ff"),
        (f"00-{'0' * 32}-b7ad6b7169203331-01", "its trace id is all 0"),
        (f"00-{'a' * 32}-{'0' * 16}-01", "its span id is all 0"),
        ("x" * 10_000, "it is of another form"),
    ],
)
def test_a_bad_traceparent_is_refused_with_one_that_is_good(text, why):
    with pytest.raises(BadTraceparent, match=why) as refused:
        read_traceparent(text)
    assert str(refused.value).endswith(f"such as {EXAMPLE}")
    assert len(str(refused.value)) < 600


def test_a_later_version_of_traceparent_is_read_as_this_one():
    assert str(read_traceparent(f"01{EXAMPLE[2:]}-more")) == EXAMPLE


async def test_what_an_apply_writes_is_noted_with_the_span_of_who_applied(capsys):
    daemon = ChangingDaemon(MemorySpace(CLOCK, DICE), MemorySpace(CLOCK, DICE), CLOCK)
    await apply_all(daemon.session, ApplyBatch(manifests(SHOP), traceparent=EXAMPLE))
    assert not capsys.readouterr().err
    watch, key = daemon.paused.watch, mail_key("", "", "", "shop")
    for generation in (1, 2):
        # The second change of the object is none of that apply's.
        watch.seen([key], ObjectKey("", "namespaces", "", "shop"))
        watch.begun([key])
        watch.issued(issued_of(key, generation))
    assert str(watch.traces.caller(key, 1)) == EXAMPLE
    assert TraceStage.JUDGED in watch.traces.of(key, 1)
    assert watch.traces.caller(key, 2) is None
    assert TraceStage.JUDGED not in watch.traces.of(key, 2)


async def test_a_program_that_applies_names_its_span_too():
    daemon = ChangingDaemon(MemorySpace(CLOCK, DICE), MemorySpace(CLOCK, DICE), CLOCK)
    tree, shop, key = Tree(daemon.session), manifests(SHOP)[0].object, mail_key("", "", "", "shop")
    with pytest.raises(ValueError, match="it is of another form"):
        await tree.apply(shop, traceparent="00-1-2-01")
    made = await tree.apply(shop, traceparent=EXAMPLE)
    assert [it.verb for it in made] == ["created"]
    watch = daemon.paused.watch
    watch.seen([key], ObjectKey("", "namespaces", "", "shop"))
    watch.begun([key])
    watch.issued(issued_of(key, 1))
    assert str(watch.traces.caller(key, 1)) == EXAMPLE


async def test_a_centre_of_an_older_release_links_no_span_and_that_is_said(capsys):
    class Older(ChangingDaemon):
        async def ask(self, subject, question, *more):
            answer = json.loads(await super().ask(subject, question, *more))
            if isinstance(answer.get("result"), dict):
                answer["result"].pop("traced", None)
            return json.dumps(answer).encode()

    session = Older(MemorySpace(CLOCK, DICE), MemorySpace(CLOCK, DICE), CLOCK).session
    await apply_all(session, ApplyBatch(manifests(SHOP), traceparent=EXAMPLE))
    told = capsys.readouterr()
    assert told.out == "namespace/shop created\n"
    assert told.err.count("the centre is of an older release, and links no --traceparent") == 1


@pytest.mark.parametrize("text", ["", "00-1-2-01", f"ff{EXAMPLE[2:]}"])
def test_a_bad_traceparent_ends_an_apply_before_anything_is_asked(text, tmp_path):
    file, nowhere = tmp_path / "shop.yaml", tmp_path / "nowhere"
    file.write_text(SHOP)
    options = ["-f", str(file), "--data-dir", str(nowhere), "--traceparent", text]
    done = CliRunner().invoke(apply, options)
    assert done.exit_code == 2
    assert f"traceparent {text!r}" in done.output
    assert "write 00-<32 hex digits>" in " ".join(done.output.split())
    assert not nowhere.exists()


async def test_a_batch_with_a_bad_traceparent_is_refused_by_the_centre():
    good = unpack(apply_text(ApplyBatch(manifests(SHOP))))
    daemon = ChangingDaemon(MemorySpace(CLOCK, DICE), MemorySpace(CLOCK, DICE), CLOCK)
    batch = pack({**good, "traceparent": "00-1-2-01"})
    refused = await daemon.call("apply-judge", batch=batch, dry=False)
    assert refused["code"] == "Invalid"
    assert "traceparent '00-1-2-01': it is of another form" in refused["message"]
