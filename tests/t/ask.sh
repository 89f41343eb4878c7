#!/usr/bin/env bash
# Commands that ask a daemon, against one that says what it was told: what is asked, how answers
# look, how refusals and absence are told apart.
. "$SRC/tests/helpers/script.sh"
server=
at_end() {
    exec 9>&- || true
    [[ -z $server ]] || wait "$server"
}
export TZ=UTC HOME=$dir GOGH_SOCKET=$dir/sock
unset GOGH_URL GOGH_TOKEN XDG_CONFIG_HOME

asked() { jq -se "$1" "$dir/requests" >/dev/null || no "$2: $(cat "$dir/requests")"; }

# ---- nobody there ----
for c in jobs 'show 1' 'cancel 1' nodes plan 'explain 1' report shadow 'top --once' 'submit -- true'; do
    # shellcheck disable=SC2086    # the words are words
    expect 3 $c
    complains 'is goghd running\?' "'gogh $c' says who is missing"
done
expect 1 jobs --url http://example.org:1
complains 'plain http' 'a token does not travel in the clear'
expect 1 jobs --url https://127.0.0.1:1 --socket /x
complains 'not both' 'one way at a time'
expect 3 jobs --url http://127.0.0.1:1
mkdir -p "$dir/.config/gogh"
echo secret-token >"$dir/.config/gogh/token"
chmod 644 "$dir/.config/gogh/token"
expect 1 jobs --url http://127.0.0.1:1
complains 'chmod 600' 'a token that others can read is refused'
expect 2 submit --steps 3
expect 2 submit sleep 1
expect 2 show
expect 2 cancel
expect 2 nodes evict a
expect 2 nodes drain
expect 2 jobs --all --state running
expect 2 report --csv --json
expect 1 submit --deadline someday --steps 1 -- true
complains 'deadline: .someday. is no time' 'a deadline that is none'
expect 1 submit --timeout 3x -- true
complains 'no duration' 'a timeout that is none'
expect 1 submit --env NO_SUCH_VARIABLE_HERE -- true
complains 'not set here' 'a variable that is not there'

if ! command -v python3 >/dev/null; then
    echo "skipped: answers of a daemon (no python3)"
    exit $failed
fi

# ---- a daemon ----
now=$(date +%s)
job() { # ID NAME STATE MORE
    echo "{\"id\": $1, \"name\": \"$2\", \"owner\": \"ann\", \"state\": \"$3\", \"kind\": \"training\",
          \"workload\": \"ResNet-50 (batch size 64)\", \"n_gpus\": 1, \"max_gpus\": 2, \"priority\": 0,
          \"exclusive\": false, \"one_node\": true, \"types\": [], \"steps\": 20000, \"steps_done\": 512,
          \"rate\": null, \"min_throughput\": 0, \"deadline_s\": $((now + 7200)), \"need\": 2.5,
          \"submit_s\": $((now - 300)), \"waited_s\": 20, \"moves\": 1, \"failures\": 0, $4}"
}
running=$(job 7 train-a running "\"gpus\": [\"box/0\"], \"gpu_type\": \"v100\", \"limit_w\": 0,
    \"speed\": 3.25, \"predicted\": 3.1, \"predicted_low\": 2.8, \"promise\": \"kept\", \"watts\": 181.5,
    \"joules\": 7200000, \"started_s\": $((now - 125)), \"ended_s\": null, \"reason\": null,
    \"command\": {\"argv\": [\"python3\", \"train.py\", \"a\\u001b[2J\"], \"cwd\": \"/home/ann\"}, \"run\": 2,
    \"pid\": 4242, \"urgency\": 2.5, \"dir\": \"/runs/7.2\", \"stdout\": \"/runs/7.2/out\", \"stderr\": \"/runs/7.2/err\"")
