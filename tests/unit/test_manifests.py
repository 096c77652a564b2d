"""Manifests are read as kubectl reads them; what is wrong is named by file, line and column."""

import json
from pathlib import Path

import pytest
import yaml

from schemas.objects import yaml_documents
from schemas.objects.manifest_files import InvalidManifest, load_manifests, read_objects
from schemas.objects.objects import BUILT_IN_KINDS

HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"
REAL_MANIFESTS = Path(__file__).resolve().parents[3] / "shared" / "data"


@pytest.fixture(params=["libyaml", "python"], autouse=True)
def parser(request, monkeypatch):
    """Both parsers of PyYAML: the one in C may be missing where Leafcast runs."""
    if request.param == "python":
        monkeypatch.setattr(yaml_documents, "_LOADER", yaml.SafeLoader)
    elif not hasattr(yaml, "CSafeLoader"):
        pytest.skip("PyYAML was built without libyaml")
    return request.param


def value_of(text):
    (loaded,) = load_manifests(f"{HEAD}value: {text}\n", "shop.yaml")
    return loaded.object["value"]


def refusal(text):
    with pytest.raises(InvalidManifest) as refused:
        load_manifests(text, "shop.yaml")
    return str(refused.value)


def test_a_tab_is_called_a_tab_and_a_word_is_quoted_as_it_was_written():
    assert "shop.yaml:4:1: a tab; YAML is indented with spaces" in refusal(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n\tname: a\n"
    )
    said = refusal(f"{HEAD}  annotations: {{x: y}}\n")
    assert "metadata.annotations[x]: y is not a string, YAML reads it as true; quote it" in said


def test_a_stream_of_documents_gives_objects_with_their_lines():
    loaded = load_manifests(f"---\n{HEAD}---\n---\n# nothing\n---\n{HEAD}", "shop.yaml")

    assert [item.line for item in loaded] == [2, 10]
    assert {item.origin for item in loaded} == {"shop.yaml"}
    assert loaded[0].object == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a"},
    }


@pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "---\n---\n...\n", "null\n"])
def test_empty_documents_are_skipped(text):
    assert load_manifests(text, "shop.yaml") == []


def test_json_is_yaml():
    text = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "x": [1, null]}'
    assert load_manifests(text, "shop.json")[0].object["x"] == [1, None]


def test_json_may_say_one_character_in_two_escapes():
    text = json.dumps(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "x": "\\\U0001f600"},
        indent=2,
    )
    assert "\\ud83d\\ude00" in text
    assert load_manifests(text, "shop.json")[0].object["x"] == "\\\U0001f600"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *[(word, True) for word in ("true", "True", "TRUE", "yes", "Yes", "on", "ON", "y", "Y")],
        *[(word, False) for word in ("false", "False", "no", "No", "NO", "off", "Off", "n", "N")],
        *[(word, None) for word in ("null", "Null", "NULL", "~", "")],
        ("'yes'", "yes"),
        ("!!str yes", "yes"),
        ("yEs", "yEs"),
        ("2024-01-01", "2024-01-01"),
        ("2024-01-01T12:00:00Z", "2024-01-01T12:00:00Z"),
        ("=", "="),
        ("12:30:45", "12:30:45"),
        ("190:20:30.15", "190:20:30.15"),
        ("1.2.3", "1.2.3"),
        ("0755", 493),
        ("0o17", 15),
        ("089", 89),
        ("0x1F", 31),
        ("-0b11", -3),
        ("1_000", 1000),
        ("_1", "_1"),
        ("+7", 7),
        ("1e3", 1000),
        (".5", 0.5),
        ("1.", 1),
        ("-1.5E-3", -0.0015),
        ("1e999", "1e999"),
        ("-", ["x"]),
        ("18446744073709551615", 2**64 - 1),
        ("500m", "500m"),
        ("!!int '3'", 3),
        ("!!float 3", 3),
        ("! 3", "3"),
        ("|\n  a\n  b\n", "a\nb\n"),
    ],
)
def test_scalars_are_read_as_kubectl_reads_them(text, expected):
    if text == "-":
        text = "\n- x"
    value = value_of(text)
    assert value == expected
    assert isinstance(value, bool) is isinstance(expected, bool)


