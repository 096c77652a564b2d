"""One file to install from without a network: the same bytes, whole, and signed."""

import gzip
import io
import shutil
import subprocess
import tarfile

import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from leafcast.bundles.keys import public_key, signing_key
from leafcast.bundles.packing import make_bundle
from leafcast.bundles.sums import INSTALLER, SIGNATURE, SUMS, BundleUnusable, is_bundle_name
from leafcast.bundles.verification import verify_bundle
from leafcast.cli.main import cli
from tests.chart_archive import write_chart

FILES = {
    "leafcast-1.2.3-py3-none-any.whl": b"the program",
    "leafcast_1.2.3_amd64.deb": b"the package",
    "wheels/msgpack-1.0.whl": b"what it needs",
    # Longer than the oldest form of a tar knows.
    f"wheels/{'long-' * 20}1.0-py3-none-any.whl": b"and more",
}
TOP = "leafcast-1.2.3"


def folder(at, files=FILES):
    for name, data in files.items():
        (at / name).parent.mkdir(parents=True, exist_ok=True)
        (at / name).write_bytes(data)
    return at


@pytest.fixture
def bundle(tmp_path):
    file = tmp_path / "bundle.tar"
    make_bundle(folder(tmp_path / "dist"), file, None)
    return file


def entries(bundle):
    """Name and content of each file, in order."""
    with tarfile.open(bundle) as tar:
        return [(entry, tar.extractfile(entry).read()) for entry in tar]


def junk_in(place, whole, member):
    """The bytes of a bundle with something more in it, which tar passes over."""
    *_, (last, _) = member
    end = last.offset_data + last.size
    padded = end + -end % 512
    other = tarfile.TarInfo("leafcast-9/more")
    match place:
        case "after its end":
            return whole + b"junk"
        case "behind the last file":
            return whole[:padded] + b"j" * 512 + whole[padded + 512 :]
        case "in the empty end":
            return whole[:-4] + b"junk"
        case "a second bundle":
            return whole + whole
        case "beside a file":
            assert padded > end
            return whole[:end] + b"j" + whole[end + 1 :]
        case "an owner":
            entry = member[1][0]
            at, head = entry.offset_data - 512, member[1][0]
            head.uname = "junk"
            return whole[:at] + head.tobuf(tarfile.GNU_FORMAT)[-512:] + whole[at + 512 :]
        case "a comment":
            other.pax_headers = {"comment": "junk"}
            head = other.create_pax_header(other.get_info(), "utf-8")[:-512]
            at = member[1][0].offset
            return whole[:at] + head + whole[at:]
        case "no end":
            return whole[:padded]
        case "gzip":
            return gzip.compress(whole)
    raise AssertionError(place)


@pytest.mark.parametrize(
    "place",
    [
        "after its end",
        "behind the last file",
        "in the empty end",
        "a second bundle",
        "beside a file",
        "an owner",
        "a comment",
        "no end",
        "gzip",
    ],
)
def test_a_bundle_with_something_beside_its_files_is_refused(bundle, place):
    whole = bundle.read_bytes()
    bundle.write_bytes(junk_in(place, whole, entries(bundle)))
    with pytest.raises(BundleUnusable, match=r"something else|no whole tar"):
        verify_bundle(bundle, None)


def rewritten(bundle, found):
    with tarfile.open(bundle, "w", format=tarfile.GNU_FORMAT) as tar:
        for entry, data in found:
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))


def refused(bundle, key=None):
    with pytest.raises(BundleUnusable) as error:
        verify_bundle(bundle, key)
    return error.value.reason


def test_the_same_files_give_the_same_bytes(tmp_path, bundle):
    again = folder(tmp_path / "elsewhere", dict(reversed(FILES.items())))
    for file in again.rglob("*.*"):
        file.chmod(0o600)
    made = make_bundle(again, tmp_path / "again.tar", None)
    assert (tmp_path / "again.tar").read_bytes() == bundle.read_bytes()
    assert (made.version, made.files) == ("1.2.3", len(FILES) + 1)
    found = verify_bundle(bundle, None)
    assert found.sha256 == made.sha256
    assert not found.is_signed