waiting=$(job 8 train-b waiting '"gpus": [], "gpu_type": null, "speed": null, "promise": "unknown",
    "watts": null, "joules": 0, "started_s": null, "ended_s": null, "reason": "all GPUs are taken"')
fresh=$(job 5 just-done finished "\"gpus\": [], \"joules\": 36000, \"started_s\": $((now - 4000)),
    \"ended_s\": $((now - 60)), \"reason\": null")
placed=$(job 10 placed held "\"gpus\": [], \"started_s\": null, \"ended_s\": null, \"reason\": \"held\",
    \"slurm_id\": 20, \"stdout\": \"$dir/slurm-20.out\", \"stderr\": null")
echo 'both of them' >"$dir/slurm-20.out"
large=$(job 11 large waiting '"gpus": [], "started_s": null, "ended_s": null, "reason": "gang size", "nodes": 2' |
    sed 's/"n_gpus": 1/"n_gpus": 16/')
old=$(job 4 long-done failed "\"gpus\": [], \"joules\": 36000, \"started_s\": $((now - 9000)),
    \"ended_s\": $((now - 8000)), \"reason\": \"exit status 1\"")
row='"jobs": 2, "joules": 7200000, "active_j": 5400000, "idle_j": 1800000, "gpu_s": 7200, "steps": 1500,
     "promised_s": 100, "kept_s": 99, "kept": 0.99, "measured": 12, "error": 0.083, "coverage": 0.9'
none='"jobs": 0, "joules": 3600000, "active_j": 0, "idle_j": 3600000, "gpu_s": 0, "steps": 0, "promised_s": 0,
      "kept_s": 0, "kept": null, "measured": 0, "error": null, "coverage": null'
mute=${none/'"kept": null'/'"kept": 0'}
saved='{"from_s": 1, "to_s": 2, "jobs": 9, "measured_j": 3600000, "saved": 0.25, "runs": [
    {"policy": "gogh", "finished": 9, "energy_j": 3600000, "work_s": 100, "joules_per_work": 75.5,
     "promise_attainment": 0.995, "mean_jct_s": 3725},
    {"policy": "fifo-fastest", "finished": 9, "energy_j": 7200000, "work_s": 100, "joules_per_work": 100.6,
     "promise_attainment": 0.9, "mean_jct_s": 100}]}'
