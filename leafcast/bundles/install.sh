#!/bin/sh
# Installs Leafcast from the files beside this one; nothing is fetched from anywhere.
set -eu
from=$PWD
cd "$(dirname "$0")"

fail() {
  echo "error: $1" >&2
  exit 1
}

usage() {
  cat <<'END'
sh install.sh package          the Debian package, for all who use this machine (as root)
sh install.sh wheels FOLDER    an environment of its own in FOLDER; PYTHON names the interpreter
sh install.sh images           the container images, into docker, podman or containerd
sh install.sh check            only see whether all files are whole
END
}

check() {
  said=$(sha256sum -c SHA256SUMS 2>&1) || {
    printf '%s\n' "$said" | grep -v ': OK$' >&2 || true
    fail "these files are not what SHA256SUMS says; copy the bundle once more"
  }
}

package() {
  arch=$(dpkg --print-architecture 2>/dev/null) || fail "this is no Debian; see: sh install.sh wheels FOLDER"
  set -- ./leafcast_*_"$arch".deb
  [ -e "$1" ] || fail "the bundle has no Debian package for $arch; see: sh install.sh wheels FOLDER"
  dpkg --install "$1"
}

wheels() {
  case "$1" in /*) folder=$1 ;; *) folder=$from/$1 ;; esac
  python=${PYTHON:-python3}
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$python is no Python 3.11 or later; name one: PYTHON=/path/to/python3 sh install.sh wheels FOLDER"
  [ -d wheels ] || fail "the bundle has no wheels; see: sh install.sh package"
  "$python" -m venv "$folder"
  "$folder/bin/python" -I -m pip --disable-pip-version-check install --quiet --no-index --find-links wheels \
    ./leafcast-*.whl ||
    fail "the wheels of the bundle do not fit $python on this machine: pip says above which is missing"
  "$folder/bin/leafcast" --version
}

images() {
  for image in images/*.tar.gz; do
    [ -e "$image" ] || fail "the bundle has no images"
    if command -v docker >/dev/null; then
      docker load --input "$image"
    elif command -v podman >/dev/null; then
      podman load --input "$image"
    elif command -v ctr >/dev/null; then
      gunzip -c "$image" | ctr --namespace k8s.io images import -
    else
      fail "there is no docker, podman or ctr here to load $image into"
    fi
  done
}

case "${1:-}/$#" in
  package/1) check && package ;;
  wheels/2) check && wheels "$2" ;;
  images/1) check && images ;;
  check/1) check && echo "all files are what SHA256SUMS says" ;;
  *) usage >&2 && exit 2 ;;
esac
