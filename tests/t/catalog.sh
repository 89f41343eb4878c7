#!/bin/bash
# gogh catalog: what is known, shown and exported. Needs no data from outside; what the
# published measurements must give is in catalog-data.sh.
. "$SRC/tests/helpers/script.sh"
cd "$dir"

# has NAME WORD COMMAND...: exit 0 and WORD in the output.
has() {
    local name=$1 word=$2
    shift 2
    "$GOGH" "$@" >out 2>err || no "$name: exit $?: $(cat err)"
    grep -qF -- "$word" out || no "$name: no '$word' in: $(cat out)"
}

# refuses STATUS NAME WORD COMMAND...: that exit status and WORD on stderr.
refuses() {
    local want=$1 name=$2 word=$3 status=0
    shift 3
    "$GOGH" "$@" >out 2>err || status=$?
    [ "$status" = "$want" ] || no "$name: exit $status"
    grep -qF -- "$word" err || no "$name: no '$word' in: $(cat err)"
}

cat >m.csv <<'END'
workload,gpu,neighbour,n_gpus,spread,limit_w,throughput,watts,fits
ResNet-18 (batch size 16),v100,,,,,40,150,
ResNet-18 (batch size 16),v100,A3C,,,,20,,
A3C,v100,ResNet-18 (batch size 16),,,,,,0
ResNet-18 (batch size 16),v100,,,,150,30,120,
ResNet-18 (batch size 16),v100,,4,1,,120,,
END
"$GOGH" import csv m.csv --db a.db >out

has 'counts as JSON' '{"workloads": 2, "gpu_types": 1, "isolated": 1, "pairs": 1, "unfit_pairs": 1' \
    catalog --db a.db --json
has 'more counts' '"gangs": 1, "limited": 1, "watts": 2, "measurements": 5' catalog --db a.db --json
has 'counts as text' '2 workloads on 1 GPU type, 5 measurements' catalog --db a.db
has 'a row for each workload' 'ResNet-18 (batch size 16)' catalog --db a.db

has 'a pair is shown as a share of the speed alone' '0.500' \
    catalog show 'ResNet-18 (batch size 16)' --db a.db
has 'a gang' 'v100 x 4 spread' catalog show 'ResNet-18 (batch size 16)' --db a.db
has 'a limit' 'v100 at 150 W' catalog show 'ResNet-18 (batch size 16)' --db a.db
has 'watts' '150 W' catalog show 'ResNet-18 (batch size 16)' --db a.db
has 'a pair that does not fit' 'unfit' catalog show A3C --db a.db
has 'a name as people write it' 'ResNet-18 (batch size 16)' \
    catalog show 'resnet18 (batch size 16)' --db a.db
has 'a workload as JSON' '"slowdown": 0.5' \
    catalog show 'ResNet-18 (batch size 16)' --db a.db --json
refuses 1 'a near miss' "did you mean 'ResNet-18 (batch size 16)'" \
    catalog show 'ResNet-81 (batch size 16)' --db a.db
refuses 1 'part of a name' "did you mean 'ResNet-18 (batch size 16)'" catalog show resnet --db a.db
refuses 1 'a far miss' 'lists them' catalog show xyzzy --db a.db

"$GOGH" catalog export --db a.db --out e.csv
"$GOGH" catalog export --db a.db | cmp - e.csv || no '--out differs from stdout'
[ "$(wc -l <e.csv)" = 6 ] || no 'export has not five rows'
"$GOGH" catalog export --workloads --db a.db | sed '/^A3C/s/,,,,,,$/,0.5,0.25,90,2e9,fp16,86/' >w.csv
grep -q '0.5,0.25,90,2e9,fp16,86$' w.csv || no "no room for a profile: $(cat w.csv)"
sed -i s/2e9/2000000000/ w.csv
"$GOGH" import csv e.csv --workloads w.csv --db b.db >out
"$GOGH" catalog export --workloads --db b.db | cmp - w.csv || no 'descriptors differ'
refuses 1 'no place for the export' 'none/e.csv' catalog export --db a.db --out none/e.csv
if [ -e /dev/full ] && "$GOGH" catalog export --db a.db >/dev/full 2>err; then
    no 'a full disk went unnoticed'
fi

refuses 2 'an export is no JSON' 'leave out --json' catalog export --db a.db --json
[ ! -s out ] || no 'export --json wrote something'

# aligned WHAT: every line of a table ends in the same column.
aligned() {
    awk 'NF > 5 { if (width && length($0) != width) exit 1; width = length($0) }' table ||
        no "$1 is not aligned: $(cat table)"
}
long='A name of a workload that is a good deal longer than any column was made for'
printf 'workload,gpu,neighbour,throughput\n%s,v100,,1\n%s,v100,%s,1\n' "$long" "$long" "$long" >l.csv
"$GOGH" import csv l.csv --db l.db >out
has 'one of a kind' '1 workload on 1 GPU type, 2 measurements' catalog --db l.db
sed '1,3d' out >table
aligned 'catalog'
"$GOGH" catalog gpus | sed '/^$/,$d' >table
aligned 'catalog gpus'

has 'the GPU types' 'v100' catalog gpus
has 'the GPU types as JSON' '"mem_bytes"' catalog gpus --json
has 'the models' 'ResNet-50' catalog models
has 'the models as JSON' '"flop_per_sample"' catalog models --json

refuses 1 'no such store' 'none.db: there is no such store' catalog --db none.db
[ ! -e none.db ] || no 'reading made a store'
cp a.db cut.db
truncate -s 20000 cut.db
refuses 1 'a store cut short' 'cut.db' catalog --db cut.db
sqlite3 newer.db 'PRAGMA application_id = 1196377928; PRAGMA user_version = 99; CREATE TABLE t (x)'
refuses 1 'a newer store' 'upgrade' catalog --db newer.db
sqlite3 other.db 'CREATE TABLE t (x)'
refuses 1 "another program's file" 'another program' catalog --db other.db

refuses 2 'no store' 'usage: gogh catalog' catalog
refuses 2 'an unknown word' 'usage: gogh catalog' catalog frobnicate --db a.db
refuses 2 'no workload' 'usage: gogh catalog' catalog show --db a.db
refuses 2 '--out without export' 'usage: gogh catalog' catalog --out x --db a.db
has '--help' 'Examples:' catalog --help