def test_keys_become_strings_as_kubectl_makes_them():
    assert value_of("{on: a, 1: b, 1.5: c, 'no': d, 0x10: e}") == {
        "true": "a",
        "1": "b",
        "1.5": "c",
        "no": "d",
        "16": "e",
    }


def test_anchors_give_copies():
    (loaded,) = load_manifests(f"{HEAD}a: &x [{{k: v}}]\nb: *x\nc: &k key\n*k : 1\n", "shop.yaml")

    assert loaded.object["b"] == [{"k": "v"}]
    assert loaded.object["a"] is not loaded.object["b"]
    assert loaded.object["a"][0] is not loaded.object["b"][0]
    assert loaded.object["key"] == 1


def test_merge_keys_fill_in_what_is_not_given():
    text = "{base: &b {p: 1, q: 1}, one: {<<: *b, q: 2}, two: {<<: [{q: 3}, *b]}, '<<': 4}"
    value = value_of(text)

    assert value["one"] == {"p": 1, "q": 2}
    assert value["two"] == {"p": 1, "q": 3}
    assert value["<<"] == 4


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        (f"{HEAD}data:\n  a: b: c\n", "6:7", "mapping values are not allowed"),
        ("a: 'x", "1:", "unexpected end of stream"),
        (f"{HEAD}data: {{a: 1, a: 2}}\n", "5:14", '"a" is given twice, first in line 5'),
        (f"{HEAD}data:\n  on: 1\n  yes: 2\n", "7:3", '"true" is given twice, first in line 6'),
        (f"{HEAD}kind: Secret\n", "5:1", '"kind" is given twice, first in line 2'),
        ("a: *b\n", "1:4", "*b names an anchor"),
        ("a: &x {b: *x}\n", "1:11", "*x names an anchor"),
        ("a: 1\nb: !foo x\n", "2:4", "the tag !foo has no JSON form"),
        ("a: !!binary aGk=\n", "1:4", "!!binary"),
        ("a: !!set {b}\n", "1:4", "!!set"),
        ("a: !!python/object:os.system x\n", "1:4", "has no JSON form"),
        ("a: !!int x\n", "1:4", "x is not a int"),
        ("a: .inf\n", "1:4", ".inf has no JSON form"),
        ("a: -.INF\n", "1:4", "no JSON form"),
        ("a: .NaN\n", "1:4", "no JSON form"),
        ("a: 18446744073709551616\n", "1:4", "beyond 64 bits; quote it"),
        (f"a: {'9' * 5000}\n", "1:4", "beyond 64 bits; quote it"),
        ("~: a\n", "1:1", "a null key"),
        ("? [a]\n: b\n", "1:3", "a key must be a string"),
        ("{{ .Values }}\n", "1:2", "a key must be a string"),
        ("a: &x [b]\n? *x\n: c\n", "2:3", "a key must be a string"),
        ("a:\n  <<: 3\n", "2:7", "<< takes a mapping"),
        ("[" * 200, "1:101", "nested deeper than 100 levels"),
        ("{a: " * 200, "1:401", "nested deeper than 100 levels"),
        ("a: 1\nb: \x01", "2:4", "not allowed"),
        ("a: 1\nb: \ud800", "2:4", ""),
        ('{"a": "\\ud83d"}', "1:", ""),
    ],
)
def test_text_that_is_not_json_in_yaml_is_refused_with_its_place(text, place, said):
    message = refusal(text)
    assert message.startswith(f"shop.yaml:{place}")
    assert said in message


def test_an_alias_bomb_is_refused_before_it_goes_off():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 9)}]" for n in range(12)]
    assert "aliases add more than 4194304 characters" in refusal("\n".join(lines))


