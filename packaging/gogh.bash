# Bash completion for gogh. Installed as bash-completion/completions/gogh.

# Live jobs and nodes, where a daemon is there to ask.
_gogh_jobs() {
    gogh jobs --json 2>/dev/null | grep -o '"id": *[0-9]*' | grep -o '[0-9]*' | tr '\n' ' '
}
_gogh_services() {
    gogh services 2>/dev/null | sed -n '2,$s/^ *[0-9]* *\([^ ]*\).*/\1/p' | tr '\n' ' '
}
_gogh_nodes() {
    gogh nodes 2>/dev/null | sed -n '2,/^$/s/ .*//p' | tr '\n' ' '
}

_gogh_words() {
    local options='--help'
    case "$1" in
    submit | jobs | services | scale | show | logs | explain | cancel | hold | release | nodes | top | plan | report | shadow | commission)
        options+=' --json --socket --url --cacert'
        ;;
    esac
    case "$1" in
    submit)
        options+=' --workload --batch --precision --new-workload --descriptor --name --kind --steps --rate --duration'
        options+=' --min-throughput --deadline --gpus --max-gpus --types --exclusive --one-node --nodes --priority --urgency'
        options+=' --env --cwd --stdout --stderr --timeout --retries --cpus --mem-mib --checkpoint-signal --grace --hold'
        options+=' --service --p99 --ttft --tpot --max-batch --load-time --no-move --probe --metrics'
        options+=' --owner --key --wait --'
        ;;
    jobs) options+=' --state --owner --mine --replicas --all' ;;
    services) options+=' --all' ;;
    scale) options+=" --rate --max-gpus $(_gogh_services)" ;;
    show | cancel | hold | release) options+=" $(_gogh_jobs)" ;;
    logs) options+=" --err --path $(_gogh_jobs)" ;;
    explain) options+=" --at $(_gogh_jobs)" ;;
    nodes)
        case "$2" in
        '' | -*) options+=' drain resume' ;;
        drain | resume) options+=" $(_gogh_nodes)" ;;
        esac
        ;;
    top) options+=' --every --once' ;;
    report) options+=' --from --to --by --csv --html' ;;
    shadow) options+=' --from --to' ;;
    commission) options+=' --pairs --run --minutes --priority --programs --dir --db --cluster' ;;
    config)
        case "$2" in
        '' | -*) options+=' check show template --json' ;;
        show) options+=' --json' ;;
        esac
        ;;
    token)
        options+=' --tokens'
        case "$2" in
        '' | -*) options+=' new list revoke --scope --owner --json' ;;
        new) options+=' --scope --owner' ;;
        list) options+=' --json' ;;
        esac
        ;;
    tick) options+=' --unfit --ready --requests --late --queued --batches --busy' ;;
    import)
        options+=' --db --campaign --sharing --json'
        case "$2" in
        '' | -*) options+=' gavel zeus csv neusight pytorch-gpu-benchmark pollux parvagpu miso elasticflow mlenergy --workloads' ;;
        gavel) options+=' --isolated --workloads --watts' ;;
        csv) options+=' --workloads' ;;
        esac
        ;;
    catalog)
        options+=' --db --json'
        case "$2" in
        '' | -*) options+=' show export model gpus models' ;;
        export) options+=' --out --workloads' ;;
        esac
        ;;
    predict) options+=' --workload --batch --precision --beside --gpu --db --model --estimator --choose --json' ;;
    train) options+=' --db --out --from --seed --about --network --json' ;;
    eval)
        options+=' --db --split --model --campaign --site-cells --measurements --seeds --seed --choose'
        options+=' --estimator --dump --threads --json'
        ;;
    optimize)
        options+=' --exact --fast --time --nodes --threads --seed --out --check --json'
        options+=' --generate --kinds --theta --overload --standing --watts'
        ;;
    trace)
        options+=' --truth --reference --seed --out --jobs'
        case "$2" in
        '' | -*) options+=' generate import' ;;
        generate) options+=' --cluster --load --rate --inference --gangs --services --service-rate --days' ;;
        import)
            options+=' gavel philly alibaba alibaba-nodes azure --member'
            options+=' --workload --ttft --tpot --max-gpus --arrivals'
            ;;
        esac
        ;;
    simulate)
        options+=' --cluster --trace --truth --policy --seed --known --reference --until'
        options+=' --model --estimator --without --learn --jobs-out --journal --no-timing --json'
        ;;
    study)
        options+=' --scenario --show --seeds --first-seed --policy --load --limits --delay-w --promise-w'
        options+=' --history --model --cluster --trace --sacct --record --truth --partition --workload'
        options+=' --jobs-parallel --data --out --report --list --json'
        ;;
    advise)
        options+=' --sacct --cluster --partition --workload --truth --seed --seeds --tolerance --from --to'
        options+=' --days --shards --keep-types --site-sleeps --no-levers --price --co2 --json'
        ;;
    whatif)
        options+=' --trace --sacct --record --db --cluster --truth --period --partition --workload --tolerance'
        options+=' --from --to --days --shards --keep-types --remove --add --power-cap --delay-w --promise-w'
        options+=' --policy --retire --price --co2 --seeds --first-seed --json'
        ;;
    replay) options+=' --db --record --truth --tolerance --json' ;;
    demo) options+=' --jobs --load --seconds --seed --out --plain' ;;
    bench)
        options+=' --json'
        case "$2" in
        '' | -*) options+=' import open events simulate estimate sharing services network study optimize serve --runs' ;;
        optimize) options+=' --rows --seeds --scale --prove' ;;
        serve) options+=' --rows --runs --scale' ;;
        *) options+=' import open events simulate estimate sharing services network study --runs' ;;
        esac
        ;;
    help) options='submit jobs services scale show logs explain cancel hold release nodes top plan report shadow commission config token tick import catalog predict eval train optimize trace simulate study advise whatif replay demo bench' ;;
    version) options='' ;;
    esac
    echo "$options"
}

