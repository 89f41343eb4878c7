-- The gate by itself, with a made-up 'slurm': lua5.1 slurm_gate.lua PATH/job_submit.lua
-- Each case is a job as Slurm 22.05 describes it (24.11 where it says so), and what comes of it.
local NO_VAL, INFINITE = 4294967294, 4294967295
local said, failed = nil, 0

slurm = {
    SUCCESS = 0, ERROR = -1,
    log_user = function(...) said = string.format(...) end,
    log_info = function() end,
    log_error = function() end,
}
dofile(arg[1])

local function no(name, text)
    io.write("not so: ", name, ": ", text, "\n")
    failed = 1
end

local function job_with(changes)
    local job = {
        partition = "gogh", script = "#!/bin/sh\nsleep 1\n", priority = NO_VAL, requeue = 65534, shared = 65534,
        min_nodes = NO_VAL, max_nodes = NO_VAL, num_tasks = NO_VAL, het_job_offset = NO_VAL, begin_time = 0,
        nice = NO_VAL, environment = {},
    }

    for key, value in pairs(changes) do
        job[key] = value
    end
    return job
end

-- ---- what passes ----

local taken = {
    { "one GPU where nothing is asked for", {}, "gres=gpu:1 nodes=1 held=no" },
    { "--gres", { tres_per_node = "gres:gpu:2", gres = "gres:gpu:2" }, "gres=gpu:2 nodes=1 held=no" },
    { "--gres as 24.11 has it", { tres_per_node = "gres/gpu:v100:2" }, "gres=gpu:v100:2 nodes=1 held=no" },
    { "--gres with a type alone", { tres_per_node = "gres:gpu:a100" }, "gres=gpu:a100:1 nodes=1 held=no" },
    { "--gpus", { tres_per_job = "gres:gpu:v100:4" }, "gres=gpu:v100:4 held=no" },
    { "--gpus --nodes", { tres_per_job = "gres:gpu:4", min_nodes = 2 }, "gres=gpu:2 nodes=2 held=no" },
    { "--gpus --gpus-per-node", { tres_per_job = "gres:gpu:6", tres_per_node = "gres:gpu:2" },
        "gres=gpu:2 nodes=3 held=no" },
    { "--gpus-per-task", { tres_per_task = "gres:gpu:1", num_tasks = 4 }, "gres=gpu:4 held=no" },
    { "--gpus-per-task --nodes", { tres_per_task = "gres:gpu:1", num_tasks = 4, min_nodes = 2 },
        "gres=gpu:2 nodes=2 held=no" },
    { "-c of 24.11 stays", { tres_per_task = "cpu=4,gres/gpu:1" }, "gres=gpu:1 held=no",
        { tres_per_task = "cpu=4" } },
    { "a type of digits", { tres_per_node = "gres:gpu:3090:2" }, "gres=gpu:3090:2 nodes=1 held=no" },
    { "a type that begins with one", { tres_per_node = "gres:gpu:2080ti:1" }, "gres=gpu:2080ti:1 nodes=1 held=no" },
    { "such a type alone", { tres_per_node = "gres/gpu:2080ti" }, "gres=gpu:2080ti:1 nodes=1 held=no" },
    { "a shard means a GPU", { tres_per_node = "gres:shard:1" }, "gres=gpu:1 nodes=1 held=no" },
    { "all shards of a GPU mean all of it", { tres_per_node = "gres:shard:v100:2" }, "gres=shard:v100:2 nodes=1 held=no" },
    { "numbers that Slurm has for 'not said' elsewhere", { min_nodes = 254, tres_per_node = "gres:gpu:1" },
        "gres=gpu:1 nodes=254 held=no" },
    { "of tasks, too", { num_tasks = 65534, tres_per_task = "gres:gpu:1" }, "gres=gpu:65534 held=no" },
    { "--nodes", { min_nodes = 2, max_nodes = 2 }, "gres=gpu:1 nodes=2 held=no" },
    { "--hold", { priority = 0 }, "gres=gpu:1 nodes=1 held=yes" },
    { "another comment stays", { comment = "vangogh: x" }, nil, { comment = "vangogh: x" } },
    { "a promise", { comment = "gogh: min-throughput=40 workload=resnet50 batch=64" }, nil,
        { comment = "gogh: min-throughput=40 workload=resnet50 batch=64" } },
    { "#GOGH lines", { script = "#!/bin/sh\n\n#SBATCH -n1\n#GOGH batch=3\n#GOGH  steps=4\r\ntrue\n#GOGH batch=5\n" }, nil,
        { comment = "gogh: batch=3 steps=4" } },
    { "the command line counts before the script",
        { comment = "p7; gogh: batch=9", script = "#!/bin/sh\n#GOGH batch=3 steps=4\n" }, nil,
        { comment = "p7; gogh: batch=9 steps=4" } },
    { "quotes", { script = '#!/bin/sh\n#GOGH workload="ResNet-18 (batch size 16)"\n' }, nil,
        { comment = 'gogh: workload="ResNet-18 (batch size 16)"' } },
    { "times", { comment = "gogh: deadline=+1d12h grace=90s steps=1e5" } },
    { "times of a server", { comment = "gogh: rate=5 duration=1.5h" } },
    { "a date", { comment = "gogh: deadline=2196-11-16T18:00:00+01:00 steps=3" } },
    { "a date soon", { comment = os.date("!gogh: deadline=%Y-%m-%dT%H:%M:%SZ steps=3", os.time() + 60) } },
    { "a date soon, elsewhere",
        { comment = os.date("!gogh: deadline=%Y-%m-%dT%H:%M:%S+02:00 steps=3", os.time() + 7260) } },
    { "seconds", { comment = "gogh: deadline=" .. os.time() + 60 .. " steps=3" } },
    { "a deadline on the line, its steps in the script",
        { comment = "gogh: deadline=+2h", script = "#!/bin/sh\n#GOGH steps=4\n" }, nil,
        { comment = "gogh: deadline=+2h steps=4" } },
    { "#GOGH lines as others write them", { script = "#!/bin/sh\n#GOGH: batch=3\n#gogh steps=4\n#Gogh:name=x\n#goghd y\n# gogh z\n" },
        nil, { comment = "gogh: batch=3 steps=4 name=x" } },
    { "GPUs on nodes", { comment = "gogh: gpus=4 nodes=2" } },
    { "GPUs on nodes of the options", { comment = "gogh: gpus=4", min_nodes = 2 } },
    { "keys as the API has them", { comment = "gogh: min_throughput=4 grace_s=5 checkpoint_signal=USR1 duration_s=1h rate=1" } },
    { "the command line counts, however it is spelt",
        { comment = "gogh: min-throughput=40", script = "#!/bin/sh\n#GOGH min_throughput=50 grace_s=5\n" }, nil,
        { comment = "gogh: min-throughput=40 grace_s=5" } },
    { "the ends of ranges", { comment = "gogh: batch=1 gpus=4096 nodes=4096 priority=-1000000 steps=1e15 grace=1h urgency=0.01" } },
    { "--nice", { nice = 2147483653 }, "gres=gpu:1 nodes=1 held=no" },
    { "the partition by default", { partition = false, parts = true }, "gres=gpu:1 nodes=1 held=no" },
    { "an array", { array_inx = "1-3%2" }, "gres=gpu:1 nodes=1 held=no" },
}

