#!/usr/bin/env bash
# tools/install-deps against stand-ins for dpkg-query, apt-get and sudo: nothing is installed.
# shellcheck disable=SC2015,SC2016    # the stand-ins are programs of their own
set -euo pipefail
stubs=$(mktemp -d)
trap 'rm -rf "$stubs"' EXIT
failed=0

stub() { printf '#!/bin/sh\n%s\n' "$2" >"$stubs/$1" && chmod +x "$stubs/$1"; }
run() { PATH="$stubs:$PATH" "$SRC/tools/install-deps" "$@" >"$stubs/out" 2>&1; }
not_so() { echo "not so: $1"; cat "$stubs/out"; failed=1; }

stub sudo 'exec "$@"'
stub apt-get "echo \"\$*\" >>$stubs/asked"

# dpkg-query: everything asked for is there.
stub dpkg-query 'shift 3; for p; do printf "installed:%s " "$p"; done'
run lint && [[ ! -s $stubs/out && ! -e $stubs/asked ]] || not_so 'nothing missing means silence'

# dpkg-query: all but two, one of them removed with its configuration left; it then exits 1.
stub dpkg-query 'shift 3; for p; do case $p in
    meson) ;;
    check) printf "config-files:check " ;;
    *) printf "installed:%s " "$p" ;;
    esac; done; exit 1'
run test || not_so 'missing packages are installed'
[[ $(cat "$stubs/out") == 'install-deps: installing meson check' ]] || not_so 'one line says which'
grep -q -- '--no-install-recommends meson check$' "$stubs/asked" || not_so 'and only these'
run build || not_so 'the build needs fewer'
[[ $(cat "$stubs/out") == 'install-deps: installing meson' ]] || not_so 'no test tools for it'

stub apt-get 'echo "E: broken"; exit 100'
if run build; then not_so 'a failed installation fails'; fi
grep -q 'E: broken' "$stubs/out" || not_so 'it says why'
grep -q 'by hand: meson$' "$stubs/out" || not_so 'it says the cure'
if run nonsense; then not_so 'an unknown group is refused'; fi
exit $failed