cat >"$dir/answers" <<JSON
{"GET /v1/jobs?limit=1": [200, {"jobs": [$old], "total": 4, "next": 4}],
 "GET /v1/jobs?state=running&limit=1000": [200, {"jobs": [$running], "total": 1, "next": null}],
 "GET /v1/jobs?state=waiting&limit=1000": [200, {"jobs": [$waiting], "total": 1, "next": null}],
 "GET /v1/jobs?state=held&limit=1000": [200, {"jobs": [], "total": 0, "next": null}],
 "GET /v1/jobs?limit=1000": [200, {"jobs": [$old, $fresh], "total": 4, "next": 5}],
 "GET /v1/jobs?limit=1000&after=5": [200, {"jobs": [$running, $waiting], "total": 4, "next": null}],
 "GET /v1/jobs?owner=b%26b&state=held&limit=1000": [200, {"jobs": [], "total": 0, "next": null}],
 "GET /v1/jobs/7": [200, $running],
 "GET /v1/jobs/10": [200, $placed],
 "GET /v1/jobs/11": [200, $large],
 "GET /v1/jobs?state=failed&limit=1000": [200, {"jobs": [$large], "total": 1, "next": null}],
 "GET /v1/jobs/5": [[200, $running], [200, $fresh], [503, {"error": {"message": "stopping"}}], [200, $old]],
 "GET /v1/jobs/4": [200, $old],
 "GET /v1/jobs/x%2Fy": [404, {"error": {"code": "not_found", "message": "there is no job 'x/y'; 'gogh jobs' lists them"}}],
 "POST /v1/jobs/7/cancel": [200, {"id": 7, "name": "train-a", "state": "cancelled"}],
 "POST /v1/jobs/4/cancel": [409, {"error": {"code": "conflict", "message": "job 4 has ended"}}],
 "POST /v1/jobs": [0, {"id": 5, "name": "made-up", "state": "waiting"}],
 "GET /v1/nodes": [200, {"nodes": [{"name": "box", "state": "up", "gpus": 2, "busy": 1, "types": ["v100:2"]}]}],
 "POST /v1/nodes/box/drain": [200, {"name": "box", "state": "drained"}],
 "GET /v1/gpus": [200, {"gpus": [
    {"gpu": "box/1", "node": "box", "slot": 1, "type": "v100", "title": "t", "sharing": "mps", "jobs": [], "watts": 25,
     "source": "model", "joules": 1800000, "limit_w": 0},
    {"gpu": "box/0", "node": "box", "slot": 0, "type": "v100", "title": "t", "sharing": null,
     "jobs": [{"id": 7, "name": "train-a"}, {"id": 9, "name": "c"}], "watts": 181.5, "source": "nvml",
     "joules": 9000000, "limit_w": 200}]}],
 "GET /v1/status": [200, {"version": "9.9", "pid": 1, "began_s": $((now - 7500)), "now_s": $now, "ready": true,
    "mode": "active", "policy": "gogh", "jobs": {"waiting": 1, "running": 1, "held": 0}, "nodes": 1, "gpus": 2,
    "watts": 206.5, "joules": 10800000, "decisions": 42, "fallbacks": 1, "gap_w": 12.5, "gap_ratio": 0.004,
    "gap_varying_ratio": 0.031, "moves": 3, "last_decision_s": $((now - 4)),
    "measurements": 17, "error": 0.081, "coverage": 0.92, "store_ok": true}],
 "GET /v1/plan": [200, {"time_s": $now, "made_by": "gogh", "seconds": 0.02, "fallback": false, "watts": 300,
    "placed": 2, "waiting": 1, "short": 1, "delay_w": 64.9, "jobs": [
    {"id": 7, "name": "train-a", "does": "stay", "gpus": ["box/0"], "from": ["box/0"], "type": "v100", "limit_w": 0,
     "speed": 3.1, "low": 2.8, "need": 2.5, "short": false, "reason": null},
    {"id": 9, "name": "c", "does": "move", "gpus": ["box/1"], "from": ["box/0"], "type": "v100", "limit_w": 0,
     "speed": 1.5, "low": 1.2, "need": 2, "short": true, "reason": null},
    {"id": 8, "name": "train-b", "does": "wait", "gpus": [], "from": [], "type": null, "limit_w": 0, "speed": null,
     "low": null, "need": 0, "short": false, "reason": "no place keeps its promise"}]}],
 "GET /v1/jobs/8/explain": [200, {"job": 8, "name": "train-b", "time_s": $((now - 10)), "made_by": "gogh",
    "state": "waiting", "gpus": [], "reason": "all GPUs are taken", "may_start_s": $((now + 1200)),
    "waits_for": "train-a", "need": 2.5, "left_out": 3, "candidates": [
    {"type": "v100", "n_gpus": 1, "gpu": "box/1", "beside": "train-a", "places": 1, "speed": 2.1, "low": 1.9,
     "high": 2.3, "counted_on": 1.12, "hope_w": 3, "watts": 230, "added_w": 48.5, "joules": 360000, "cost_w": 77, "margin": -0.24,
     "neighbour_speed": 0.85, "neighbour_keeps": false, "verdict": "breaks its promise"},
    {"type": "k80", "n_gpus": 1, "gpu": null, "beside": null, "places": 0, "speed": 0.9, "low": null, "high": null,
     "watts": null, "added_w": null, "joules": null, "cost_w": null, "margin": null, "neighbour_speed": null,
     "neighbour_keeps": null, "verdict": "full"}]}],
 "GET /v1/jobs/10/explain": [200, {"job": 10, "name": "placed", "time_s": $now, "made_by": "gogh",
    "state": "running", "gpus": ["box/1"], "reason": null, "may_start_s": null, "waits_for": null, "need": 0,
    "candidates": []}],
 "GET /v1/jobs/11/explain": [200, {"job": 11, "name": "large", "time_s": $now, "made_by": "gogh",
    "state": "waiting", "gpus": [], "reason": "gang size", "may_start_s": null, "waits_for": null, "need": 0,
    "candidates": []}],
 "GET /v1/jobs/7/explain": [200, {"job": 7, "name": "train-a", "time_s": $now, "made_by": "gogh",
    "state": "running", "gpus": ["box/0"], "reason": null, "may_start_s": null, "waits_for": null, "need": 0,
    "candidates": []}],
 "GET /v1/report": [200, {"from_s": 1790000000, "to_s": 1790086400, "by": "owner", "total": {"name": "total", $row},
    "rows": [{"name": "ann <& \"co\", x", $row}, {"name": "(nobody)", $none}, {"name": "mute", $mute}],
    "hours": [{"hour_s": 1790000000, "joules": 3600000, "kept": 1, "error": 0.2},
              {"hour_s": 1790003600, "joules": 7200000, "kept": 0.98, "error": null},
              {"hour_s": 1790007200, "joules": 1800000, "kept": null, "error": 0.1}], "saved": $saved}],
 "GET /v1/shadow": [200, $saved],
 "GET /v1/jobs/odd": [502, "<html>bad gateway</html>"],
 "GET /v1/jobs/text": [200, "words"]}