def test_a_bomb_of_nothing_is_one_as_well():
    # 9 ** 6 empty lists are half a million: 60 MB of nothing.
    lines = ["a0: &a0 [[], [], [], [], [], [], [], [], []]"]
    lines += [f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 9)}]" for n in range(5)]
    assert "aliases add more than" in refusal("\n".join(lines))


def test_many_aliases_to_one_long_text_are_a_bomb_too():
    aliases = "\n".join("- *x" for _ in range(1000))
    assert "aliases add more than" in refusal(f"a: &x {'y' * 10_000}\nb:\n{aliases}\n")


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("- a\n", "1:1", "not an object"),
        (f"{HEAD}---\nfoo\n", "6:1", "not an object"),
        ("apiVersion: v1\nmetadata: {name: a}\n", "1:1", 'object "a": kind: missing'),
        (
            "# it\napiVersion: v1\nkind: Pod\nmetadata:\n  name: A_b\n",
            "5:3",
            'Pod "A_b": metadata.name: "A_b" is not a DNS subdomain',
        ),
        (
            f"{HEAD}  labels:\n    app.kubernetes.io/name: x\n    app.kubernetes.io/v: 3\n",
            "7:5",
            'ConfigMap "a": metadata.labels[app.kubernetes.io/v]: 3 is not a string; quote it',
        ),
        ("kind: List\nitems: 3\n", "1:1", "items: not a list"),
        (f"kind: List\nitems:\n- 3\n{''}", "3:3", "not an object"),
        (
            "kind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: -}\n",
            "5:",
            "",
        ),
        ("{kind: List, items: [" * 20 + "]}" * 20, "1:", "lists nested deeper than 10"),
    ],
)
def test_an_object_that_is_not_valid_is_refused_with_its_place(text, place, said):
    message = refusal(text)
    assert message.startswith(f"shop.yaml:{place}")
    assert said in message


def test_all_invalid_objects_are_named_in_the_order_of_the_text():
    message = refusal(f"a: 1\n---\n{HEAD}---\nkind: Pod\napiVersion: v1\n")
    assert [line.split(": ")[0] for line in message.splitlines()] == [
        "shop.yaml:1:1",
        "shop.yaml:1:1",
        "shop.yaml:1:1",
        "shop.yaml:8:1",
    ]


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("{0}{0}", [(1, 1), (1, 61)]),
        ("{0}\n{0}\n\n{0}", [(1, 1), (2, 1), (4, 1)]),
        ("\ufeff{0}\n\ufeff{0}", [(1, 2), (2, 2)]),
        ("# of a tool\n{0}\n---\n{1}---\n{0} {0}", [(2, 1), (4, 1), (9, 1), (9, 62)]),
        ("{1}\ufeff---\n{1}---\n\ufeff{1}\ufeff{1}", [(1, 1), (6, 1), (11, 2), (15, 2)]),
        ("\x1e{0}\n\x1e{0}\n", [(1, 2), (2, 2)]),
    ],
)
def test_streams_are_read_as_tools_put_them_together(text, places):
    document = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name":"a"}}'
    loaded = load_manifests(text.format(document, HEAD), "s")
    assert {one.object["metadata"]["name"] for one in loaded} == {"a"}
    assert [one.line for one in loaded] == [line for line, _ in places]


def test_what_is_wrong_in_a_stream_is_told_where_it_stands():
    good = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}'
    loaded, problems = read_objects(f'{good}{{"kind": 1}}\n{good}\n{{"a": \n', "s.json")
    assert [one.line for one in loaded] == [1, 2]
    assert [str(problem).partition(": ")[0] for problem in problems] == [
        "s.json:1:63",
        "s.json:1:63",
        "s.json:1:64",
        "s.json:4:1",
    ]
    twice = f'{good} {{"a": "\\ud83d\\ude00", "a": 1}}'
    _, [problem] = read_objects(twice, "s.json")
    assert str(problem).startswith('s.json:1:84: "a" is given twice')