local parts = { gogh = { name = "gogh", flag_default = 1 }, batch = { name = "batch", flag_default = 0 } }

for _, case in ipairs(taken) do
    local name, changes, note, fields = case[1], case[2], case[3], case[4] or {}
    local job = job_with(changes)
    if job.partition == false then
        job.partition = nil
    end
    local rc = slurm_job_submit(job, parts, 1000)
    if rc ~= slurm.SUCCESS then
        no(name, "refused: " .. tostring(said))
    else
        local rest, secret = job.admin_comment:match("^gogh1 new (.*) secret=(%x+)$")
        if not rest or #secret ~= 32 or secret ~= job.environment.GOGH_SECRET then
            no(name, "its note is " .. job.admin_comment)
        elseif note and rest ~= note then
            no(name, "its note says " .. rest)
        end
        if job.priority ~= 0 or job.requeue ~= 1 then
            no(name, "is not held, or cannot be requeued")
        end
        for _, field in ipairs({ "gres", "tres_per_node", "tres_per_job", "tres_per_task" }) do
            if changes[field] and job[field] ~= (fields[field] or "") then
                no(name, field .. " is still " .. tostring(job[field]))
            end
        end
        if fields.comment and job.comment ~= fields.comment then
            no(name, "its comment is " .. tostring(job.comment))
        end
    end