def test_a_bundle_replaces_nothing_and_leaves_nothing_behind(tmp_path, bundle):
    before = sorted(tmp_path.iterdir())
    with pytest.raises(BundleUnusable, match="it is there already"):
        make_bundle(tmp_path / "dist", bundle, None)
    with pytest.raises(BundleUnusable, match="name another place: -o FILE"):
        make_bundle(tmp_path / "dist", tmp_path / "nowhere" / "b.tar", None)
    assert sorted(tmp_path.iterdir()) == before


def test_any_file_that_is_not_what_the_sums_say_is_named(bundle):
    found = entries(bundle)
    for at, (entry, data) in enumerate(found):
        name = entry.name.removeprefix(f"{TOP}/")
        if name != SUMS:
            changed = [*found[:at], (entry, data[:-1] + b"!"), *found[at + 1 :]]
            rewritten(bundle, changed)
            assert refused(bundle) == f"{name} is not what {SUMS} says"
            rewritten(bundle, [*found[:at], *found[at + 1 :]])
            assert refused(bundle) == f"{name} is missing"
    rewritten(bundle, found)
    assert verify_bundle(bundle, None).files == len(FILES) + 1


@pytest.mark.parametrize("name", ["../out", f"{TOP}/../../out", "/etc/passwd", f"{TOP}/more", TOP])
def test_a_file_that_the_sums_do_not_name_is_refused(bundle, name):
    rewritten(bundle, [*entries(bundle), (tarfile.TarInfo(name), b"more")])
    assert "no file of a bundle" in (said := refused(bundle)) or "does not name" in said


def test_a_file_that_is_there_twice_or_a_link_is_refused(bundle):
    found = entries(bundle)
    rewritten(bundle, [*found, found[-1]])
    assert "there twice" in refused(bundle)
    link = tarfile.TarInfo(found[-1][0].name)
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    rewritten(bundle, [*found[:-1], (link, b"")])
    assert "no file of a bundle" in refused(bundle)


def test_a_bundle_that_was_cut_is_refused(bundle):
    data = bundle.read_bytes()
    for size in (0, 100, 700, 5000):
        bundle.write_bytes(data[:size])
        assert refused(bundle)


def test_a_folder_that_is_none_of_ours_is_refused(tmp_path):
    empty, link, odd = (tmp_path / name for name in ("empty", "link", "odd"))
    empty.mkdir()
    with pytest.raises(BundleUnusable, match="0 wheels of Leafcast, and not one"):
        make_bundle(empty, tmp_path / "b.tar", None)
    (folder(link) / "more").symlink_to("/etc/passwd")
    with pytest.raises(BundleUnusable, match="no plain file"):
        make_bundle(link, tmp_path / "b.tar", None)
    (folder(odd) / "two words").touch()
    with pytest.raises(BundleUnusable, match="such a name"):
        make_bundle(odd, tmp_path / "b.tar", None)
    assert not is_bundle_name("../x")
    assert not is_bundle_name("a//b")


def pem(key, file):
    file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    file.with_suffix(".pub").write_bytes(public)
    return file


def test_a_signed_bundle_is_believed_with_its_makers_key_alone(tmp_path):
    own, other = (pem(Ed25519PrivateKey.generate(), tmp_path / name) for name in ("own", "other"))
    dist, file = folder(tmp_path / "dist"), tmp_path / "bundle.tar"
    words = ("bundle", "make", str(dist), "-o", str(file), "--sign", str(own))
    assert "5 files, 1 MB, signed" in CliRunner().invoke(cli, words, catch_exceptions=False).output
    verify = ("bundle", "verify", str(file))
    with_key = (*verify, "--key", str(own.with_suffix(".pub")))
    assert "all whole, signed by this key" in CliRunner().invoke(cli, with_key).output
    assert "its signature was not looked at" in CliRunner().invoke(cli, verify).output
    foreign = public_key(other.with_suffix(".pub"))
    assert refused(file, foreign) == "another key than this one signed it"
    unsigned = [it for it in entries(file) if not it[0].name.endswith(SIGNATURE)]
    rewritten(file, unsigned)
    assert refused(file, public_key(own.with_suffix(".pub"))) == "nobody signed it"


