#!/bin/bash
# gogh import: whole files or nothing, once or never. Needs no data from outside.
. "$SRC/tests/helpers/script.sh"
cd "$dir"

# refuse NAME WORD COMMAND...: exit 1, the message on one line with WORD, no store made,
# and an existing one left as it was.
refuse() {
    local name=$1 word=$2 status=0
    shift 2
    "$GOGH" "$@" --db new.db >out 2>err || status=$?
    [ "$status" = 1 ] || no "$name: exit $status"
    [ "$(wc -l <err)" = 1 ] || no "$name: $(wc -l <err) lines: $(cat err)"
    grep -qF -- "$word" err || no "$name: no '$word' in: $(cat err)"
    [ -z "$(find . -name 'new.db*')" ] || no "$name: left a store"
    rm -f new.db*
    "$GOGH" "$@" --db old.db >out 2>err && no "$name: went into a store"
    "$GOGH" catalog export --db old.db | cmp -s - old.csv || no "$name: changed a store"
}

# misuse NAME COMMAND...: exit 2, with the usage on stderr.
misuse() {
    local name=$1 status=0
    shift
    "$GOGH" "$@" >out 2>err || status=$?
    [ "$status" = 2 ] || no "$name: exit $status"
    grep -q '^usage: gogh import' err || no "$name: no usage: $(cat err)"
    [ ! -s out ] || no "$name: wrote to stdout"
}

cat >good.json <<'END'
{"k80": {"('ResNet-18 (batch size 16)', 1)": {"null": 4.5, "('A3C', 1)": [2.5, 1.5]},
         "('A3C', 1)": {"null": 3.5, "('ResNet-18 (batch size 16)', 1)": [1.5, 2.5],
                        "('A3C', 1)": [0, 0]},
         "('A3C', 2)": {"null": 6, "('A3C', 2)": [0, 0]}},
 "k80_unconsolidated": {"('A3C', 1)": {"null": 3.5, "('A3C', 1)": [0, 0]},
                        "('A3C', 2)": {"null": 5}}}
END
printf 'workload,gpu,throughput,watts\nA3C,v100,7.5,60\n' >good.csv
printf 'gpu,workload,watts\nk80,A3C,107\n' >watts.csv
printf 'family,task,params\nA3C,reinforcement-learning,1.3e6\n' >families.csv
mkdir zeus
head=dataset,network,batch_size,optimizer,power_limit,time_per_epoch,average_power
printf '%s\nimagenet,resnet50,256,adadelta,250,5005,220\n' $head >zeus/summary_power_v100.csv

# ---- what goes in ----
"$GOGH" import csv good.csv --db old.db >out
"$GOGH" catalog export --db old.db >old.csv

"$GOGH" import gavel good.json --watts watts.csv --db a.db --json >out
want='"measurements": 8, "workloads": 2, "gpu_types": 1, "isolated": 2, "pairs": 2, "unfit": 1'
grep -qF "$want" out || no "report: $(cat out)"
grep -qF '"gangs": 2, "limited": 0, "watts": 1, "dropped": 1, "copies": 2' out ||
    no "report: $(cat out)"
"$GOGH" catalog export --db a.db >a.csv
sqlite3 a.db .dump >a.dump
"$GOGH" import gavel good.json --watts watts.csv --db a.db >out
grep -q 'already known' out || no "second import: $(cat out)"
sqlite3 a.db .dump | cmp -s - a.dump || no "a second import changed the store"

# Descriptors that come later fill in what was unknown; the measurements stay.
"$GOGH" import gavel good.json --workloads families.csv --db a.db >out 2>err
"$GOGH" catalog export --db a.db | cmp -s - a.csv || no "descriptors changed measurements"

"$GOGH" import zeus zeus --db z.db >out
"$GOGH" import csv a.csv --db b.db >out
"$GOGH" catalog export --db b.db | cmp - a.csv || no "export, import, export differ"
gzip -k good.json
"$GOGH" import gavel good.json.gz --db c.db >out || no "a gzipped file"