end

-- ---- what is refused ----

local refused = {
    { "srun", { script = false }, "use sbatch" },
    { "--no-requeue", { requeue = 0 }, "--no-requeue" },
    { "a part of a heterogeneous job", { het_job_offset = 0 }, "heterogeneous" },
    { "--nodelist", { req_nodes = "n1" }, "--nodelist" },
    { "--exclude", { exc_nodes = "n1" }, "--exclude" },
    { "--exclusive", { shared = 0 }, "exclusive=yes" },
    { "--constraint", { features = "fast" }, "types=" },
    { "--dependency", { dependency = "afterok:3" }, "--dependency" },
    { "--begin", { begin_time = os.time() + 3600 }, "--begin" },
    { "--cpus-per-gpu", { cpus_per_tres = "gres:gpu:4" }, "--cpus-per-task" },
    { "--gpus-per-socket", { tres_per_socket = "gres:gpu:1" }, "--gpus-per-node" },
    { "another gres", { tres_per_node = "gres:nvme:1" }, "'nvme:1' cannot be had" },
    { "two types", { tres_per_node = "gres:gpu:k80:1,gres:gpu:v100:1" }, "one kind" },
    { "parts that are not equal", { tres_per_job = "gres:gpu:3", min_nodes = 2 }, "equal parts" },
    { "several partitions", { partition = "batch,gogh" }, "alone" },
    { "more shards than a GPU has", { tres_per_node = "gres:shard:3" }, "a GPU has 2 shards here" },
    { "a request that is none", { tres_per_node = "gres:gpu:v100:many" }, "gpu:TYPE:NUMBER" },
    { "a part too many", { tres_per_node = "gres:gpu:v100:2:x" }, "gpu:TYPE:NUMBER" },
    { "a slip", { comment = "gogh: stepz=3" }, "no 'stepz'" },
    { "a word alone", { comment = "gogh: fast" }, "key=value" },
    { "twice", { comment = "gogh: batch=1 batch=2" }, "twice" },
    { "twice, spelt in two ways", { comment = "gogh: max_gpus=2 max-gpus=3" }, "twice" },
    { "twice, by the API's name and ours", { comment = "gogh: grace=2 grace_s=3" }, "twice" },
    { "no batch", { comment = "gogh: batch=0" }, "from 1 to 10000000" },
    { "no GPUs", { comment = "gogh: gpus=0" }, "from 1 to 4096" },
    { "too many GPUs", { comment = "gogh: max-gpus=4097" }, "from 1 to 4096" },
    { "no nodes", { comment = "gogh: nodes=0" }, "from 1 to 4096" },
    { "no rate", { comment = "gogh: rate=0" }, "above 0" },
    { "no steps", { comment = "gogh: steps=0" }, "above 0" },
    { "no duration", { comment = "gogh: duration=0 rate=1" }, "above 0" },
    { "too high", { comment = "gogh: priority=99999999" }, "from -1000000 to 1000000" },
    { "too urgent", { comment = "gogh: urgency=101" }, "from 0.01 to 100" },
    { "too long", { comment = "gogh: grace=61m" }, "1h at most" },
    { "a time without its zone", { comment = "gogh: deadline=2196-01-01T00:00:00 steps=4" }, "18:00:00Z" },
    { "a deadline of nothing", { comment = "gogh: deadline=+6h" }, "needs steps=N" },
    { "a deadline that has passed", { comment = "gogh: deadline=2020-01-01T00:00:00Z steps=4" }, "has passed" },
    { "one of just now", { comment = os.date("!gogh: deadline=%Y-%m-%dT%H:%M:%SZ steps=3", os.time() - 2) }, "has passed" },
    { "one of just now, elsewhere",
        { comment = os.date("!gogh: deadline=%Y-%m-%dT%H:%M:%S-02:30 steps=3", os.time() - 9002) }, "has passed" },
    { "one in seconds", { comment = "gogh: deadline=1000 steps=4" }, "has passed" },
    { "a server with steps", { comment = "gogh: rate=4 steps=4" }, "rate and duration instead" },
    { "a server without a rate", { comment = "gogh: kind=inference" }, "rate=N" },
    { "training for a while", { comment = "gogh: duration=2h" }, "training has steps" },
    { "parts of a promise that are not equal", { comment = "gogh: gpus=2 nodes=3" }, "equal parts" },
    { "nor with options", { comment = "gogh: gpus=3", min_nodes = 2 }, "equal parts" },
    { "retries, which Slurm's jobs do not have", { comment = "gogh: retries=2" }, "gogh submit" },
    { "not a number", { comment = "gogh: min-throughput=fast" }, "want a number" },
    { "no such signal", { comment = "gogh: checkpoint=HUP" }, "TERM, USR1 or none" },
    { "a quote without an end", { comment = 'gogh: workload="x' }, "not closed" },
    { "a wrong #GOGH line", { script = "#!/bin/sh\n#GOGH batch=many\n" }, "batch=many" },
    { "a token behind something else", { comment = "x gogh: token=0123456789abcdef-1" }, "no 'token'" },
    { "a token in capitals", { comment = "GOGH: token=0123456789abcdef-1" }, "no 'token'" },
    { "a token that is none", { comment = "gogh: token=1-1" }, "no 'token'" },
    { "a token of no job", { comment = "gogh: token=0123456789abcdef-2147483648" }, "no 'token'" },
    { "a token and something else", { comment = "gogh: token=0123456789abcdef-1 batch=2" }, "no 'token'" },
}

