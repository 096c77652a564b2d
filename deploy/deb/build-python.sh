#!/bin/sh
# Build CPython from Debian's source package, on the C library of Debian SUITE, for each architecture.
#
#   sh build-python.sh TRIPLET [TRIPLET...]
#
# Runs in a bare root of that Debian, in the folder of the source package, as tests/interpreter.py
# makes it. The first triplet is the machine's own: what its interpreter does while it runs the tests
# that CPython has for that purpose tells the compiler which ways are taken often. The profile is by
# function and by its flow alone, so it holds for the others; where the flow differs, it is not used.
# Then each is optimised as a whole, as Debian's own is: the linker sees all of its functions.
# Writes out/TRIPLET/bin, lib and copyright.
set -eu
here=$PWD
dpkg-source --no-check -x ./*.dsc source >/dev/null
(cd source && autoconf)
VERSION=$(sed -n 's/^VERSION=\([0-9.]*\)$/\1/p' source/configure)

configured() { # FOLDER TRIPLET [OPTION...]: configures in build/FOLDER, and stays there
  mkdir -p "$here/build/$1"
  cd "$here/build/$1"
  triplet=$2
  shift 2
  CC=$triplet-gcc AR=$triplet-gcc-ar RANLIB=$triplet-gcc-ranlib \
    PKG_CONFIG_LIBDIR=/usr/lib/$triplet/pkgconfig:/usr/share/pkgconfig \
    CFLAGS_NODIST="$FLAGS" LDFLAGS_NODIST="-Wl,-z,relro" \
    ../../source/configure -q --prefix=/opt/leafcast/python --with-system-expat --without-ensurepip \
    --disable-test-modules --without-static-libpython "$@"
}

installed() { # TRIPLET: from build/TRIPLET, without what nobody runs
  make -s altinstall DESTDIR="$here/staged/$1" >/dev/null
  mkdir -p "$here/out/$1/bin" "$here/out/$1/lib"
  cd "$here/staged/$1/opt/leafcast/python"
  cp "bin/python$VERSION" "$here/out/$1/bin/"
  cp -R "lib/python$VERSION" "$here/out/$1/lib/"
  cp "$here/source/debian/copyright" "$here/out/$1/"
  cd "$here/out/$1"
  find . -name __pycache__ -prune -exec rm -r {} +
  "$1-strip" --strip-unneeded "bin/python$VERSION" "lib/python$VERSION"/lib-dynload/*.so
}

# As Debian hardens its own, which lies at a fixed address, too.
FLAGS="-fstack-protector -Wdate-time -D_FORTIFY_SOURCE=2 -ffile-prefix-map=$here=."
FIXED="-no-pie"
# GCC 12 loses the profile of the loop that runs all of Python where it makes copies of its ways
# (-ftracer, which a profile brings along), and takes the loop for code that is never run. And it
# says itself that -fgcse does a loop of computed jumps no good.
USED="-fprofile-use -fprofile-correction -fno-tracer -Wno-missing-profile -Wno-coverage-mismatch"
LOOP="Python/ceval.o"
jobs=-j$(nproc)
own=$1

configured profile "$own"
make -s "$jobs" profile-run-stamp
for triplet; do
  if [ "$triplet" = "$own" ]; then
    configured "$triplet" "$triplet" --with-lto
  else
    configured "$triplet" "$triplet" --with-lto --build="$own" --host="$triplet" \
      --with-build-python="$here/build/$own/python" \
      ac_cv_file__dev_ptmx=yes ac_cv_file__dev_ptc=no ac_cv_buggy_getaddrinfo=no
  fi
  (cd ../profile && find . -name '*.gcda' -exec cp --parents {} "../$triplet/" \;)
  make -s "$LOOP" CFLAGS_NODIST="$FLAGS $USED -fno-gcse"
  make -s "$jobs" CFLAGS_NODIST="$FLAGS $USED" LINKCC="$triplet-gcc $FIXED"
  installed "$triplet"
done
