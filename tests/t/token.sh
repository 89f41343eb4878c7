#!/usr/bin/env bash
# `gogh token`: made once, listed without their secret, taken away; the file stays ours alone.
. "$SRC/tests/helpers/script.sh"
file=$dir/tokens

# refused STATUS WORDS ARGUMENT...: ends with STATUS, WORDS on stderr
refused() {
    local want=$1 words=$2 status=0
    shift 2
    "$GOGH" token "$@" --tokens "$file" >"$dir/out" 2>"$dir/err" || status=$?
    [[ $status == "$want" ]] || no "$* ends with $want (was $status)"
    grep -qF -- "$words" "$dir/err" || no "$* says '$words' (said: $(cat "$dir/err"))"
}

refused 1 "gogh token new" list
umask 022
token=$("$GOGH" token new ci --scope submit --owner ann --tokens "$file")
[[ $token =~ ^gogh_[A-Za-z0-9_-]{43}$ ]] || no "a token is printable and has 256 bits ($token)"
[[ $(stat -c %a "$file") == 600 ]] || no "a new file is for its owner alone"
grep -q "$token" "$file" && no "the file holds no token"
grep -q "$(printf %s "$token" | sha256sum | cut -d' ' -f1)" "$file" || no "the file holds its digest"

# Comments and the mode of a file that is there are left alone.
echo '# of the lab' >>"$file"
chmod 640 "$file"
"$GOGH" token new "web page" --scope read --owner www --tokens "$file" >/dev/null
[[ $(stat -c %a "$file") == 640 ]] || no "a file keeps its mode"
[[ $("$GOGH" token list --json --tokens "$file") == \
    '[{"name": "ci", "scope": "submit", "owner": "ann"}, {"name": "web page", "scope": "read", "owner": "www"}]' ]] ||
    no "a list as JSON"
"$GOGH" token list --tokens "$file" | grep -q '^web page  *read  *www$' || no "a list"
refused 1 "already" new ci --scope read --owner ann

"$GOGH" token revoke ci --tokens "$file"
grep -q '^ci ' "$file" && no "a token that is taken away is gone"
grep -q '^# of the lab$' "$file" || no "comments stay"
grep -q '^"web page" read www ' "$file" || no "others stay"
refused 1 "there is no token 'ci'" revoke ci

refused 2 "new, list or revoke"
refused 2 "new, list or revoke" make x
refused 2 "NAME" revoke
refused 2 "--scope wants" new x --owner a
refused 2 "--scope wants" new x --owner a --scope none
refused 2 "--owner USER" new x --scope read
refused 2 "takes no name" list x
refused 2 "for 'token new'" revoke x --scope read
echo 'half a line' >>"$file"
refused 1 "four words, not 3" new x --scope read --owner a

