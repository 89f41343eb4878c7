#!/usr/bin/env bash
# The page of a study: well-formed charts, nothing from elsewhere, the same bytes; and, where there
# is a browser, that it opens there and fits a phone and a screen.
. "$SRC/tests/helpers/script.sh"
small=(--scenario builtin --seeds 2 --policy 'fifo-fastest,gogh' --policy bound)

"$GOGH" study "${small[@]}" --out "$dir/a" >"$dir/out"
page=$dir/a/report.html
for id in summary scenarios time learning gantt definitions again; do
    grep -qF "<h2 id=\"$id\">" "$page" || no "the page has the part $id"
done
grep -qF 'gogh study --scenario builtin --policy fifo-fastest,gogh,bound --seeds 2 --out DIR' \
    "$page" || no "the page says how it was made"
grep -qE '[0-9]+ of [0-9]+ runs of these scenarios are shown' "$page" ||
    no "a part of a scenario is called one"
! grep -qF '<small>±' "$page" || no "two seeds have no confidence interval"
! grep -qE '<script|<link|url\(|@import| src=' "$page" || no "the page needs nothing else"
! grep -qE '[> ]-?(nan|inf)[< %]' "$page" || no "every figure is a number"
! grep -qF "$dir" "$page" || no "the page does not say where it was made"
[[ $(wc -c <"$page") -lt 2000000 ]] || no "the page is small"

cp -r "$dir/a" "$dir/b"
rm "$dir/b/report.html"
"$GOGH" study "${small[@]}" --out "$dir/b" >"$dir/out"
cmp -s "$page" "$dir/b/report.html" || no "the same runs give the same page"

if command -v xmllint >/dev/null; then
    awk -v dir="$dir" '/^<svg/ { n++ } /^<svg/, /^<\/svg>/ { print > (dir "/" n ".svg") }' "$page"
    xmllint --noout "$dir"/*.svg || no "every chart is XML"
else
    echo "skipped: charts as XML (no xmllint)"
fi

browser=$(command -v chromium || command -v chromium-browser || true)

# in_browser WIDTH ADDRESS: the document as it is when it has been laid out
in_browser() {
    timeout 600 "$browser" --headless=new --no-sandbox --disable-gpu \
        --user-data-dir="$dir/profile" --window-size="$1,800" --dump-dom "$2" 2>"$dir/err"
}

if [[ -z $browser ]] || ! in_browser 500 about:blank | grep -q '<html'; then
    echo "skipped: the page in a browser (no chromium that starts)"
    exit $failed
fi

# browse WIDTH: the title that a script (only this copy has one) gives the page when it has been
# laid out in a window that wide: how much sticks out, how many links lead nowhere, how many charts
# are not there, how many rows of charts leave much of the page empty.
browse() {
    {
        sed '/^<\/body>$/,$d' "$page"
        cat <<'SCRIPT'
<script>
const all = (what, bad) => [...document.querySelectorAll(what)].filter(bad).length;
const box = e => e.getBoundingClientRect();
document.title = [
    'wide', all('body *', e => !e.closest('.scroll, pre') && box(e).right > innerWidth + 1),
    'lost', all('a', e => !document.getElementById(e.getAttribute('href').slice(1))),
    'flat', all('svg', e => box(e).height < 40),
    'empty', all('.charts', e => Math.max(...[...e.querySelectorAll('svg, .scroll')].map(
        f => box(f).right)) < 0.9 * box(document.body).right)].join(' ');
</script></body></html>
SCRIPT
    } >"$dir/copy.html"
    in_browser "$1" "file://$dir/copy.html" |
        sed -n 's|.*<title>\(wide[^<]*\)</title>.*|\1|p'
}

for width in 500 1200; do
    title=$(browse $width)
    [[ $title == 'wide 0 lost 0 flat 0 empty 0' ]] || no "in a window of $width all is seen: $title"
done