JSON
mkfifo "$dir/fifo"
python3 "$SRC/tests/helpers/answers.py" "$GOGH_SOCKET" "$dir/answers" "$dir/requests" <"$dir/fifo" &
server=$!
exec 9>"$dir/fifo"
for ((i = 0; i < 6000; i++)); do
    [[ -S $GOGH_SOCKET ]] && break
    sleep 0.05
done
: >"$dir/requests"

# ---- jobs ----
expect 0 jobs
says '^ *ID  NAME +OWNER +STATE' 'jobs have headings'
says '^ *7  train-a +ann +running +ResNet-50 \(batch size 64\) +3\.25 +2\.50 +kept +18[12] +2\.00 +[0-9]+ min [0-9]+ s  box/0$' 'a job that runs'
says '^ *8  train-b .* - +unknown? .*all GPUs are taken$|train-b .*all GPUs are taken$' 'a job that waits says why'
says 'just-done' 'what ended lately is shown'
! grep -q long-done "$dir/out" || no 'what ended long ago is not'
expect 0 jobs --all
says 'long-done' 'all are all'
[[ $(wc -l <"$dir/out") == 5 ]] || no 'of all pages'
expect 0 jobs --owner 'b&b' --state held
says '^no jobs$' 'none is said'
expect 0 jobs --state running --json
jq -e '.jobs | length == 1' "$dir/out" >/dev/null || no 'jobs as JSON'
expect 0 show 7
says '^job 7 \(train-a\) of ann: running$' 'show begins with the job'
says 'deadline .*\(in (2 h 00 min|1 h [0-9]+ min)' 'and has the deadline'
says 'steps +512 of 20000' 'and how far it is'
says 'urgency +2.5 times delay_w, to the nearest doubling' 'and how urgent it is'
says 'command +python3 train.py a\?\[2J' 'and nothing that a terminal would obey'
says 'output +/runs/7.2/out' 'and where its output is'
expect 0 show 7 --json
jq -e '.id == 7' "$dir/out" >/dev/null || no 'show --json is the answer'
expect 1 show x/y
complains "^gogh: there is no job 'x/y'; 'gogh jobs' lists them$" 'a refusal is shown as it is'
expect 1 show odd
complains 'HTTP status 502' 'an answer of something else'
expect 1 show text
complains 'not with JSON' 'and no JSON'
expect 1 cancel 4 7
complains 'job 4 has ended' 'one of two orders fails'
says '^job 7 \(train-a\) cancelled$' 'and the other is done'

# ---- submitting ----
: >"$dir/requests"
expect 0 submit --workload resnet50 --batch 64 --steps 20000 --deadline '2030-01-02 03:04' --gpus 1 \
    --max-gpus 2 --priority -3 --urgency 2.5 --one-node --types v100,a100 --name n1 --env 'X=a,b=c' --env HOME=/h \
    --stdout 'out-%j' --cwd /srv --timeout 1h30m --retries 2 --checkpoint-signal USR1 --grace 90 \
    --min-throughput 0.5 --hold --key k1 -- python3 train.py --lr '1 e'
says '^job 5 \(made-up\) submitted$' 'submit tells the id'
asked 'length == 2 and (map(.body) | unique | length) == 1 and (map(.headers["idempotency-key"]) | unique) == ["k1"]' \
    'a broken connection is tried once more, with the same key'