def test_a_value_that_reads_as_no_text_is_told_where_api_servers_take_text_only():
    [config] = load_manifests(f"{HEAD}data: {{a: y, b: 3, c: '4', d: e, f: }}\n", "s")
    assert config.notes == (
        's:5:8: ConfigMap "a": data.a: y is not a string, YAML reads it as true; quote it',
        's:5:14: ConfigMap "a": data.b: 3 is not a string; quote it',
    )
    template = "template: {metadata: {labels: {x: on}, annotations: {z: a}}, spec: {replicas: 3}}"
    head = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: w, generation: 1}\n"
    [web] = load_manifests(f"{head}spec: {{{template}}}\n", "s")
    [note] = web.notes
    assert "spec.template.metadata.labels.x: on is not a string, YAML reads it as true" in note


@pytest.mark.parametrize(
    ("kind", "spec", "said"),
    [
        ("v1, kind: Pod", "{containers: [{env: [{name: A, value: 80}]}]}", "80 is not a string"),
        (
            "v1, kind: Pod",
            "{containers: [{args: [-v, 2]}]}",
            "spec.containers[0].args[1]: 2 is not",
        ),
        ("v1, kind: Pod", "{initContainers: [{command: [yes]}]}", "YAML reads it as true"),
        ("v1, kind: Pod", "{nodeSelector: {gpu: on}}", "spec.nodeSelector.gpu: on is not a string"),
        (
            "batch/v1, kind: CronJob",
            "{jobTemplate: {spec: {template: {spec: {containers: [{image: 1.5}]}}}}}",
            "spec.jobTemplate.spec.template.spec.containers[0].image: 1.5 is not a string",
        ),
        ("v1, kind: Service", "{selector: {tier: 1}}", "spec.selector.tier: 1 is not a string"),
        (
            "v1, kind: Pod",
            "{containers: [{env: [{name: A, valueFrom: {x: 1}}], ports: [{containerPort: 80}]}]}",
            "",
        ),
        ("example.com/v1, kind: Pod", "{containers: [{args: [1]}]}", ""),
    ],
)
def test_a_field_of_text_that_reads_as_none_is_told(kind, spec, said):
    text = f"{{apiVersion: {kind}, metadata: {{name: a}}, spec: {spec}}}"
    [loaded] = load_manifests(text, "s")
    assert len(loaded.notes) == bool(said)
    assert all(said in note for note in loaded.notes)


def test_a_key_that_reads_as_another_is_told_and_refused_where_it_selects():
    text = f"{HEAD}  labels: {{y: a}}\ndata: {{on: b, 'n': c, 0x10: d, true: e0}}\n"
    _, [problem] = read_objects(text, "s")
    assert str(problem) == (
        's:6:32: "true" is given twice, first in line 6: so YAML reads both on and true; quote them'
    )
    [loaded] = load_manifests(text.replace(", true: e0", ""), "s")
    assert loaded.object["metadata"]["labels"] == {"true": "a"}
    assert loaded.notes == (
        's:5:12: ConfigMap "a": metadata.labels: the key y is read by YAML as "true"; quote it',
        's:6:8: ConfigMap "a": data: the key on is read by YAML as "true"; quote it',
        's:6:23: ConfigMap "a": data: the key 0x10 is read by YAML as "16"; quote it',
    )
    waves = "waves: [{name: canary, selector: {matchLabels: {y: canary}}}]"
    rollout = f"apiVersion: leafcast.io/v1alpha1\nkind: Rollout\nmetadata: {{name: r}}\n{waves}\n"
    assert (
        'waves[0].selector.matchLabels: the key y is read by YAML as "true"; quote it'
    ) in refusal(rollout)
    expressions = "selector: {matchExpressions: [{key: on, operator: In, values: [no, a, 1]}]}"
    labels = "selector: {matchLabels: {a: 1.50, b: 'yes', c: 2}}"
    for said, wrong in (
        (expressions, ["key: on", "values[0]: no", "values[2]: 1"]),
        (labels, ["matchLabels.a: 1.50", "matchLabels.c: 2"]),
    ):
        _, problems = read_objects(rollout.replace(waves, said), "s")
        assert all("is not a string" in str(problem) for problem in problems)
        told = [str(problem).partition(" is not")[0] for problem in problems]
        assert all(line.endswith(end) for line, end in zip(told, wrong, strict=True))
    percent = "apiVersion: x/v1\nkind: W\nmetadata: {name: w}\nspec: {selector: {percent: 1}}\n"
    assert load_manifests(percent, "s")[0].notes == ()
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: r}\nspec: {selector: {no: a}}\n"
    assert 'spec.selector: the key no is read by YAML as "false"' in refusal(service)
    assert load_manifests(service.replace("no:", "'no':"), "s")[0].notes == ()


