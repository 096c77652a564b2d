"""A tree's certificate authority: what it signs, for how long, and what is refused."""

import pytest

from relay.adapters.tls.authority import (
    Authority,
    RequestRefused,
    new_key,
    renewal_due,
    requested_names,
    signing_request,
    valid_until,
)
from relay.adapters.tls.certificate_checks import CertificateUnusable, check_pair
from relay.adapters.tls.names import host_form, is_host

DAY_MS = 86_400_000
NOW_MS = 1_800_000_000_000
TREE = Authority.make("leafcast tree", NOW_MS)
KEY = new_key()
NAMES = ("centre.example", "10.0.0.7", "fd00::7")
CERTIFICATE = TREE.issue(signing_request(KEY, NAMES), NOW_MS)


def test_a_certificate_is_for_the_names_asked_for_and_thirty_days():
    check_pair(CERTIFICATE, KEY, TREE.certificate, NAMES, NOW_MS, "it")
    assert valid_until(CERTIFICATE) == NOW_MS + 30 * DAY_MS
    assert requested_names(signing_request(KEY, NAMES)) == NAMES


def test_it_is_due_when_two_thirds_of_its_time_are_over():
    assert not renewal_due(CERTIFICATE, NOW_MS + 19 * DAY_MS)
    assert renewal_due(CERTIFICATE, NOW_MS + 20 * DAY_MS + 1)


def test_the_authority_decides_names_and_time_not_the_request():
    made = TREE.issue(signing_request(KEY, NAMES), NOW_MS, NOW_MS + DAY_MS, ["only.example"])
    check_pair(made, KEY, TREE.certificate, ["only.example"], NOW_MS, "it")
    with pytest.raises(CertificateUnusable, match=r"it is for only.example, not for 10.0.0.7"):
        check_pair(made, KEY, TREE.certificate, ["10.0.0.7"], NOW_MS, "it")
    assert valid_until(made) == NOW_MS + DAY_MS


def test_a_certificate_never_outlives_its_authority():
    made = TREE.issue(signing_request(KEY, NAMES), NOW_MS, NOW_MS + 9999 * DAY_MS)
    assert valid_until(made) == valid_until(TREE.certificate)


@pytest.mark.parametrize("text", ["", "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n", KEY])
def test_what_is_no_request_is_refused(text):
    with pytest.raises(RequestRefused, match="no signing request"):
        TREE.issue(text, NOW_MS)


def test_a_request_by_someone_elses_key_is_refused():
    lines = signing_request(KEY, NAMES).splitlines()
    forged = "\n".join([*lines[:-2], lines[-2][:10] + "AAAA" + lines[-2][14:], lines[-1]])
    with pytest.raises(RequestRefused):
        TREE.issue(forged, NOW_MS)


def test_a_request_for_no_host_or_for_too_many_is_refused():
    with pytest.raises(RequestRefused, match="names no host"):
        TREE.issue(signing_request(KEY, []), NOW_MS)
    with pytest.raises(RequestRefused, match="at most 16"):
        TREE.issue(signing_request(KEY, [f"h{n}.example" for n in range(17)]), NOW_MS)


OTHER = Authority.make("other", NOW_MS)


@pytest.mark.parametrize(
    ("certificate", "key", "authorities", "name", "now_ms", "said"),
    [
        (CERTIFICATE, KEY, OTHER.certificate, "centre.example", NOW_MS, "none of the authorities"),
        (CERTIFICATE, KEY, "nothing", "centre.example", NOW_MS, "holds no certificate"),
        (CERTIFICATE, KEY, TREE.certificate, "elsewhere.example", NOW_MS, "not for elsewhere"),
        (CERTIFICATE, KEY, TREE.certificate, "10.0.0.8", NOW_MS, "not for 10.0.0.8"),
        (CERTIFICATE, KEY, TREE.certificate, "centre.example", NOW_MS + 31 * DAY_MS, "ended on"),
        (CERTIFICATE, KEY, TREE.certificate, "centre.example", NOW_MS - DAY_MS, "not good before"),
        (CERTIFICATE, new_key(), TREE.certificate, "centre.example", NOW_MS, "another cert"),
        (CERTIFICATE, "nothing", TREE.certificate, "centre.example", NOW_MS, "cannot be read"),
        ("nothing", KEY, TREE.certificate, "centre.example", NOW_MS, "holds no certificate"),
    ],
)
def test_what_children_would_refuse_is_refused_before(
    certificate, key, authorities, name, now_ms, said
):
    with pytest.raises(CertificateUnusable, match=said) as refused:
        check_pair(certificate, key, authorities, [name], now_ms, "server.pem")
    assert "server.pem" in refused.value.what
    assert refused.value.remedy


@pytest.mark.parametrize("name", ["*.example", "CENTRE.example", "centre.example.", "::"])
def test_a_request_for_what_could_be_anothers_name_is_refused(name):
    with pytest.raises(RequestRefused, match="names no single host"):
        requested_names(signing_request(KEY, ["mine.example", name]))


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("::FFFF:A00:1", "10.0.0.1"),
        ("2001:DB8:0:0:0:0:0:1", "2001:db8::1"),
        ("CENTRE.example.", "centre.example"),
        ("::10.0.0.1", "::a00:1"),
    ],
)
def test_what_is_one_name_to_those_who_check_has_one_form(name, form):
    assert host_form(name) == form == host_form(form)
    made = TREE.issue(signing_request(KEY, ["mine.example"]), NOW_MS, names=[form])
    check_pair(made, KEY, TREE.certificate, [name], NOW_MS, "it")


def test_a_request_for_an_address_in_another_form_asks_for_that_address():
    request = signing_request(KEY, ["::ffff:10.0.0.1", "10.0.0.1"])
    assert requested_names(request) == ("10.0.0.1",)


@pytest.mark.parametrize("name", ["fe80::1%eth0", "::ffff:0.0.0.0", "::"])
def test_an_address_that_means_one_machine_to_no_other_is_no_host(name):
    assert not is_host(name)


def test_a_wildcard_serves_one_label_below():
    made = TREE.issue(signing_request(KEY, NAMES), NOW_MS, names=["*.stores.example"])
    check_pair(made, KEY, TREE.certificate, ["seven.stores.example"], NOW_MS, "it")
    with pytest.raises(CertificateUnusable):
        check_pair(made, KEY, TREE.certificate, ["a.seven.stores.example"], NOW_MS, "it")


def test_the_private_keys_show_in_no_text():
    assert "PRIVATE" not in repr(TREE)