jq -S '.body | fromjson | .env |= {X, HOME, PATH: (.PATH | type)}' "$dir/requests" | head -n 40 >"$dir/body" || true
jq -se '.[0].body | fromjson | del(.env) == {"workload": "resnet50", "batch": 64, "name": "n1", "steps": 20000,
    "deadline": 1893553440, "gpus": 1, "max_gpus": 2, "priority": -3, "urgency": 2.5, "one_node": true, "types": ["v100", "a100"],
    "cwd": "/srv", "stdout": ($cwd + "/out-%j"), "timeout_s": 5400, "retries": 2, "checkpoint_signal": "USR1",
    "grace_s": 90, "min_throughput": 0.5, "hold": true, "argv": ["python3", "train.py", "--lr", "1 e"]}' \
    --arg cwd "$PWD" "$dir/requests" >/dev/null || no "the body is what was asked: $(cat "$dir/body")"
asked '.[0].body | fromjson | .env | .X == "a,b=c" and .HOME == "/h" and (.PATH | length > 0) and (has("GOGH_SOCKET") | not)' \
    'the environment is what was asked'
: >"$dir/requests"
LC_ALL=C VIRTUAL_ENV=/v CONDA_X=1 SECRET=2 expect 0 submit --deadline +2h --steps 5 --json -- true
jq -e '.id == 5' "$dir/out" >/dev/null || no 'submit --json is the answer'
asked '.[0].body | fromjson | .env | .VIRTUAL_ENV == "/v" and .CONDA_X == "1" and .LC_ALL == "C" and (has("SECRET") | not)' \
    'some variables are passed on, others not'
asked ".[0].body | fromjson | .deadline - $now | . > 7190 and . < 7500" 'a deadline from now'
asked '.[0].headers["idempotency-key"] | test("^[0-9a-f]{32}$")' 'a key is made up'
asked '.[0].body | fromjson | has("gpus") | not' 'what was not said is not sent'
: >"$dir/requests"
for when in 1893553440 2030-01-02T03:04:00Z '2030-01-02 03:04:00'; do
    expect 0 submit --steps 5 --deadline "$when" -- true
done
asked 'map(.body | fromjson | .deadline) | unique == [1893553440]' 'a time in its forms'
: >"$dir/requests"
expect 0 submit --steps 5 --deadline 00:00 -- true
asked ".[0].body | fromjson | .deadline | . > $now and . <= $now + 86460 and . % 86400 == 0" 'the next midnight'
echo '{"name": "mine", "batch": 4, "params": 1e6}' >"$dir/mine.json"
expect 0 submit --descriptor "$dir/mine.json" -- true
asked '.[-1].body | fromjson | .descriptor.params == 1e6' 'a descriptor'
echo '[1]' >"$dir/mine.json"
expect 1 submit --descriptor "$dir/mine.json" -- true
complains 'want one JSON object' 'a descriptor that is none'
expect 0 submit --rate 5 --duration 1h --urgency 2 -- true
complains '^gogh: .* --urgency does nothing with --rate' "a server's urgency does nothing, and that is told"
expect 0 submit --rate 5 --duration 1h -- true
[[ ! -s $dir/err ]] || no "nothing is told who asked for none: $(cat "$dir/err")"
expect 0 submit --wait -- true
says '^job 5 \(just-done\) finished$' 'waiting tells the end'
expect 1 submit --wait -- false
says '^job 4 \(long-done\) failed: exit status 1$' 'waiting for a job that fails, while the daemon restarts'

# ---- where things are ----
expect 0 nodes
says '^box +up +2 +1 +v100:2$' 'nodes'
says '^box/1 +v100 +mps ' 'how a GPU is shared'
says '^box/0 +v100 +- +18[12] +200 +nvml +2\.50 +7 train-a, 9 c$' 'GPUs with who is on them'
expect 0 nodes --json
jq -e '(.nodes | length) == 1 and (.gpus | length) == 2' "$dir/out" >/dev/null || no 'nodes as JSON'
expect 0 nodes drain box
says '^node box drained$' 'a node is drained'
expect 0 plan
says 'planned by gogh in 0\.0 s: 2 jobs placed, 1 wait, 1 short' 'a plan sums up'
says "^an hour of a job's time is worth 0\.065 kWh \(delay_w is 64\.9 W\)$" 'and what time is worth'
says '^move +9  c +box/0 +box/1 +v100 +1\.50 +1\.20 +2\.00  short of its promise$' 'and has its moves'
[[ $(grep -nE '^(move|wait|stay)' "$dir/out" | cut -d: -f2 | cut -d' ' -f1 | tr '\n' ' ') == 'move wait stay ' ]] ||
    no 'what changes comes first'
