"""`-o jsonpath=`: what kubectl prints for the same template."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcast.show.json_path_output import BadTemplate, read_path, read_template

PODS = {
    "kind": "List",
    "items": [
        {
            "metadata": {"name": "web", "labels": {"app.kubernetes.io/name": "web", "a b": "c"}},
            "spec": {"replicas": 2, "on": True, "image": None},
            "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Held"}]},
        },
        {"metadata": {"name": "cache"}, "spec": {"replicas": 1}, "status": {}},
    ],
}


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{.items[*].metadata.name}", "web cache"),
        ("{$.items[*]['metadata'].name}", "web cache"),
        ("{.items[*]['metadata.name', 'kind']}", ""),
        ("{.items[0]['metadata']['name']}", "web"),
        ('{.items[0].metadata["name"]}', "web"),
        ("{.items[-1].metadata.name}", "cache"),
        ("{.items[0:1].metadata.name}", "web"),
        ("{.items[:].metadata.name}", "web cache"),
        ("{.items[::2].metadata.name}", "web"),
        ("{.items[0,1].spec.replicas}", "2 1"),
        ("{..name}", "web cache"),
        ("{.items[0].metadata.labels.app\\.kubernetes\\.io/name}", "web"),
        ("{.items[0].metadata.labels['app.kubernetes.io/name']}", "web"),
        ("{.items[0].metadata.labels['a b']}", "c"),
        ("{.items[?(@.spec.replicas>1)].metadata.name}", "web"),
        ("{.items[?(@.spec.replicas!=2)].metadata.name}", "cache"),
        ('{.items[?(@.metadata.name=="cache")].spec.replicas}', "1"),
        ("{.items[?(@.spec.on)].metadata.name}", "web"),
        ('{.items[*].status.conditions[?(@.type=="Ready")].status}', "True"),
        ('{.items[?(@.spec.replicas>"x")].metadata.name}', ""),
        ("{.items[0].spec}", '{"replicas":2,"on":true,"image":null}'),
        ("{.items[0].spec.on} {.items[0].spec.image}", "true null"),
        ("{.nothing.at.all}", ""),
        ("n={.items[0].spec.replicas};", "n=2;"),
        ('{"a\\tb\\n"}', "a\tb\n"),
        ('{.kind}{"{}"}', "List{}"),
        (
            '{range .items[*]}{.metadata.name}{"\\t"}{.spec.replicas}{"\\n"}{end}',
            "web\t2\ncache\t1\n",
        ),
        ("{range .items[*]}{range .status.conditions[*]}{.type},{end};{end}", "Ready,Held,;;"),
        ("{range .items[*]}{$.kind} {end}", "List List "),
        ("{range .items[*]}[{.metadata.name}] {end}", "[web] [cache] "),
    ],
)
def test_a_template_says_what_kubectl_would(template, said):
    assert read_template(template).of(PODS) == said


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("", "no braces"),
        (".metadata.name", "no braces"),
        ("{.metadata.name", "not closed"),
        ("{.a[0}", "bracket is not closed"),
        ("{metadata}", "begins with a dot"),
        ("{range .items[*]}{.a}", "not ended"),
        ("{.a}{end}", "no {range PATH} is open"),
        ("{.a[b]}", "write [0]"),
        ("{.a[?(@.b==c)]}", "in quotes"),
        ("{.a[0:1:0]}", "not 0"),
        ("{.a..}", "no name stands before"),
        ("{" + "[?(@" * 1000 + "}", "closed"),
        ("{.a" + "[?(@" * 800 + ")]" * 400 + "}", "closed"),
        ("{" + "[?(@" * 680 + ")]" * 680 + "}", "too deeply"),
        ("{'a}", "not closed"),
        ("{." + "a" * 5000 + "}", "at most 4096"),
    ],
)
def test_what_is_no_template_is_refused_with_what_to_write(template, why):
    with pytest.raises(BadTemplate) as refused:
        read_template(template)
    assert why in str(refused.value)


@given(st.text("{}[]().*?@$'\"\\abc01:,=<> ", max_size=30))
def test_any_text_is_a_template_or_refused(text):
    try:
        template = read_template(text)
    except BadTemplate:
        return
    template.of({"a": [{"b": 1}], "b": {"c": "d"}})


def test_a_printer_column_s_path_has_no_braces():
    assert read_path(".spec.replicas").values(PODS["items"][0], PODS["items"][0]) == [2]


@pytest.mark.parametrize(
    ("template", "asks"),
    [
        ("{.items[*].metadata.name}", True),
        ("{range .items[*]}{.metadata.name}{end}", True),
        ("{.kind} {.items}", True),
        ("{['items'][0].kind}", True),
        ("{.metadata.name}", False),
        ("{..items}", False),
        ("{.*}", False),
        ("{.spec.items[0]}", False),
        ("{@}", False),
    ],
)
def test_whether_a_template_asks_for_a_list_is_told_by_where_it_begins(template, asks):
    assert read_template(template).begins_with("items") is asks
