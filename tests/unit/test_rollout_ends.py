"""A Rollout that is deleted under way: nothing is deleted before a person says what follows."""

import click
import pytest

from leafcast.cli.apply.rollout_ends import let_go, placements_left, released

KEEPING = {
    "rollout": "shop",
    "placement": "shop",
    "phase": "Paused",
    "revision": 2,
    "destinations": 3,
    "news": "1 object: shop/deployments.apps/web",
}


class Daemon:
    """Lets placements go, and notes what it is told."""

    def __init__(self):
        self.asked = []

    async def call(self, verb, **arguments):
        self.asked.append(verb)
        return {"placement": arguments["placement"], "released": True, "news": KEEPING["news"]}


def test_without_a_word_it_is_refused_with_what_each_word_means():
    with pytest.raises(click.ClickException) as refused:
        placements_left(["shop"], [KEEPING], "")
    said = refused.value.message
    assert "revision 2 of epl/shop is Paused: 3 destinations lack" in said
    assert "--freeze  each destination keeps what it has" in said
    assert "leafcast rollout release epl/shop" in said
    assert "--let-go  everyone gets it at once: 1 object: shop/deployments.apps/web" in said
    assert "nothing was deleted" in said


@pytest.mark.parametrize("fate", ["freeze", "let-go"])
async def test_what_was_said_is_done_of_what_is_left(fate, capsys):
    daemon = Daemon()
    left = placements_left(["shop"], [KEEPING], fate)
    await let_go(daemon, left, fate)
    told = capsys.readouterr().out
    assert ("stays as it is" in told) == (fate == "freeze")
    assert ("follows its space again: everyone gets 1 object" in told) == (fate == "let-go")
    assert ("release" in daemon.asked) == (fate == "let-go")


def test_one_that_keeps_nothing_back_is_deleted_without_a_word_and_cannot_freeze():
    assert placements_left(["shop"], [], "") == []
    with pytest.raises(click.ClickException) as refused:
        placements_left(["shop"], [], "freeze")
    assert "keeps nothing back" in refused.value.message


def test_where_no_rollout_is_deleted_nothing_is_left():
    assert placements_left([], [], "") == []


def test_what_follows_its_space_already_is_said_so():
    assert released({"placement": "bindingpolicy/p", "released": False}) == (
        "bp/p follows its space already"
    )
