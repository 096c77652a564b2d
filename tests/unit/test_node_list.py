"""A file of nodes to be: read whole, every fault with its line, nothing done if there is one."""

import click
import pytest

from leafcast.cli import node_tokens
from leafcast.cli.commands.node_list import NodeListLine, _read, add_listed, file_name
from leafcast.cli.node_tokens import TokenOptions


def read(tmp_path, text, labels=None):
    file = tmp_path / "sites.csv"
    file.write_text(text, encoding="utf-8")
    return _read(file, labels or {})


def faults(tmp_path, text):
    with pytest.raises(click.ClickException) as refused:
        read(tmp_path, text)
    return refused.value.message.replace(str(tmp_path), "").splitlines()


def test_each_line_is_a_node_with_the_labels_that_its_columns_say(tmp_path):
    text = "\ufeffpath, kind ,tier\n/r/a,store,gold\n\n/r/b , store,\n"
    assert read(tmp_path, text, {"kind": "any", "env": "prod"}) == [
        NodeListLine(2, "/r/a", {"kind": "store", "env": "prod", "tier": "gold"}),
        NodeListLine(4, "/r/b", {"kind": "store", "env": "prod"}),
    ]


def test_all_faults_are_told_with_their_lines(tmp_path):
    said = faults(
        tmp_path, "path,kind\n/r/a,store\nr/b,x\n/,x\n/r/a,y\n/r/c,no good\n/r/d,x,more\n"
    )
    assert [line.split(": ")[0] for line in said] == [
        "/sites.csv:3",
        "/sites.csv:4",
        "/sites.csv:5",
        "/sites.csv:6",
        "/sites.csv:7",
        f"5 faults in 6 lines of {'/sites.csv'}; no node was added",
    ]
    assert "is in line 2 already" in said[2]
    assert 'label kind "no good"' in said[3]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no column path"),
        ("name,kind\n/r/a,x\n", "no column path"),
        ("path,kind,kind\n/r/a,x,y\n", '"kind" is there twice'),
        ("path,bad key!\n/r/a,x\n", 'column "bad key!"'),
        ("path,id\n/r/a,x\n", "id is the node's own label"),
        ("path\n", "it lists no node"),
        ('path\n"/r/a\n', "name a CSV file"),
    ],
)
def test_a_file_that_is_no_list_of_nodes_is_refused(tmp_path, text, said):
    assert said in " ".join(faults(tmp_path, text))


def test_a_file_with_a_fault_makes_no_folder(tmp_path):
    file, folder = tmp_path / "sites.csv", tmp_path / "out"
    file.write_text("path\nx\n", encoding="utf-8")
    with pytest.raises(click.ClickException):
        add_listed(tmp_path / "none", file, folder, {}, TokenOptions(60))
    assert not folder.exists()


def test_no_two_nodes_share_the_name_of_a_file():
    assert file_name("/a-b/c") == "a-b.c.join"
    assert file_name("/a/b-c") == "a.b-c.join"


def test_what_is_to_be_run_for_a_pattern_can_be_run_once_a_path_is_named(
    tmp_path, capsys, monkeypatch
):
    one = {"path": "/r/s-*", "token": "lc1", "url": "tls://r:7422", "untilMs": 0, "void": 0}
    monkeypatch.setattr(node_tokens, "call", lambda *_, **__: {"faults": [], "added": [one]})
    handed = TokenOptions(60)
    for file in (None, tmp_path / "s.join"):
        node_tokens.add_token(None, "/r/s-*", file, {}, handed, relay=False, uses=2)
        _, there, here = capsys.readouterr().out.splitlines()
        begins, _, ends = there.removeprefix("Run there: ").partition("leafcast join ")
        assert begins == ("" if file else "LEAFCAST_TOKEN=lc1 ")
        assert ends == f"{file or 'tls://r:7422'} --path PATH"
        assert here == "Then here: leafcast node approve PATH"