_gogh() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words='' start=''
    local command=${COMP_WORDS[1]} verb=${COMP_WORDS[2]}

    COMPREPLY=()
    ((COMP_CWORD == 2)) && verb=''
    case "$before" in
    --policy)
        words='gogh gogh-oracle greedy watts gavel gavel-cost pack eaco fifo-promise fifo-fastest fifo-random fifo-first slurm static-peak autoscaler'
        [ "$command" = study ] && words+=' bound'
        ;;
    --state) words='waiting held running finished failed cancelled' ;;
    --scope) words='read submit operate admin' ;;
    --by) words='owner workload gpu_type service' ;;
    --kind) words='training inference' ;;
    --checkpoint-signal) words='TERM USR1 none' ;;
    --owner) words=$(compgen -u) ;;
    --env) words=$(compgen -e) ;;
    --types) words=$(gogh catalog gpus --json 2>/dev/null | grep -o '"name": "[^"]*"' | cut -d'"' -f4) ;;
    --descriptor | --tokens | --cwd | --stdout | --stderr | --socket | --cacert | --html | --programs | --dir) ;;
    --p99 | --ttft | --tpot | --max-batch | --load-time | --probe | --metrics) return ;;
    --name | --steps | --duration | --min-throughput | --deadline | --gpus | --max-gpus | --priority | --urgency) return ;;
    --timeout | --retries | --cpus | --mem-mib | --grace | --key | --url | --at | --every | --from | --to | --pairs | --minutes) return ;;
    --scenario | --show) words=$(gogh study --list 2>/dev/null | sed -n '2,$s/ .*//p') ;;
    --limits) words='no yes both' ;;
    --without) words='types sharing moving sleep limits joules' ;;
    --sharing) words='exclusive timeslice mps mig unknown' ;;
    --split) words='job family gpu campaign site serving' ;;
    --precision) words='fp32 tf32 fp16 bf16 fp8 int8' ;;
    --choose)
        words='active'
        [ "$command" = eval ] && words='random active'
        ;;
    --estimator) words='gogh hierarchical network mean roofline' ;;
    --model)
        words='site pretrained none'
        [ "$command" = eval ] && words='pretrained others none'
        ;;
    --gpu | --reference | --remove) words=$(gogh catalog gpus --json 2>/dev/null | grep -o '"name": "[^"]*"' | cut -d'"' -f4) ;;
    --db | --truth | --known | --cluster | --trace | --sacct | --out | --arrivals | --jobs-out | --journal | --isolated | --dump | --check | --data) ;;
    --watts) [ "$command" = optimize ] && words=$(_gogh_words optimize) ;;
    --seed | --jobs | --load | --rate | --until | --seconds | --runs | --batch | --beside | --workload) return ;;
    --inference | --gangs | --services | --service-rate | --days | --member | --about | --measurements | --site-cells | --seeds | --threads | --jobs-parallel) return ;;
    --rows)
        words='small30 small100 500 10000 changed 50000 1000kinds three overload events growth references per-gpu gavel pop greedy'
        [[ $verb != serve ]] || words='submit list reports restart memory arrivals slurm'
        ;;
    --partition | --tolerance | --days | --shards | --price | --co2) return ;;
    --period | --add | --power-cap | --delay-w | --promise-w | --first-seed) return ;;
    --time | --nodes | --scale | --kinds | --theta | --overload | --standing | --generate) return ;;
    *)
        if ((COMP_CWORD == 1)); then
            words='submit jobs show logs explain cancel hold release nodes top plan report shadow commission config token tick import catalog predict eval train optimize trace simulate study advise whatif replay demo bench help version'
        else
            words=$(_gogh_words "$command" "$verb")
        fi
        ;;
    esac
    # In a list, what stands before the last comma stays.
    case "$before" in
    --policy | --scenario | --without | --types) [[ $word == *,* ]] && start=${word%,*}, ;;
    esac
    mapfile -t COMPREPLY < <(compgen -P "$start" -W "$words" -- "${word#"$start"}")
}

# Where none of our words fits, files do.
complete -o default -F _gogh gogh
