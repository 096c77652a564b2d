"""Expressions in texts: what is expanded, what stays, and what is refused."""

import pytest

from relay.objects.expansion import ExpressionWrong, PropertyMissing, Syntax

PARAMETERS, TEMPLATES, BOTH = Syntax(True, False), Syntax(False, True), Syntax(True, True)
VALUES = {"env": "prod", "example.com/zone": "z-1", "_x1": "under", "deep": "%(env) {{ .env }} %%"}


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("in %(env)", "in prod"),
        ("%(example.com/zone)/%(env)", "z-1/prod"),
        ("%(no such) stays", "%(no such) stays"),
        ("%(open", "%(open"),
        ("%(env", "prod"),
        ("%%(env)", "%(env)"),
        ("%%%(env)", "%prod"),
        ("50%% off", "50% off"),
        ("%x %", "%x %"),
        ("%()", "%()"),
        ("%(deep)", "%(env) {{ .env }} %%"),
        ("{{ .env }}", "{{ .env }}"),
    ],
)
def test_parameters(text, expanded):
    assert PARAMETERS.expand(text, VALUES, {}) == expanded


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("in {{ .env }}", "in prod"),
        ("{{.env}}{{\t._x1\n}}", "produnder"),
        ("}} alone, { and %(env) %%", "}} alone, { and %(env) %%"),
        ("{{ .deep }}", "%(env) {{ .env }} %%"),
    ],
)
def test_templates(text, expanded):
    assert TEMPLATES.expand(text, VALUES, {}) == expanded


@pytest.mark.parametrize(
    "text",
    [
        "{{ env }}",
        "{{ .example.com/zone }}",
        "{{ .env | upper }}",
        "{{ if .env }}",
        "{{- .env -}}",
        "{{ .1st }}",
        "{{ .env",
        "{{{ .env }}}",
        '{{ "text" }}',
        "{{}}",
        "{{/* note */}}",
    ],
)
def test_whatever_else_stands_between_braces_is_wrong(text):
    with pytest.raises(ExpressionWrong, match=r"only \{\{ .name \}\} is supported"):
        TEMPLATES.expand(f"a {text}", VALUES, {})
    with pytest.raises(ExpressionWrong):
        TEMPLATES.check(f"a {text}")
    assert PARAMETERS.expand(text, VALUES, {}) == text


def test_the_reason_stands_before_the_expression_and_nothing_else_is_quoted():
    text = "{{ if\n  .env }} and so on" + " ." * 5000
    with pytest.raises(ExpressionWrong) as wrong:
        TEMPLATES.expand(text, VALUES, {})
    supported = "only {{ .name }} is supported, with the name of a property"
    assert str(wrong.value) == f'{supported}, not "{{{{ if .env }}}}"'
    with pytest.raises(ExpressionWrong) as wrong:
        TEMPLATES.expand("{{ " + "x" * 5000, VALUES, {})
    assert len(str(wrong.value)) < 140


def test_a_template_needs_its_property():
    used = {}
    with pytest.raises(PropertyMissing, match='no property "till"') as missing:
        BOTH.expand("%(no) {{ .env }} {{ .till }}", VALUES, used)
    assert missing.value.name == "till"
    assert used == {"%no": None, "env": "prod", "till": None}
    assert TEMPLATES.check("{{ .till }}")
    assert not TEMPLATES.check("till")


def test_a_parameter_may_be_another_value_than_the_template_of_its_name():
    used = {}
    values = {"env": "prod", "%env": "of-the-label"}
    assert BOTH.expand("%(env) {{ .env }}", values, used) == "of-the-label prod"
    assert used == {"%env": "of-the-label", "env": "prod"}
