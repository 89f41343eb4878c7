#!/usr/bin/env bash
# What `make install` puts in place, below a DESTDIR: all of it, where each other looks for it.
. "$SRC/tests/helpers/script.sh"
build=$(dirname "$GOGH")

put() {
    DESTDIR="$dir/root" meson install -C "$build" --no-rebuild >"$dir/said"
}
option() { # NAME: as the build has it
    meson introspect "$build" --buildoptions | jq -r --arg name "$1" '.[] | select(.name == $name).value'
}

[ -f "$build/gogh.conf" ] || { echo "skipped: $build is not built in full"; exit 77; }
put
prefix=$(option prefix)
at=$dir/root$prefix
libexec=$prefix/$(option libexecdir)/gogh
config=$(option sysconfdir)
[[ $config == /* ]] || config=$prefix/$config    # a build directory from before it was /etc
config=$dir/root$config/gogh/gogh.conf
for file in "$at/bin/gogh" "$at/sbin/goghd" "$dir/root$libexec/gogh-keeper" "$at/include/gogh.h" \
    "$dir/root$libexec/gogh-burn" "$at/share/man/man1/gogh-burn.1" \
    "$dir/root$libexec/gogh-pair" "$at/share/man/man1/gogh-pair.1" "$at/share/doc/gogh/formats/pair.md" \
    "$at/share/man/man1/gogh.1" "$at/share/man/man5/gogh.conf.5" "$at/share/man/man8/goghd.8" \
    "$at/share/man/man8/gogh-slurm-setup.8" "$at/share/gogh/slurm/job_submit.lua" "$at/share/doc/gogh/slurm.md" \
    "$at/share/doc/gogh/advise.md" "$at/share/doc/gogh/reporting.md" \
    "$at/share/bash-completion/completions/gogh" "$at/lib/sysusers.d/gogh.conf" \
    "$at/share/doc/gogh/api.md" "$at/share/doc/gogh/formats/gogh.conf.md" \
    "$at/share/doc/gogh/examples/box.conf" "$at/share/gogh/scenarios/builtin.scenario" "$config"; do
    [ -s "$file" ] || no "not installed: ${file#"$dir/root"}"
done
[ -n "$(find "$at/lib" -path '*/dist-packages/gogh.py')" ] || no "the Python module is not installed"
for file in bin/gogh sbin/goghd sbin/gogh-slurm-setup; do
    [ -x "$at/$file" ] || no "$file cannot be run"
done

# The unit starts the program that is there, as the user that is made.
unit=$(find "$dir/root" -name goghd.service)
grep -qx "ExecStart=$prefix/sbin/goghd" "$unit" || no "the unit starts something else"
grep -q "^u $(sed -n 's/^User=//p' "$unit") " "$at/lib/sysusers.d/gogh.conf" ||
    no "the unit's user is not the one that is made"
! grep -q '@[a-z]*@' "$unit" || no "the unit has names that were not replaced"
grep -aqF "$libexec" "$at/sbin/goghd" || no "goghd does not look for its programs in $libexec"

# An administrator's configuration stays.
"$GOGH" config template | cmp - "$config" || no "gogh.conf is another"
echo "node box v100:1" >"$config"
put
grep -qx "node box v100:1" "$config" || no "gogh.conf was overwritten"
[ -s "$config.new" ] || no "there is no gogh.conf.new"

# The installed programs run, with the weights that they carry.
cat >"$dir/tiny.conf" <<END
store $dir/gogh.db
run_dir $dir/runs
socket $dir/gogh.sock
gpus declared
model pretrained
node box v100:1
END
"$at/sbin/goghd" --config "$dir/tiny.conf" --check || no "goghd --check fails"
[ "$("$at/sbin/goghd" --version | cut -d' ' -f2)" = "$("$at/bin/gogh" version | cut -d' ' -f2)" ] ||
    no "gogh and goghd are of different versions"
"$at/bin/gogh" predict --workload LM --batch 20 --gpu v100 --model pretrained >"$dir/predicted" ||
    no "there are no pretrained weights"

# Manual pages are well formed.
if command -v groff >/dev/null; then
    for page in "$at"/share/man/man?/*; do
        groff -mandoc -ww -z -Tutf8 "$page" >"$dir/groff" 2>&1
        [ ! -s "$dir/groff" ] || no "$(cat "$dir/groff")"
    done
fi
if command -v mandoc >/dev/null; then
    mandoc -Tlint -Wwarning "$at"/share/man/man?/* || no "mandoc finds the manual pages good"
fi
