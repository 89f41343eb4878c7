#!/usr/bin/env bash
# The documents say what is so: quoted lines, links, commands, built-in tables, the manual page.
. "$SRC/tests/helpers/script.sh"
cd "$SRC"

# Files of the project; a source tree without git has no others but those of a build.
git ls-files -co --exclude-standard -- '*.md' >"$dir/files" 2>/dev/null ||
    find . -name 'build*' -prune -o -name '*.md' -print >"$dir/files"
[ "$(wc -l <"$dir/files")" -gt 20 ]

# What is quoted as a job of docs/examples/mixed.trace is one of its lines.
quoted=0
while read -r file; do
    grep -q 'mixed\.trace' "$file" || continue
    while IFS= read -r line; do
        quoted=$((quoted + 1))
        grep -qxF -- "$line" docs/examples/mixed.trace ||
            no "$file: not a line of docs/examples/mixed.trace: $line"
    done < <(sed -n 's/^ *\(job .*=.*\)$/\1/p' "$file")
done <"$dir/files"
[ "$quoted" -gt 0 ] || no "no document quotes docs/examples/mixed.trace"

# Headings as anchors: lower case, blanks are hyphens, other punctuation is gone.
anchors() {
    sed -n 's/^##* //p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}

# Relative links lead to files and headings that are there. (\x60 is the quote of code.)
while read -r file; do
    while read -r link; do
        case $link in '' | http://* | https://* | mailto:*) continue ;; esac
        target=${link%%#*}
        path=$file
        [ -z "$target" ] || path=$(dirname "$file")/$target
        if [ ! -e "$path" ]; then
            no "$file: a link leads nowhere: $link"
        elif [ "$link" != "$target" ] && ! anchors "$path" | grep -qxF -- "${link#*#}"; then
            no "$file: no such heading: $link"
        fi
    done < <(sed 's/\x60[^\x60]*\x60//g' "$file" | grep -oE '\]\([^) ]+\)' | sed 's/^](//; s/)$//')
done <"$dir/files"

# The README and the tour name commands that exist.
"$GOGH" help | sed -n 's/^  \([a-z]*\)  .*/\1/p' | sort -u >"$dir/commands"
while read -r command; do
    grep -qx "$command" "$dir/commands" || no "README.md or docs/tour.md: no command 'gogh $command'"
done < <(grep -ohE '(^|[^A-Za-z])gogh [a-z]+' README.md docs/tour.md | sed 's/.* //' | sort -u)

# What ARCHITECTURE names is there: files, and functions and structs of the source.
while read -r name; do
    case $name in
    src/* | tests/* | docs/* | tools/* | data/* | packaging/* | web/*)
        [ -e "$name" ] || no "ARCHITECTURE.md: no such file: $name" ;;
    *_*)
        grep -rqw --include='*.[ch]' -- "$name" src || no "ARCHITECTURE.md: nothing is called $name" ;;
    esac
done < <(grep -oP '\x60[A-Za-z0-9_./-]+\x60' ARCHITECTURE.md | tr -d '\140' | sort -u)
words=$(sed -n '/^## The words/,$p' ARCHITECTURE.md | awk -F'|' 'NR > 4 && NF > 2 { n += split($2, w, ",") } END { print n }')
[ "$words" -le 50 ] || no "ARCHITECTURE.md: $words words in the glossary; at most 50"
[ "$(wc -w <README.md)" -lt 900 ] || no "README.md: 900 words or more"

# The tables of built-in GPU types and models have the names that the program has.
table() { # FILE: the rows of the last table, without its head
    sed -n '/^## Built in/,$p' "$1" | grep '^|' | tail -n +3
}
same() { # WHAT: is "$dir/told" what the program has in "$dir/has"?
    sort -o "$dir/told" "$dir/told"
    sort -o "$dir/has" "$dir/has"
    diff "$dir/told" "$dir/has" >"$dir/diff" || no "$1 differs (>: in the program only)
$(cat "$dir/diff")"
}
table docs/formats/gpu-types.md | awk -F' *[|] *' '{ print $2 }' >"$dir/told"
"$GOGH" catalog gpus --json | jq -r '.[].name' >"$dir/has"
same docs/formats/gpu-types.md
table docs/formats/workloads.md |
    awk -F'|' '{ gsub(/ /, "", $4); gsub(/^ +| +$/, "", $2)
                 print $2 ($4 == "" ? "" : " (batch size " $4 ")") }' >"$dir/told"
"$GOGH" catalog models --json | jq -r '.[].name' >"$dir/has"
same docs/formats/workloads.md

if command -v mandoc >/dev/null; then
    mandoc -T lint -W warning docs/man/gogh.1 || no "docs/man/gogh.1: see mandoc above"
fi