for _, case in ipairs(refused) do
    local job = job_with(case[2])
    if job.script == false then
        job.script = nil
    end
    said = nil
    if slurm_job_submit(job, parts, 1000) == slurm.SUCCESS then
        no(case[1], "passed")
    elseif not said or not said:find(case[3], 1, true) or not said:find("^gogh: ") then
        no(case[1], "says " .. tostring(said))
    end
end

-- ---- others ----

local job = job_with({ partition = "batch", comment = "gogh: nonsense", req_nodes = "n1" })
if slurm_job_submit(job, parts, 1000) ~= slurm.SUCCESS or job.priority ~= NO_VAL or job.admin_comment then
    no("a job of another partition", "is touched")
end
job = job_with({ comment = "gogh: token=0123456789abcdef-1717", priority = 0 })
if slurm_job_submit(job, parts, 1000) ~= slurm.SUCCESS or job.admin_comment or job.environment.GOGH_SECRET or
    job.priority ~= 0 then
    no("a job that GOGH submits", "is touched")
end
job = job_with({ comment = "gogh: token=0123456789abcdef-17-1a2b", priority = 0 })
if slurm_job_submit(job, parts, 1000) ~= slurm.SUCCESS or job.admin_comment then
    no("a job that GOGH submits, with the mark of its submission", "is touched")
end
job = job_with({ comment = "gogh: token=0123456789abcdef-17", tres_per_node = "gres:gpu:1" })
if slurm_job_submit(job, parts, 1000) ~= slurm.SUCCESS or job.priority ~= 0 or job.tres_per_node ~= "" then
    no("one who calls himself GOGH", "is not held")