# Campaigns stand apart, and come back as they went out.
printf 'workload,gpu,throughput,campaign\nA3C,k80,3,\nA3C,k80,5,theirs\n' >mixed.csv
"$GOGH" import csv mixed.csv --campaign lab --db m.db >out
"$GOGH" import csv good.csv --db m.db >out
"$GOGH" catalog --db m.db >out
grep -A3 '^campaign' out | awk '{ print $1, $2 }' | paste -sd, | grep -qx 'campaign alone,site 1,lab 1,theirs 1' ||
    no "campaigns: $(cat out)"
"$GOGH" catalog show A3C --db m.db --json >out
grep -qF '"campaign": "theirs", "fits": true, "throughput": 5' out || no "show: $(cat out)"
"$GOGH" catalog export --db m.db >m.csv
grep -q "^A3C,k80,.*,theirs$" m.csv || no "export: $(cat m.csv)"
"$GOGH" import csv m.csv --db n.db >out
"$GOGH" catalog export --db n.db | cmp - m.csv || no 'campaigns: export, import, export differ'
"$GOGH" predict A3C --db m.db --json >out
sqlite3 m.db .dump >m.dump
"$GOGH" import csv mixed.csv --campaign again --db m.db >out
grep -q 'already known' out || no "the same in another campaign: $(cat out)"
sqlite3 m.db .dump | cmp -s - m.dump || no 'what is known made a campaign'
# How a campaign shared its GPUs is kept with it; the last word counts, and needs no new rows.
"$GOGH" import csv mixed.csv --campaign lab --sharing MPS --db m.db >out
"$GOGH" catalog --db m.db --json >out
[ "$(jq -c '[.by_campaign[].sharing]' out)" = '[null,"mps",null]' ] || no "sharing: $(cat out)"
"$GOGH" catalog --db m.db | grep -q '^lab .* mps$' || no 'the catalog does not show how lab shared'
"$GOGH" import csv mixed.csv --campaign lab --sharing timeslice --db m.db >out
"$GOGH" import csv mixed.csv --campaign lab --db m.db >out
[ "$("$GOGH" catalog --db m.db --json | jq -r '.by_campaign[1].sharing')" = timeslice ] ||
    no 'the last word on sharing does not count'
misuse 'a way to share that is none' import csv good.csv --campaign lab --sharing both --db a.db
misuse 'sharing of the site itself' import csv good.csv --sharing mps --db a.db
misuse 'a campaign without a name' import csv good.csv --campaign '' --db a.db

# Samples/s where steps/s are meant, and a family that is far off, are told; they are imported.
printf 'workload,gpu,throughput\nResNet-50 (batch size 64),v100,%d\nResNet-50 (batch size 128),v100,%d\nbert-base (batch size 32),v100,%d\n' \
    230 280 40 >samples.csv
"$GOGH" import csv samples.csv --db s.db --json >out 2>err
[ "$(jq -r '.warnings | length' out)" = 1 ] || no "samples/s: $(cat out)"
grep -q '^gogh: warning: samples.csv: speeds are .* are these samples/s' err || no "samples/s: $(cat err)"
printf 'workload,gpu,throughput\nbert-base (batch size 2),v100,900\n' >fast.csv
"$GOGH" import csv fast.csv --db s.db >out 2>err
grep -q "'bert-base' on v100: the median of 1 speed is .* times faster than the roofline" err ||
    no "too fast: $(cat err)"
[ "$("$GOGH" catalog export --db s.db | wc -l)" = 5 ] || no 'what is told was not imported'

# A GPU type that nobody described is named once, with what may have been meant.
printf 'workload,gpu,throughput\nA3C,v10O,7.5\nA3C,v100,7.5\nA3C,warp-drive,1\n' >typo.csv
"$GOGH" import csv typo.csv --db t.db >out 2>err
[ "$(wc -l <err)" = 2 ] || no "not two warnings: $(cat err)"
grep -qF "GPU type 'v10O' is not built in: its figures are unknown; did you mean 'v100" err ||
    no "no warning of v10O: $(cat err)"
