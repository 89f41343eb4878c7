#!/usr/bin/env bash
# gogh config: a file looked over, shown, begun; and that the documents know every setting.
. "$SRC/tests/helpers/script.sh"

cat >"$dir/gogh.conf" <<CONF
store $dir/gogh.db
run_dir $dir/runs
socket $dir/gogh.sock mode=0600
gpus declared
node box k80:2 v100:1
CONF
expect 0 config check "$dir/gogh.conf"
grep -q ': good$' "$dir/out" || no 'a good file is called good'
echo 'allow user=nobody-of-this-name read' >>"$dir/gogh.conf"
expect 0 config check "$dir/gogh.conf"
grep -q 'gogh.conf:6: allow: there is no user' "$dir/out" || no 'a note names its line'
echo 'policy best' >>"$dir/gogh.conf"
expect 1 config check "$dir/gogh.conf"
grep -q 'gogh.conf:7: policy: .*fifo-fastest' "$dir/out" || no 'a finding names line and cure'
echo 'polycy gogh' >>"$dir/gogh.conf"
expect 1 config check "$dir/gogh.conf"
grep -q "gogh.conf:8: there is no setting 'polycy'; did you mean 'policy'?" "$dir/err" || no 'a slip is understood'
expect 1 config check "$dir/none.conf"
grep -q none.conf "$dir/err" || no 'a missing file is named'
expect 2 config
expect 2 config chekc
expect 2 config template "$dir/x"

sed -i '/^pol/d' "$dir/gogh.conf"
expect 0 config show "$dir/gogh.conf"
cp "$dir/out" "$dir/shown.conf"
expect 0 config show "$dir/shown.conf"
cmp -s "$dir/out" "$dir/shown.conf" || no 'what is shown reads back'
expect 0 config show "$dir/gogh.conf" --json
jq -e '.node == [{"name": "box", "gpus": ["k80", "k80", "v100"]}] and .set.report_s == 60 and .socket.mode == "0600"' \
    "$dir/out" >/dev/null || no 'shown as JSON'
words=$(jq -r 'keys[]' "$dir/out")

# The template has every setting; with the marks taken away it is a file that can be read.
expect 0 config template
sed 's/^#\([a-z]\)/\1/' "$dir/out" >"$dir/whole.conf"
cp "$dir/out" "$dir/template"
expect 0 config show "$dir/whole.conf"
for w in $words; do
    grep -q "^#$w " "$dir/template" || no "the template has '$w'"
    grep -qE "\`${w}[\` ]" "$SRC/docs/formats/gogh.conf.md" || no "docs/formats/gogh.conf.md has '$w'"
    grep -qE "^\.It Ic $w( |\$)" "$SRC/docs/man/gogh.conf.5" || no "docs/man/gogh.conf.5 has '$w'"
done
[[ $(wc -w <<<"$words") -gt 30 ]] || no 'there are many settings'

if command -v mandoc >/dev/null; then
    mandoc -T lint -W warning "$SRC/docs/man/gogh.conf.5" "$SRC/docs/man/goghd.8" || no 'the pages are clean'
fi

# Every option that a command tells of is completed, and is in the manual page.
# shellcheck source=packaging/gogh.bash
. "$SRC/packaging/gogh.bash"
# shellcheck disable=SC2317    # completion calls it
gogh() { return 1; }    # no daemon
for c in submit jobs show explain cancel hold release nodes top plan report shadow config token tick; do
    for option in $("$GOGH" "$c" --help | sed '/^Examples:/,$d' | grep -oE -- '--[a-z][a-z-]+' | sort -u); do
        [[ " $(_gogh_words "$c" '') " == *" $option "* ]] || no "'$c $option' is completed"
        grep -qE -- "\\\\-${option#--}( |\$)" "$SRC/docs/man/gogh.1" || no "gogh.1 has '$option' of $c"
    done
    grep -qE "^\.Ss .*gogh $c" "$SRC/docs/man/gogh.1" || no "gogh.1 has '$c'"
done
COMP_WORDS=(gogh jobs --state w) COMP_CWORD=3
_gogh
[[ ${COMPREPLY[*]} == waiting ]] || no "a state is completed: ${COMPREPLY[*]}"