: >"$dir/requests"
expect 0 explain 8 --at -2h
asked ".[0].path | startswith(\"/v1/jobs/8/explain?at=\")" 'a decision of the past is asked for'
says 'It waits: all GPUs are taken\.' 'explain says why'
says 'in (20 min 00|1?[0-9] min [0-9]+) s\), when job .train-a. ends' 'and until when'
says '^1 x v100 +box/1 +train-a +2\.10 +1\.90 to 2\.30 +-24 +230 +48\.5 +0\.100 +77\.0 +-15 \(breaks\) +breaks its promise \(in doubt: counted on 12 % more\)$' \
    'a candidate with all its figures'
says '^1 x k80 +- +- +0\.900 +- +- +- +- +- +- +- +full$' 'and one with few'
says 'and 3 more' 'and how many are left out'
expect 0 explain 7
says 'It runs on box/0\.' 'explain of a job that runs'
expect 0 explain 10
says 'It is to run on box/1; it is held still\.' 'explain of one that was placed and does not'
expect 0 explain 11
says 'It cannot run here as the cluster is: there are not 2 nodes with 8 GPUs of one type' 'explain of one that cannot'
expect 0 show 11
says 'because +there are not 2 nodes with 8 GPUs' 'and show'
expect 0 jobs --state failed
says 'gang size: there are not 2 nodes with 8 GPUs of one type that it may use$' 'and the list'
expect 0 logs 10 --err
says '^both of them$' 'under Slurm the output has both'
complains "both in one file, unless sbatch was given -e: $dir/slurm-20.out" 'and that is said'

# ---- sums ----
: >"$dir/requests"
expect 0 report --from 2026-09-21 --to '2026-09-22 12:00' --by owner
asked '.[0].path == "/v1/report?by=owner&from=1789948800.000&to=1790078400.000"' 'a period is asked for'
says '^OWNER +JOBS +KWH +WORKING' 'a report has headings'
says '^from 2026-09-21 [0-9:]+ to 2026-09-22 [0-9:]+$' 'and both dates'
says '^mute +0 +1\.00 +0 +1\.00 +0 +0 +- +0 ' 'what nobody reported may be kept or not'
says '^total +2 +2\.00 +1\.50 +0\.500 +2\.00 +1500 +99\.0 +12 +8\.3 +90\.0$' 'and a total'
says 'gogh takes 25\.0 % less energy per unit of work than fifo-fastest' 'and what was saved'
expect 0 report --csv
[[ $(sed -n 1p "$dir/out") == name,jobs,joules,active_j,idle_j,gpu_s,steps,promised_s,kept_s,kept,measured,error,coverage ]] ||
    no 'CSV has a heading'
[[ $(sed -n 2p "$dir/out") == '"ann <& ""co"", x",2,7200000,5400000,1800000,7200,1500,100,99,0.99,12,0.083,0.9' ]] ||
    no 'CSV quotes what it must'
[[ $(sed -n 3p "$dir/out") == '(nobody),0,3600000,0,3600000,0,0,0,0,,0,,' ]] || no 'CSV leaves out what there is not'
expect 0 report --html "$dir/page.html"
[[ ! -s $dir/out ]] || no 'a page is all that is written'
grep -qF '<th scope="row">ann &lt;&amp; &quot;co&quot;, x</th>' "$dir/page.html" || no 'names are escaped'
! grep -qE '<script|<link|url\(|@import| src=' "$dir/page.html" || no 'the page needs nothing else'
! grep -qE '[> ]-?(nan|inf)[< %]' "$dir/page.html" || no 'every figure is a number'
[[ $(grep -c '^<svg' "$dir/page.html") == 4 ]] || no 'four charts'
python3 - "$dir/page.html" <<'PY' || no 'the page is well-formed'
import html.parser, sys
class Check(html.parser.HTMLParser):
    open = []
    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "br"):
            self.open.append(tag)
    def handle_startendtag(self, tag, attrs):
        pass
    def handle_endtag(self, tag):
        assert self.open.pop() == tag, (tag, self.getpos())