grep -F "'warp-drive'" err | grep -q 'did you mean' && no "a far guess: $(cat err)"

# ---- what does not ----
json() {
    printf '%s' "$3" >bad.json
    refuse "$1" "$2" import gavel bad.json
}
k="('A3C', 1)"
json 'nothing' 'bad.json: line 1' ''
json 'truncated' 'bad.json: line 1, column' '{"k80": {"'
json 'an array' 'bad.json: want an object' '[]'
json 'text' 'bad.json: line 1' 'k80: fast'
json 'a GPU that is a list' 'bad.json: k80: want' '{"k80": []}'
json 'a job that is a list' 'k80."('"'A3C', 1"')": want' "{\"k80\": {\"$k\": []}}"
json 'a job without workers' 'k80."A3C": want a job type' "{\"k80\": {\"$k\": {}, \"A3C\": {\"null\": 1}}}"
json 'a speed that is text' 'k80."('"'A3C', 1"')".null: want a number' \
    "{\"k80\": {\"$k\": {\"null\": \"1\"}}}"
json 'a negative speed' 'wrong unit?' "{\"k80\": {\"$k\": {\"null\": -1}}}"
json 'microseconds' 'wrong unit?' "{\"k80\": {\"$k\": {\"null\": 2e9}}}"
json 'half a pair' 'want two numbers' "{\"k80\": {\"$k\": {\"$k\": [1]}}}"
json 'half a zero' 'one of the two' "{\"k80\": {\"$k\": {\"$k\": [1, 0]}}}"
json 'a key twice' 'duplicate' '{"k80": {}, "k80": {}}'
json 'deep nesting' 'bad.json: line 1' "$(printf '[%.0s' {1..5000})"
json 'not UTF-8' 'bad.json' "$(printf '{"k80\377": {}}')"
json 'a spread GPU alone' 'without the suffix' '{"v100_unconsolidated": {}}'
json 'no measurement' 'not one measurement' '{"k80": {}}'
refuse 'no such file' 'none.json' import gavel none.json
refuse 'a directory' 'zeus' import gavel zeus
refuse 'isolated speeds that are missing' 'none.json' import gavel good.json --isolated none.json
printf '{"k80": {}}' >short.json
refuse 'isolated speeds of other jobs' 'short.json: k80' \
    import gavel good.json --isolated short.json
printf 'gpu,workload,watts\nk80,Nobody,1\n' >bad.csv
refuse 'watts of an unknown job' 'bad.csv:2' import gavel good.json --watts bad.csv
printf 'gpu,workload,watts\nk80,A3C,107000\n' >bad.csv
refuse 'milliwatts' 'bad.csv:2: watts: 107000 W' import gavel good.json --watts bad.csv
printf 'family,speed\nA3C,1\n' >bad.csv
refuse 'an unknown feature' 'bad.csv:1' import gavel good.json --workloads bad.csv

csv() {
    printf '%b' "$3" >bad.csv
    refuse "$1" "$2" import csv bad.csv
}
csv 'an empty CSV' 'bad.csv' ''
csv 'another CSV' "no column 'workload'" 'time,job\n1,2\n'
csv 'hardly any noise' 'bad.csv:2: noise' 'workload,gpu,throughput,noise\nA,k80,1,1e-9\n'
csv 'too many limits' 'bad.csv: more than 4096 different' \
    "workload,gpu,throughput,n_gpus\\n$(seq -f 'A,k80,1,%.0f\n' 1 5000 | tr -d '\n')"
csv 'an unknown column' "unknown column 'speed'" 'workload,gpu,speed\nA,k80,1\n'
csv 'a missing field' 'bad.csv:2' 'workload,gpu,throughput\nA,k80\n'
csv 'an open quote' 'bad.csv:2' 'workload,gpu,throughput\n"A,k80,1\n'
csv 'a late mistake' 'bad.csv:3: throughput' 'workload,gpu,throughput\nA,k80,1\nA,k80,-1\n'
csv 'a CSV that is not UTF-8' 'bad.csv' 'workload,gpu,throughput\n\0377,k80,1\n'
csv 'a NUL' 'bad.csv' 'workload,gpu,throughput\nA\0000,k80,1\n'

