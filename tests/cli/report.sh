# report.sh - `report`: one page, valid, with nothing outside of it.
. "$top_srcdir/tests/cli/lib.sh"
page=$scratch/page.html

run 0 report -d cpu:0 --quick -o "$page"
[ ! -s "$scratch/out" ] || wrong "it prints: $(head -1 "$scratch/out")"
head -1 "$page" | grep -q '^<!DOCTYPE html>$' && [ "$(tail -1 "$page")" = '</html>' ] || wrong "the page is not whole"
for text in '<h2>Devices' '<h2>Load report' '<h2>Peaks' '<h2>Matrix products' '<h2>Convolutions' '<h2>Copies' '<h2>Roofs' \
    '>cpu:0<' '>64x64x64<' 'mb2ic8ih14oc16oh14kh3ph1' 'pinned' 'Roof of cpu:0' 'reference' 'name="viewport"' '@media print'; do
    grep -q "$text" "$page" || wrong "no \"$text\" in the page"
done
# Nothing is fetched: the only addresses are names of XML.
! grep -o '[a-z]*://[^" ]*' "$page" | grep -v '^http://www.w3.org/2000/svg$' || wrong "the page asks for something"
! grep -Eiq '<script|<link|<img|@import|url\(' "$page" || wrong "the page has what is loaded"
! grep -Eq '(^|[^a-z])(nan|inf)([^a-z]|$)' "$page" || wrong "numbers that are none"
holds "$(grep -c '<svg' "$page") == $(grep -c '</svg>' "$page") && $(grep -c '<svg' "$page") >= 4"
if command -v xmllint >/dev/null; then
    # HTML's empty elements and doctype aside the page is XML too: every element is closed.
    sed -e '1d' -e 's/<meta[^>]*>//g' "$page" | xmllint --noout - || wrong "elements of the page do not nest"
else
    echo "no xmllint: how elements nest is not looked at"
fi
# Text of the system's, such as the load report, is no markup.
mkdir "$scratch/<b>&amp"
cp "$top_builddir/plugins/.libs/reference.so" "$scratch/<b>&amp/" 2>/dev/null
printf 'no plugin' >"$scratch/<b>&amp/broken.so"
CEKERNELS_PLUGIN_PATH="$scratch/<b>&amp:$CEKERNELS_PLUGIN_PATH" "$CEKERNELS_BENCH" report -d reference:0 --quick -o "$page" \
    2>"$scratch/err" || wrong "with a folder of an odd name: exit code $?: $(cat "$scratch/err")"
grep -q '&lt;b&gt;&amp;amp' "$page" || wrong "the folder's name is not in the page"
! grep -q '<b>' "$page" || wrong "a folder's name is markup"

refused 2 'FILE.html is wanted' report
refused 2 'takes no argument' report -o "$page" cpu
refused 2 'is wanted' report -o "$scratch/page.pdf"
refused 2 'gives no' gemm -o "$page"
refused 2 'gives no' report -o "$scratch/x.npy"
refused 2 'takes no option --quick' gemm --quick
refused 5 'nowhere' report -d cpu:0 -o /nowhere/page.html
refused 3 'nodevice' report -d nodevice -o "$page"
finish