end
job = job_with({})
job.environment = nil    -- an error of ours, or of a Slurm that we do not know
if slurm_job_submit(job, parts, 1000) ~= slurm.ERROR or not said:find("the gate failed") then
    no("a gate that fails", "lets jobs pass")
end

-- ---- changes ----

local function change_with(changes)
    local change = {
        priority = NO_VAL, min_nodes = NO_VAL, max_nodes = NO_VAL, requeue = 65534, shared = 65534, begin_time = 0,
        nice = NO_VAL,
    }

    for key, value in pairs(changes) do
        change[key] = value
    end
    return change
end

local changes = {
    { "a release", { priority = INFINITE }, 1000, "gogh release JOB" },
    { "a release by root", { priority = INFINITE }, 0 },
    { "a priority", { priority = 100 }, 1000, "gogh release JOB" },
    { "a nice value, which releases", { nice = 2147483649 }, 1000, "its nice value" },
    { "a nice value of 0", { nice = 2147483648 }, 1000, "its nice value" },
    { "a nice value by root", { nice = 2147483649 }, 0 },
    { "a hold of one that GOGH holds", { priority = 0 }, 1000, "gogh hold JOB" },
    { "a hold of one that runs", { priority = 0, from = 99 }, 1000 },
    { "nodes", { req_nodes = "n1" }, 1000, "its nodes" },
    { "other nodes", { exc_nodes = "" }, 1000, "its nodes" },
    { "how many nodes", { min_nodes = 2 }, 1000, "its nodes" },
    { "many nodes", { min_nodes = 254 }, 1000, "its nodes" },
    { "GPUs", { tres_per_node = "gres:gpu:4", gres = "gres:gpu:4" }, 1000, "its GPUs" },
    { "the admin comment", { admin_comment = "x" }, 1000, "its admin comment" },
    { "the comment", { comment = "gogh: batch=3" }, 1000, "its comment" },
    { "out of the partition", { partition = "batch" }, 1000, "its partition" },
    { "into the partition", { partition = "gogh", where = "batch" }, 1000, "submit it there" },
    { "into the partition by root, past the gate", { partition = "gogh", where = "batch" }, 0, "submit it there" },
    { "out of the partition by root", { partition = "batch" }, 0 },
    { "the time limit", { time_limit = 30 }, 1000 },
    { "the name", { name = "x" }, 1000 },
    { "anything of other partitions", { where = "batch", priority = INFINITE, req_nodes = "n1" }, 1000 },
}

for _, case in ipairs(changes) do
    local change = change_with(case[2])
    local record = { job_id = 7, partition = change.where or "gogh", priority = change.from or 0 }
    said = nil
    local rc = slurm_job_modify(change, record, parts, case[3])
    if case[4] and (rc == slurm.SUCCESS or not said or not said:find(case[4], 1, true)) then
        no(case[1], "passes, or says " .. tostring(said))
    elseif not case[4] and rc ~= slurm.SUCCESS then
        no(case[1], "is refused: " .. tostring(said))
    end
end

-- ---- behind a site's own script ----

local seen = 0
function slurm_job_submit() seen = seen + 1; return slurm.SUCCESS end
function slurm_job_modify() seen = seen + 1; return slurm.SUCCESS end
dofile(arg[1])
job = job_with({})
if slurm_job_submit(job, parts, 1000) ~= slurm.SUCCESS or seen ~= 1 or job.priority ~= 0 then
    no("a site's script", "is not called before the gate")
end
if slurm_job_modify(change_with({ priority = INFINITE }), { job_id = 7, partition = "gogh", priority = 0 }, parts,
        1000) == slurm.SUCCESS or seen ~= 2 then
    no("a site's script", "is not called before the gate at changes")
end
function slurm_job_submit() return 2002 end
slurm_job_modify = nil
dofile(arg[1])
if slurm_job_submit(job_with({}), parts, 1000) ~= 2002 then
    no("what a site's script refuses", "passes")
end
os.exit(failed)
