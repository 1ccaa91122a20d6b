# report.sh - `report`: one page, valid, with nothing outside of it.
. "$top_srcdir/tests/cli/lib.sh"
page=$scratch/page.html

run 0 report -d cpu:0 --quick -o "$page"
[ ! -s "$scratch/out" ] || wrong "it prints: $(head -1 "$scratch/out")"
head -1 "$page" | grep -q '^<!DOCTYPE html>$' && [ "$(tail -1 "$page")" = '</html>' ] || wrong "the page is not whole"
for text in '<h2>Devices' '<h2>Load report' '<h2>Peaks' '<h2>Matrix products' '<h2>Convolutions' '<h2>Copies' '<h2>Roofs' \
    '>cpu:0<' '>64x64x64<' 'mb2ic8ih14oc16oh14kh3ph1' 'pinned' 'Roof of cpu:0' 'reference' 'Before anything was measured cpu:0: .* in use' 'name="viewport"' '@media print'; do
    grep -q "$text" "$page" || wrong "no \"$text\" in the page"
done
# Nothing is fetched: the only addresses are names of XML.
! grep -o '[a-z]*://[^" ]*' "$page" | grep -v '^http://www.w3.org/2000/svg$' || wrong "the page asks for something"
! grep -Eiq '<script|<link|<img|@import|url\(' "$page" || wrong "the page has what is loaded"
! grep -Eq '(^|[^a-z])(nan|inf)([^a-z]|$)' "$page" || wrong "numbers that are none"
holds "$(grep -c '<svg' "$page") == $(grep -c '</svg>' "$page") && $(grep -c '<svg' "$page") >= 4"
# valid PAGE - by a strict reader; or it says what is wrong.
valid() {
    checks=$((checks + 1))
    "${PYTHON:-python3}" "$top_srcdir/tests/cli/page.py" "$1" 2>"$scratch/invalid"
}
# spoilt WHAT SCRIPT - the reader says so of the page after this script of sed.
spoilt() {
    sed "$2" "$page" >"$scratch/spoilt.html"
    ! valid "$scratch/spoilt.html" && grep -q "$1" "$scratch/invalid" ||
        wrong "\"$2\" is not \"$1\": $(cat "$scratch/invalid")"
}
python=$("${PYTHON:-python3}" -c 'print(True)' 2>/dev/null)
if [ "$python" ]; then
    valid "$page" || wrong "$(cat "$scratch/invalid")"
    spoilt 'mismatched tag' '0,/<.td>/s///'
    spoilt 'mismatched tag' '$d; s,</svg>,</svg></p>,'
    spoilt 'no element found' '$d'
    spoilt 'not well-formed' '0,/<h2>/s//<h2 lang>/'
    spoilt 'not well-formed' '0,/<h2>Devices/s//<h2>Devices \& more/'
    spoilt 'undefined entity' '0,/<h2>Devices/s//<h2>Devices\&nbsp;/'
    spoilt 'not well-formed' '0,/<h2>Devices/s//<h2>Devices < more/'
    spoilt "can't decode" "0,/<h2>Devices/s//<h2>Devices $(printf '\377')/"
    spoilt 'duplicate attribute' '0,/<h2>/s//<h2 id="a" id="a">/'
    spoilt 'an id twice' '0,/<h2>/s//<h2 id="a">/; 0,/<p>/s//<p id="a">/'
    spoilt 'nothing is at #a' '0,/<h2>/s//<h2 href="#a">/'
    spoilt 'no style is .x{' '0,/<h2>/s//<h2 class="x">/'
    spoilt '<h2> has no attribute onclick' '0,/<h2>/s//<h2 onclick="a()">/'
    spoilt '<script> within <body>' '0,/<h2>/s//<script><\/script><h2>/'
    spoilt '<b> within <h2>' '0,/<h2>Devices/s//<h2><b>Devices<\/b>/'
    spoilt 'text within <body>' '0,/<h2>/s//a<h2>/'
    spoilt 'no <element/>' '0,/<h2>/s//<p\/><h2>/'
    spoilt 'namespace' '0,/<svg xmlns="[^"]*"/s//<svg/'
    spoilt 'without a name' '0,/<title>Peak[^<]*</s//<title></'
    spoilt 'is no number' '0,/ x="[0-9.]*"/s// x="nan"/'
    spoilt 'is below 0' '0,/ width="[0-9.]*"/s// width="-1"/'
    spoilt 'path of another form' '0,/ d="M/s// d="Mnan,1 /'
    spoilt '<text> at' '0,/<text x="[0-9.]*"/s//<text x="9999"/'
    spoilt 'rows of unequal length' '0,/<td[^>]*>[^<]*<.td>/s///'
    spoilt 'it begins with' '1d'
    spoilt 'not one title' '0,/<.h1>/s//<\/h1><h1>a<\/h1>/'
else
    echo "no Python: the page is not parsed"
fi
# Text of the system's, such as the load report, is no markup.
mkdir "$scratch/<b>&amp"
cp "$top_builddir/plugins/.libs/reference.so" "$scratch/<b>&amp/" 2>/dev/null
printf 'no plugin' >"$scratch/<b>&amp/broken.so"
CEKERNELS_PLUGIN_PATH="$scratch/<b>&amp:$CEKERNELS_PLUGIN_PATH" "$CEKERNELS_BENCH" report -d reference:0 --quick -o "$page" \
    2>"$scratch/err" || wrong "with a folder of an odd name: exit code $?: $(cat "$scratch/err")"
grep -q '&lt;b&gt;&amp;amp' "$page" || wrong "the folder's name is not in the page"
! grep -q '<b>' "$page" || wrong "a folder's name is markup"
[ ! "$python" ] || valid "$page" || wrong "with a folder of an odd name: $(cat "$scratch/invalid")"

refused 2 'FILE.html is wanted' report
refused 2 'takes no argument' report -o "$page" cpu
refused 2 'gives no such file; FILE.html is wanted' report -o "$scratch/page.pdf"
refused 2 'FILE.html is wanted' report -o "$scratch/x.svg"
refused 2 'train gives no such file; table, json' train lenet5 -o log.txt
refused 2 'gives no' gemm -o "$page"
refused 2 'gives no' report -o "$scratch/x.npy"
refused 2 'takes no option --quick' gemm --quick
refused 5 'nowhere' report -d cpu:0 -o /nowhere/page.html
# A disk that fills up: the page that was there stays, and nothing lies beside it.
mkdir -p "$scratch/place"
echo before >"$scratch/place/page.html"
(
    ulimit -f 4 # 2 or 4 KiB, by the shell
    trap '' XFSZ
    exec "$CEKERNELS_BENCH" report -d reference:0 --quick -o "$scratch/place/page.html" 2>"$scratch/err"
)
code=$?
checks=$((checks + 1))
[ $code -eq 5 ] && grep -q 'page.html' "$scratch/err" || wrong "a full disk: exit code $code, $(cat "$scratch/err")"
[ "$(cat "$scratch/place/page.html")" = before ] || wrong "a full disk left a piece of a page"
[ "$(ls "$scratch/place" | wc -l)" -eq 1 ] || wrong "beside it there is $(ls "$scratch/place")"
refused 3 'nodevice' report -d nodevice -o "$page"
finish