UNREADABLE = [
    "a: [",
    "a: 'x",
    "a:\n\tb: c",
    "a: b: c",
    "@",
    "a: 1\na: 2",
    "a: !foo x",
    "a: *b",
    "{{ .Values }}",
    "a: |\n  --- no\nb",
]


@pytest.mark.parametrize("unreadable", UNREADABLE)
@pytest.mark.parametrize("begin", ["---\n", "--- # a comment\n", "---\r\n"])
def test_each_document_that_cannot_be_read_is_named_once(unreadable, begin):
    documents = [unreadable, HEAD, unreadable, "kind: Pod\napiVersion: v1\n", unreadable]
    for text in (begin.join(f"{it}\n" for it in documents), begin + f"\n{begin}".join(documents)):
        loaded, problems = read_objects(text, "shop.yaml")
        assert [one.object["metadata"]["name"] for one in loaded] == ["a"]
        assert len(problems) == 4, problems
        lines = [problem.position.line for problem in problems]
        assert sorted(set(lines)) == lines
        with pytest.raises(InvalidManifest) as refused:
            load_manifests(text, "shop.yaml")
        assert refused.value.problems == tuple(problems)


def test_the_lines_of_later_documents_are_told_as_they_stand():
    message = refusal(f"a: [\n---\n{HEAD}---\na: 1\nb: 2\na: 3\n")
    assert 'shop.yaml:10:1: "a" is given twice, first in line 8' in message


def test_lists_are_taken_apart():
    item = "apiVersion: v1\n  kind: Secret\n  metadata: {name: %s}\n"
    text = "kind: List\napiVersion: v1\nitems:\n- " + item % "a" + "- " + item % "b"
    loaded = load_manifests(text, "shop.yaml")

    assert [(item.object["metadata"]["name"], item.line) for item in loaded] == [("a", 4), ("b", 7)]
    assert load_manifests("kind: List\nitems: []\n", "shop.yaml") == []
    assert load_manifests("kind: List\nitems:\n", "shop.yaml") == []


def test_items_of_a_typed_list_are_of_its_kind():
    text = "apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: a}\n"
    (loaded,) = load_manifests(text, "shop.yaml")

    assert loaded.object == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a"},
    }


def test_a_custom_kind_may_be_named_like_a_list():
    text = "apiVersion: x.io/v1\nkind: AllowList\nmetadata: {name: a}\nitems: [b]\n"
    (loaded,) = load_manifests(text, "shop.yaml")
    assert loaded.object["items"] == ["b"]


def test_real_manifests_load_whole(parser):
    if not REAL_MANIFESTS.is_dir():
        pytest.skip(f"no manifests to try in {REAL_MANIFESTS}")
    files = sorted(REAL_MANIFESTS.rglob("*.yaml"))
    if parser == "python":
        # Some ten times as slow, and the language is the same.
        files = [file for file in files if file.stat().st_size < 50_000]
    objects = [item for file in files for item in load_manifests(file.read_text(), file.name)]

    kinds = BUILT_IN_KINDS.extended_by(item.object for item in objects)
    keys = [kinds.key_of(item.object) for item in objects]
    assert len(objects) > 100
    assert len(set(keys)) == len(keys)