mkdir bad empty
printf '%s\nmnist,net,8,adam,250,10,100\n' $head >bad/summary_power_v100.csv
refuse 'an unknown dataset' 'summary_power_v100.csv:2' import zeus bad
refuse 'no traces' 'summary_power' import zeus empty
refuse 'no directory' 'none' import zeus none

# ---- a store that is none ----
echo 'not a store at all' >text.db
"$GOGH" import csv good.csv --db text.db 2>err && no 'imported into a text file'
grep -q 'not a GOGH store' err || no "text.db: $(cat err)"
[ "$(cat text.db)" = 'not a store at all' ] || no 'a text file was changed'
"$GOGH" import csv good.csv --db none/a.db 2>err && no 'imported into no directory'
grep -q 'none/a.db' err || no "no directory: $(cat err)"

# ---- misuse ----
misuse 'no kind' import
misuse 'an unknown kind' import parquet x --db a.db
misuse 'no file' import csv --db a.db
misuse 'no store' import csv good.csv
misuse 'an unknown option' import csv good.csv --db a.db --fast
misuse 'an option without its value' import csv good.csv --db
misuse 'watts for zeus' import zeus zeus --watts watts.csv --db a.db
misuse 'one argument too many' import csv a b --db a.db
"$GOGH" import --help >out || no '--help'
grep -q 'Examples:' out || no '--help has no examples'

# ---- several at once on a new store: what is bad changes nothing, what is good stays ----
# rows N: so many of them, so that one is still at work when another gives up.
rows() {
    echo 'workload,gpu,throughput'
    awk -v n="$1" 'BEGIN { for (i = 1; i <= n; i++) print "LM,k80," i }'
}
{ rows 2000 && echo 'LM,k80,-1'; } >wrong.csv
rows 5000 >other.csv
for ((round = 1; round <= (${GOGH_TEST_ALL:-0} ? 10 : 2); round++)); do
    rm -f race.db*
    "$GOGH" import csv wrong.csv --db race.db >wrong.out 2>&1 &
    wrong=$!
    "$GOGH" import csv other.csv --db race.db >other.out 2>&1 &
    other=$!
    "$GOGH" import csv good.csv --db race.db >good.out 2>&1 || no "$round: $(cat good.out)"
    wait $wrong && no "$round: imported what is wrong"
    wait $other || no "$round: $(cat other.out)"
    n=$("$GOGH" catalog export --db race.db | wc -l)
    [ "$n" = 5002 ] || no "$round: $n lines after two good imports and a bad one"
done

# ---- killed in the middle: all or nothing ----
{
    echo 'workload,gpu,throughput'
    awk 'BEGIN { for (i = 0; i < 100000; i++) printf "w%d,v100,%d\n", i % 1000, i + 1 }'
} >large.csv
# SQLite writes to its log before the commit once a transaction outgrows its cache.
for bytes in -1 1000000 ${GOGH_TEST_ALL:+10000 3000000}; do
    rm -f k.db*
    "$GOGH" import csv good.csv --db k.db >out
    "$GOGH" import csv large.csv --db k.db >out 2>&1 &
    pid=$!
    while kill -0 $pid 2>/dev/null; do
        size=$(stat -c %s k.db-wal 2>/dev/null || echo 0)
        [ "$size" -le "$bytes" ] || break
    done
    kill -9 $pid 2>/dev/null || true
    wait $pid 2>/dev/null || true
    n=$("$GOGH" catalog export --db k.db | wc -l) || no "a store does not open after a kill"
    [ "$n" = 2 ] || [ "$n" = 100002 ] || no "half an import: $n lines after $bytes bytes"
done