c = Check()
c.feed(open(sys.argv[1]).read())
assert not c.open, c.open
PY
expect 0 report --json
jq -e '.rows | length == 3' "$dir/out" >/dev/null || no 'report as JSON'
expect 0 shadow
says '^fifo-fastest +9 +2\.00 +101 +90\.0 +1 min 40 s$' 'shadow has a row a policy'
says 'Really used: 1\.00 kWh' 'and what was really used'

# ---- a refusal is in the words of the command ----
echo '{"POST /v1/jobs": [400, {"error": {"code": "bad", "message": "say so by \"new_workload\": true"}}]}' >"$dir/answers"
(
    export GOGH_SOCKET=$dir/other.sock
    mkfifo "$dir/fifo2"
    python3 "$SRC/tests/helpers/answers.py" "$GOGH_SOCKET" "$dir/answers" "$dir/requests" <"$dir/fifo2" 9>&- &
    exec 8>"$dir/fifo2"
    for ((i = 0; i < 6000; i++)); do
        [[ -S $GOGH_SOCKET ]] && break
        sleep 0.05
    done
    "$GOGH" submit --workload resnet51 -- true 2>"$dir/err" && echo passed >>"$dir/err"
    exec 8>&-
    wait
) || true
[[ $(cat "$dir/err") == 'gogh: say so by --new-workload' ]] || no "a field of the API is said as an option: $(cat "$dir/err")"

# ---- top ----
expect 0 top --once
says 'gogh 9\.9  active, gogh  up 2 h 05 min' 'top begins with the daemon'
says 'jobs: 1 running, 1 waiting, 0 held   GPUs: 1 of 2 busy   206 W   3\.00 kWh|207 W   3\.00 kWh' 'and sums up'
[[ $(grep -oE '^box/[01]' "$dir/out" | tr '\n' ' ') == 'box/0 box/1 ' ]] || no 'most watts come first'
says 'decisions: 42 \(1 by the fallback\), last 4\.0 s ago' 'and has decisions'
says '^plan: at most 12\.5 W from the best, 0\.4 % of its cost, 3\.1 % of what can vary$' 'and how good the plan is'
expect 0 top --json
jq -e '.status.decisions == 42 and (.jobs | length) == 2' "$dir/out" >/dev/null || no 'top as JSON'

# On a terminal: it draws on the other screen, follows a resize, and q gives the first one back.
if command -v tmux >/dev/null; then
    t() { tmux -L "gogh-$$" -f /dev/null "$@"; }
    screen_has() { # TEXT: at last
        for ((i = 0; i < 3000; i++)); do
            t capture-pane -p -t x >"$dir/screen" 2>/dev/null || true
            grep -qE -- "$1" "$dir/screen" && return
            sleep 0.1
        done
        no "$2 (wanted '$1' on: $(cat "$dir/screen"))"
    }
    t new-session -d -s x -x 100 -y 20 "sh -c 'echo before; \"$GOGH\" top --every 0.2; stty -a; echo after \$?; read x'"
    screen_has 'decisions: 42' 'top draws'
    ! grep -q before "$dir/screen" || no 'top has a screen of its own'
    t resize-window -t x -x 60 -y 12
    screen_has '^box/0' 'top follows a resize'
    t send-keys -t x q
    screen_has '^after 0' 'q ends top'
    grep -q '^before' "$dir/screen" || [[ $(t capture-pane -p -S - -t x | grep -c '^before') == 1 ]] ||
        no 'and the first screen is back'
    t capture-pane -p -S - -t x | tr '\n' ' ' | grep -q ' icanon .* echo ' || no 'and the terminal as it was'
    t kill-server
else
    echo "skipped: top on a terminal (no tmux)"
fi