@pytest.mark.skipif(shutil.which("openssl") is None, reason="NOT RUN: there is no openssl")
def test_openssl_makes_the_keys_and_verifies_what_they_signed(tmp_path):
    def run(*words, cwd=tmp_path):
        return subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=True).stdout

    run(*["openssl", "genpkey", "-algorithm", "ed25519", "-out", "release.pem"])
    run(*["openssl", "pkey", "-in", "release.pem", "-pubout", "-out", "release.pub"])
    file = tmp_path / "bundle.tar"
    make_bundle(folder(tmp_path / "dist"), file, signing_key(tmp_path / "release.pem"))
    assert verify_bundle(file, public_key(tmp_path / "release.pub")).is_signed
    run("tar", "-xf", file)
    verify = "openssl pkeyutl -verify -pubin -inkey ../release.pub -rawin"
    said = run(*verify.split(), "-in", SUMS, "-sigfile", SIGNATURE, cwd=tmp_path / TOP)
    assert "Verified Successfully" in said


def test_a_key_of_another_kind_is_refused(tmp_path):
    file = pem(generate_private_key(SECP256R1()), tmp_path / "key")
    for read in (signing_key, public_key):
        with pytest.raises(BundleUnusable, match=r"Ed25519|PEM|public key"):
            read(file)
    with pytest.raises(BundleUnusable, match="no public Ed25519 key"):
        public_key(file.with_suffix(".pub"))


def test_the_installer_refuses_a_file_that_was_changed(tmp_path, bundle):
    subprocess.run(["tar", "-xf", bundle, "-C", tmp_path], check=True)

    def check():
        words = ["sh", tmp_path / TOP / INSTALLER, "check"]
        return subprocess.run(words, capture_output=True, text=True, check=False)

    assert check().stdout == f"all files are what {SUMS} says\n"
    (tmp_path / TOP / "leafcast_1.2.3_amd64.deb").write_bytes(b"another")
    done = check()
    assert done.returncode == 1
    assert "leafcast_1.2.3_amd64.deb: FAILED" in done.stderr


def test_the_chart_in_one_file_has_the_same_bytes_each_time(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    first, second = (write_chart(tmp_path / name) for name in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(first) as tar:
        names = tar.getnames()
    assert {"leafcast/Chart.yaml", "leafcast/templates/NOTES.txt"} <= set(names)


IMAGE = {"images/leafcast.tar.gz": b"an image"}


@pytest.mark.parametrize(
    ("words", "left_out"),
    [
        ([], []),
        (["--images", "--packages"], []),
        (["--images"], ["leafcast_1.2.3_amd64.deb", *(it for it in FILES if "wheels/" in it)]),
        (["--packages"], list(IMAGE)),
    ],
)
def test_one_command_makes_a_bundle_of_what_it_is_asked_for(tmp_path, monkeypatch, words, left_out):
    files = {**FILES, **IMAGE, "leafcast-1.2.3.tgz": b"the chart"}
    # One that was made before does not go into the next.
    folder(tmp_path / "dist", {**files, "leafcast-bundle.tar": b"one made before"})
    monkeypatch.chdir(tmp_path)
    ran = CliRunner().invoke(cli, ["bundle", *(words or ["make"])])
    assert ran.exit_code == 0, ran.output
    file = tmp_path / "leafcast-bundle.tar"
    said, *put = (entry.name.removeprefix(f"{TOP}/") for entry, _ in entries(file))
    assert said == SUMS
    assert sorted(put) == sorted({INSTALLER, *files} - set(left_out))
    assert verify_bundle(file, None).files == len(put)


@pytest.mark.parametrize(
    ("kind", "files", "lacks"),
    [
        ("--images", FILES, "bundle dist: it has no container images"),
        ("--packages", {**IMAGE, "leafcast-1.2.3-py3-none-any.whl": b""}, "no Debian package"),
        ("--images", {}, "it has 0 wheels of Leafcast"),
    ],
)
def test_what_is_asked_for_and_is_not_there_is_named_and_nothing_is_made(
    tmp_path, monkeypatch, kind, files, lacks
):
    folder(tmp_path / "dist", files)
    monkeypatch.chdir(tmp_path)
    ran = CliRunner().invoke(cli, ["bundle", kind])
    assert ran.exit_code != 0
    said = f"{ran.exception}"
    assert lacks in said
    assert "make dist" in said or "make bundle" in said
    assert not (tmp_path / "leafcast-bundle.tar").exists()
