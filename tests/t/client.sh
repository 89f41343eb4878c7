#!/usr/bin/env bash
# Jobs say how far they are: include/gogh.h as C99 and C++, and `gogh tick`.
. "$SRC/tests/helpers/script.sh"
me="gogh1 7 2 55555555555555555555555555555555"
command -v python3 >/dev/null || { echo "no python3: skipped"; exit 77; }
unset GOGH_JOB GOGH_RUN GOGH_SECRET GOGH_REPORTS GOGH_STEPS_DONE SLURM_JOB_ID SLURM_RESTART_COUNT
unset GOGH_LATENCY_S GOGH_BIN_MS

inbox() { # unix|udp|closed COMMAND...: run it, and what came
    python3 "$SRC/tests/helpers/inbox.py" "$@"
}

same() { # WHAT GOT WANT
    [ "$2" == "$3" ] || no "$1: '$2', wanted '$3'"
}

read -ra cc <<<"${CC:-cc}"
flags=(-Wall -Wextra -Wpedantic -Wshadow -Werror)
served() { # how far it was at last, what came in all, and what else was said at last
    awk '{
        last = $1 " " $2 " " $3 " " $4 " " $5
        keys = ""
        for (i = 6; i <= NF; i++) {
            if ($i !~ /^arr=/) {
                keys = keys " " $i
                continue
            }
            split(substr($i, 5), part, ":")
            n = split(part[2], counts, ",")
            for (k = 1; k <= n; k++)
                came += counts[k] ~ /^z/ ? 0 : counts[k]
        }
    } END { print last " " came " came, bins of " part[1] "," keys }'
}
same_client() { # BINARY: what it does, in whatever language it was compiled
    same "$1 at once: the first count, and the last" "$(inbox unix "$1" 500)" \
        "inside 500"$'\n'"$me 1"$'\n'"$me 500"
    same "$1 by UDP" "$(inbox udp "$1" 5)" "inside 5"$'\n'"$me 1"$'\n'"$me 5"
    same "$1 goes on where it was" "$(GOGH_STEPS_DONE=40 inbox unix "$1" 1)" \
        "inside 41"$'\n'"$me 41"
    same "$1 goes on from an older checkpoint" "$(GOGH_STEPS_DONE=40 inbox unix "$1" from 25)" \
        "$me 25"$'\n'"$me 26"
    same "$1 goes on from a newer one" "$(GOGH_STEPS_DONE=40 inbox unix "$1" from 45)" \
        "$me 45"$'\n'"$me 46"
    same "$1 is not disturbed by a daemon that is away" "$(inbox closed "$1" 9)" "inside 9"
    same "$1 out of memory" "$(inbox unix "$1" unfit || echo "exit $?")" \
        "$me 0 unfit=1"$'\n'"exit 1"
    same "$1 under Slurm" "$(SLURM_JOB_ID=9 inbox unix "$1" 5 | tail -n 1)" \
        "${me/7 2/s9 0} 5"
    same "$1 under Slurm, again" "$(SLURM_JOB_ID=9 SLURM_RESTART_COUNT=3 inbox unix "$1" 5 |
        tail -n 1)" "${me/7 2/s9 3} 5"
    same "$1 out of requests" "$(inbox unix "$1" serve 0 | head -n 1)" "$me 0 ready=1 q=0"
    same "$1 knows who is late" "$(GOGH_LATENCY_S=0.2 inbox unix "$1" serve 42 | served)" \
        "$me 40 42 came, bins of 25, ready=0 late=10 q=2 b=20 busy=5"
    same "$1 knows nobody is late" "$(GOGH_BIN_MS=5 inbox unix "$1" serve 42 | served)" \
        "$me 40 42 came, bins of 5, ready=0 q=2 b=20 busy=5"
    same "$1 outside GOGH" "$("$1" 8)" "outside 8"
    same "$1 with an address that is none" \
        "$(GOGH_REPORTS=x GOGH_JOB=1 GOGH_RUN=0 GOGH_SECRET=a "$1" 8)" "outside 8"
}

"${cc[@]}" -std=c99 -D_POSIX_C_SOURCE=200809L "${flags[@]}" -I"$SRC/include" \
    -o "$dir/c99" "$SRC/tests/helpers/client.c"
same_client "$dir/c99"
n=$(inbox unix "$dir/c99" quiet 2.3 | grep -c '^gogh1 .* ready=')
{ [ "$n" -ge 3 ] && [ "$n" -le 5 ]; } || no "a quiet server says so once a second ($n in 2.3 s)"
same "a server is not disturbed by a daemon that is away" \
    "$(inbox closed "$dir/c99" serve 3)" ""
n=$(inbox unix "$dir/c99" 1 2.3 | grep -c '^gogh1 ')
{ [ "$n" -ge 3 ] && [ "$n" -le 5 ]; } || no "about one datagram a second ($n in 2.3 s)"
if command -v g++ >/dev/null; then
    g++ -x c++ -std=c++11 "${flags[@]}" -I"$SRC/include" -o "$dir/cxx" "$SRC/tests/helpers/client.c"
    same_client "$dir/cxx"
else
    echo "no g++: the header was not compiled as C++"
fi

same "gogh tick" "$(inbox unix "$GOGH" tick 12)" "$me 12"
same "gogh tick of a part" "$(inbox udp "$GOGH" tick 12.5)" "$me 12.5"
same "gogh tick --unfit" "$(inbox unix "$GOGH" tick 3 --unfit)" "$me 3 unfit=1"

same "gogh tick --ready" "$(inbox unix "$GOGH" tick --ready)" "$me 0 ready=1"
same "gogh tick --requests" \
    "$(inbox unix "$GOGH" tick --requests 9 --late 2 --queued 3 --batches 4 --busy 1.5)" \
    "$me 9 late=2 q=3 b=4 busy=1.5"

refused() { # STATUS WORDS COMMAND...
    local want=$1 words=$2 got=0
    shift 2
    "$@" >"$dir/out" 2>"$dir/err" || got=$?
    [ "$got" -eq "$want" ] || no "$* ends with $want (was $got)"
    grep -qF -- "$words" "$dir/err" || no "$* says '$words' (said: $(cat "$dir/err"))"
}
same "gogh tick outside of a job" "$(env -u GOGH_REPORTS "$GOGH" tick 5 2>&1; echo $?)" 0
refused 0 "is the daemon running" inbox closed "$GOGH" tick 5
refused 2 "how many steps" "$GOGH" tick
refused 2 "not a count" "$GOGH" tick many
refused 2 "give one" "$GOGH" tick 5 --requests 5
refused 2 "more are late" "$GOGH" tick --requests 5 --late 6
refused 2 "--queued wants a number" "$GOGH" tick 5 --queued many
refused 2 "not a count" "$GOGH" tick -- -3
