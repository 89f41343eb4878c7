--[[ job_submit.lua - GOGH's gate: jobs of its partition wait, held, until GOGH has placed them.

slurmctld calls slurm_job_submit for every job and slurm_job_modify for every change of one. Jobs of
other partitions pass untouched. Of GOGH's it keeps the request for GPUs in the admin comment, takes
it off the job, and holds it; wrong promises are refused at once, with the cure. A site that has a
job_submit.lua already puts this file beside it and says dofile("/path/of/this/file") in the last
line of its own before 'return slurm.SUCCESS': its functions are called first, then these.

For Slurm 22.05 to 24.11, which have Lua 5.1 to 5.4. See docs/slurm.md.
]]

local settings = {
    partitions = { "gogh" },      -- those that GOGH places jobs of
    reports = "",                 -- HOST:PORT that jobs report to, as 'reports_udp' of gogh.conf
    shards = 2,                   -- of one GPU, as gres.conf has it
    operators = {},               -- numbers of users who may change GOGH's jobs, beside root and SlurmUser
}

-- What a site's own script has defined, where this one comes behind it.
local site_submit, site_modify = slurm_job_submit, slurm_job_modify

-- ---- small things ----

local function refuse(text, ...)
    error({ gogh = string.format(text, ...) }, 0)
end

-- A text of a job; nil where there is none.
local function text_of(value)
    if type(value) ~= "string" or value == "" or value == "(null)" then
        return nil
    end
    return value
end

-- A number of a job of that many bits; nil where it was not said (the highest two mean that, or "all").
local function number_of(value, bits)
    value = tonumber(value)
    if value == nil or value >= 2 ^ bits - 2 then
        return nil
    end
    return value
end

local function is_among(list, value)
    for _, one in ipairs(list) do
        if one == value then
            return true
        end
    end
    return false
end

-- 32 hex digits of the system's randomness.
local function secret_new()
    local file = io.open("/dev/urandom", "rb")
    local bytes = file and file:read(16)

    if file then
        file:close()
    end
    if not bytes or #bytes ~= 16 then
        error("/dev/urandom cannot be read")
    end
    return (bytes:gsub(".", function(c) return string.format("%02x", c:byte()) end))
end

-- The user that slurmctld runs as; nil where /proc does not say.
local function own_uid()
    local file = io.open("/proc/self/status", "r")
    local text = file and file:read("*a") or ""

    if file then
        file:close()
    end
    return tonumber(text:match("\nUid:%s+%d+%s+(%d+)"))
end

local slurm_user = own_uid()

local function is_operator(uid)
    return uid == 0 or uid == slurm_user or is_among(settings.operators, uid)
end

-- ---- whose partition ----

-- The partition a job names, or the default one.
local function partition_of(job, partitions)
    local name = text_of(job.partition)

    if name then
        return name
    end
    for key, partition in pairs(partitions or {}) do
        if number_of(partition.flag_default, 16) == 1 then
            return text_of(partition.name) or key
        end
    end
    return nil
end

-- GOGH's, of a list as "gogh,batch" which Slurm takes, too; and whether it is named with others.
local function gogh_partition(names)
    local found, is_one_of_several = nil, false

    for name in (names or ""):gmatch("[^,]+") do
        if is_among(settings.partitions, name) then
            found = name
        else
            is_one_of_several = true
        end
    end
    return found, found ~= nil and is_one_of_several
end

-- ---- promises ----

-- Seconds since 1970 of "2026-11-16T18:00:00Z" or "...+01:00"; nil: none of these.
local function time_of(value)
    local y, mon, d, h, min, s, zone = value:match("^(%d%d%d%d)%-(%d%d)%-(%d%d)[Tt](%d%d):(%d%d):(%d%d)%.?%d*(.*)$")
    local sign, zone_h, zone_min = (zone or ""):match("^([+-])(%d%d):(%d%d)$")

    if not y or (not sign and not zone:match("^[Zz]$")) then
        return nil
    end
    -- Years begin in March here, so that the day that comes and goes is the last one.
    local year, month = tonumber(y) - (tonumber(mon) <= 2 and 1 or 0), (tonumber(mon) + 9) % 12
    local days = 365 * year + math.floor(year / 4) - math.floor(year / 100) + math.floor(year / 400) +
        math.floor((153 * month + 2) / 5) + tonumber(d) - 719469
    local past_s = (sign == "-" and -1 or 1) * (tonumber(zone_h or 0) * 3600 + tonumber(zone_min or 0) * 60)
    return days * 86400 + tonumber(h) * 3600 + tonumber(min) * 60 + tonumber(s) - past_s
end

-- What tells whether a value will do.
local function number_in(low, high)
    return function(value)
        local n = value:match("^[%d.]+[eE]?[+-]?%d*$") and tonumber(value)
        return n and n >= low and n <= high
    end
end

local function whole_in(low, high)
    return function(value)
        local n = value:match("^%-?%d+$") and tonumber(value)
        return n and n >= low and n <= high
    end
end

-- Seconds of "90", "90s", "5m", "2h", "1d12h"; nil: none of these.
local function seconds_of(value)
    local unit_s, sum = { s = 1, m = 60, h = 3600, d = 86400 }, 0

    if value:match("^[%d.]+[eE]?[+-]?%d*$") then
        return tonumber(value)
    end
    if not value:match("^[%d.]+[smhd]") or value:gsub("[%d.]+[smhd]", "") ~= "" then
        return nil
    end
    for n, unit in value:gmatch("([%d.]+)([smhd])") do
        sum = sum + (tonumber(n) or 1 / 0) * unit_s[unit]
    end
    return sum
end

local function duration_in(low, high)
    return function(value)
        local s = seconds_of(value)
        return s and s >= low and s <= high
    end
end

local function is_name(value)
    return #value >= 1 and #value <= 200
end

local function is_yes_or_no(value)
    return is_among({ "yes", "no", "true", "false", "1", "0" }, value)
end

-- What each key wants: how to tell, and in words. The ranges are those of POST /v1/jobs.
local promise_keys = {
    ["min-throughput"] = { number_in(0, 1e9), "a number of steps a second, 1e9 at most" },
    workload = { is_name, "the name of a model" },
    batch = { whole_in(1, 10000000), "a whole number from 1 to 10000000" },
    precision = {
        function(v)
            return is_among({ "fp32", "tf32", "fp16", "bf16", "half", "mixed", "amp", "fp8", "int8" },
                v:lower())
        end,
        "fp32, tf32, fp16 (or bf16, half, mixed, amp), fp8 or int8"
    },
    steps = { number_in(1e-9, 1e15), "a number above 0, 1e15 at most" },
    deadline = {
        function(v)
            return v:match("^%+") and duration_in(0, 1e10)(v:sub(2)) or number_in(0, 1e12)(v) or
                time_of(v) ~= nil
        end,
        "a time as 2026-11-16T18:00:00Z, or +2h"
    },
    rate = { number_in(1e-9, 1e9), "a number of steps a second above 0, 1e9 at most" },
    duration = { duration_in(1e-3, 1e10), "seconds, or 90s, 5m, 2h, 1d12h, above 0" },
    kind = { function(v) return v == "training" or v == "inference" end, "training or inference" },
    name = { is_name, "1 to 200 bytes" },
    priority = { whole_in(-1000000, 1000000), "a whole number from -1000000 to 1000000" },
    urgency = { number_in(0.01, 100), "a number from 0.01 to 100" },
    exclusive = { is_yes_or_no, "yes or no" },
    types = { function(v) return v:match("^[^,]+[^,]*") ~= nil end, "GPU types with commas between" },
    gpus = { whole_in(1, 4096), "a whole number from 1 to 4096" },
    ["max-gpus"] = { whole_in(1, 4096), "a whole number from 1 to 4096" },
    nodes = { whole_in(1, 4096), "a whole number from 1 to 4096" },
    checkpoint = {
        function(v) return is_among({ "TERM", "USR1", "none" }, v) end, "TERM, USR1 or none"
    },
    grace = { duration_in(0, 3600), "seconds, or 90s, 5m, 1h at most" },
    ["new-workload"] = { is_yes_or_no, "yes or no" },
}

-- The API's names for these, beside those that differ in '_' alone.
local other_names = {
    ["duration-s"] = "duration", ["grace-s"] = "grace", ["checkpoint-signal"] = "checkpoint",
}

-- Where the promise begins in a comment: what is before it, and it; nil: there is none.
local function promise_split(comment)
    local from = 1

    while true do
        local first, last = comment:lower():find("gogh:", from, true)
        if not first then
            return comment, nil
        end
        if first == 1 or comment:sub(first - 1, first - 1):match("[%s;,]") then
            return comment:sub(1, first - 1), comment:sub(last + 1)
        end
        from = last + 1
    end
end

-- The words of a promise: { key, value, said: the key as written, text: all of it } each. Quotes keep blanks.
local function promise_words(text)
    local words, at = {}, 1

    while true do
        at = text:find("%S", at)
        if not at then
            return words
        end
        local key, from = text:match("^([^%s=\"]+)=()", at)
        if not key then
            refuse("'%s' is not of the form key=value", text:match("^%S+", at))
        end
        local value, past
        if text:sub(from, from) == '"' then
            value, past = text:match('^"([^"]*)"()', from)
            if not value then
                refuse("the quote in %s is not closed", key)
            end
        else
            value, past = text:match("^(%S*)()", from)
        end
        local one = key:gsub("_", "-")
        words[#words + 1] = {
            key = other_names[one] or one, value = value, said = key, text = text:sub(at, past - 1)
        }
        at = past
    end
end

local function promise_check(words)
    local seen = {}

    for _, word in ipairs(words) do
        local want = promise_keys[word.key]
        if word.key == "retries" then
            refuse("retries: a job of sbatch that fails has failed; those of 'gogh submit --retries N' " ..
                "are tried again")
        end
        if not want then
            refuse("there is no '%s'; there are min-throughput, workload, batch, steps, deadline, " ..
                "rate, duration and others: see 'Promises' in GOGH's docs/slurm.md", word.said)
        end
        if seen[word.key] then
            refuse("'%s' is said twice: once is enough", word.key)
        end
        seen[word.key] = true
        if not want[1](word.value) then
            refuse("%s=%s: want %s", word.said, word.value, want[2])
        end
    end
    return seen
end

-- Seconds from now to a deadline; nil where only the daemon can tell.
local function seconds_until(value)
    if value:match("^%+") then
        return seconds_of(value:sub(2))
    end
    local s = tonumber(value) or time_of(value)
    return s and s - os.time()
end

-- What words mean together, as the daemon reads them: 'said' has a value for each key, 'nodes' is how many the
-- options name.
local function promise_agree(said, nodes)
    local is_server = said.rate ~= nil

    if said.kind == "inference" and not is_server then
        refuse("kind=inference: rate=N says how many steps a second are asked of it")
    elseif said.kind == "training" and is_server then
        refuse("rate: training goes as fast as it can; say min-throughput")
    elseif is_server and (said.steps or said.deadline) then
        refuse("%s: a server has rate and duration instead", said.steps and "steps" or "deadline")
    elseif said.duration and not is_server then
        refuse("duration: only a server, which has rate=N, has one; training has steps")
    elseif said.deadline and not said.steps then
        refuse("deadline: it needs steps=N, or nobody knows what must be done by then")
    end
    local left_s = said.deadline and seconds_until(said.deadline)
    if left_s and left_s <= 0 then
        refuse("deadline=%s: that time has passed", said.deadline)
    end
    local on = tonumber(said.nodes) or nodes
    if said.gpus and on and said.gpus % on ~= 0 then
        refuse("gpus=%s: these cannot stand on %d nodes in equal parts", said.gpus, on)
    end
end

-- The words of '#GOGH' lines in the comments that a script begins with; "#GOGH:" and "#gogh" will do, too.
local function script_words(script)
    local words = {}

    for line in (script or ""):gmatch("[^\n]*") do
        if line:match("^%s*$") then
            -- goes on
        elseif line:sub(1, 1) ~= "#" then
            break
        else
            local said = line:match("^#[Gg][Oo][Gg][Hh][:%s]%s*(.*)$")
            for _, word in ipairs(said and promise_words((said:gsub("\r$", ""))) or {}) do
                words[#words + 1] = word
            end
        end
    end
    return words
end

-- The comment with what the script says beside it; a word of the comment counts before the script's.
local function comment_with_script(comment, script, nodes)
    local before, said = promise_split(comment or "")
    local words = promise_words(said or "")
    local seen = promise_check(words)
    local theirs = script_words(script)

    promise_check(theirs)
    for _, word in ipairs(theirs) do
        if not seen[word.key] then
            words[#words + 1] = word
        end
    end
    if #words == 0 then
        return comment
    end
    local texts, values = {}, {}
    for i, word in ipairs(words) do
        texts[i], values[word.key] = word.text, word.value
    end
    promise_agree(values, nodes)
    if before ~= "" and not before:match("%s$") then
        before = before .. " "
    end
    return before .. "gogh: " .. table.concat(texts, " ")
end

-- ---- GPUs ----

-- "gpu", "gpu:2", "gpu:v100" or "gpu:v100:2" as what, of which type, how many. A type may begin with
-- a digit ("2080ti"); digits alone are a type only where a number follows ("3090:2"), as in Slurm.
local function gres_parts(text, option)
    local what, kind, n = text:match("^([^:]*):([^:]+):(%d+)$")

    if not what then
        what, n = text:match("^([^:]*):(%d+)$")
    end
    if not what then
        what, kind = text:match("^([^:]*):([^:]+)$")
    end
    if not what and text:find(":", 1, true) then
        refuse("%s: '%s' is not of the form gpu:TYPE:NUMBER", option, text)
    end
    return what or text, kind, tonumber(n or 1)
end

-- A job gets its shards from one GPU.
local function shards_check(n, option)
    if n > settings.shards then
        refuse("%s: %d shards: a GPU has %d shards here; --gres=gpu:N asks for N GPUs", option, n,
            settings.shards)
    end
end

-- The GPUs of a text as "gres:gpu:v100:2" or "gres/gpu:2,cpu=4": how many (n; nil: none), which
-- (kind), and what else there is (others). Shards are one GPU; 'shards' where they are all of it.
local function gpus_of(text, option)
    local found, others = {}, {}

    for item in (text or ""):gmatch("[^,]+") do
        local bare = item:gsub("^gres[:/]", ""):gsub("=", ":")
        local what, kind, n = gres_parts(bare, option)
        if what == "cpu" or what == "mem" or what == "billing" then
            others[#others + 1] = item
        elseif what ~= "gpu" and what ~= "shard" then
            refuse("%s: '%s' cannot be had in this partition, only GPUs", option, bare)
        elseif found.n then
            refuse("%s: GPUs of one kind, please; say types=A,B after 'gogh:' where several will do",
                option)
        elseif what == "shard" and n > 0 then
            shards_check(n, option)
            found.n, found.kind = 1, kind
            found.shards = n > 1 and n == settings.shards and n or nil
        elseif n > 0 then
            found.n, found.kind = n, kind
        end
    end
    found.others = table.concat(others, ",")
    return found
end

local function divide(n, by, option)
    if n % by ~= 0 then
        refuse("%s: %d GPUs cannot stand on %d nodes in equal parts", option, n, by)
    end
    return n / by
end

-- What was asked for in all its forms: GPUs of a node with the number of nodes, or of all nodes
-- together where nobody said how many.
local function request_of(job)
    local node = gpus_of(text_of(job.tres_per_node) or text_of(job.gres), "--gres")
    local all = gpus_of(text_of(job.tres_per_job), "--gpus")
    local task = gpus_of(text_of(job.tres_per_task), "--gpus-per-task")
    local nodes = number_of(job.min_nodes, 32)
    local per_node, in_all, kind = node.n, all.n, node.kind or all.kind

    if text_of(job.tres_per_socket) then
        refuse("--gpus-per-socket: say --gpus-per-node")
    end
    if node.kind and all.kind and node.kind ~= all.kind then
        refuse("--gpus and --gpus-per-node name different types")
    end
    if task.n and not in_all then
        in_all, kind = task.n * (number_of(job.num_tasks, 32) or nodes or 1), kind or task.kind
    end
    if per_node and in_all then
        nodes = divide(in_all, per_node, "--gpus with --gpus-per-node")
    elseif in_all and nodes then
        per_node = divide(in_all, nodes, "--gpus with --nodes")
    elseif not in_all then
        per_node, nodes = per_node or 1, nodes or 1
    end
    local gres = string.format("%s:%s%d", node.shards and "shard" or "gpu", kind and kind .. ":" or "",
        node.shards or per_node or in_all)
    return gres, nodes
end

-- Slurm clears a text by "", not by nil.
local function request_clear(job)
    for _, field in ipairs({ "tres_per_node", "tres_per_job", "gres" }) do
        if text_of(job[field]) then
            job[field] = ""
        end
    end
    if text_of(job.tres_per_task) then
        job.tres_per_task = gpus_of(job.tres_per_task, "--gpus-per-task").others
    end
end

-- ---- what cannot be steered ----

local function refuse_unsteerable(job)
    if not text_of(job.script) then
        refuse("this partition takes batch jobs only: use sbatch, not srun or salloc")
    end
    if number_of(job.het_job_offset, 32) then
        refuse("heterogeneous jobs cannot be placed by GOGH: submit their parts one by one")
    end
    if number_of(job.requeue, 16) == 0 then
        refuse("--no-requeue: GOGH moves jobs by requeueing them; leave it out (checkpoint=none " ..
            "after 'gogh:' says that there is nothing to save)")
    end
    if number_of(job.shared, 16) == 0 then
        refuse("--exclusive: whole nodes cannot be had here; exclusive=yes after 'gogh:' gives a " ..
            "GPU without neighbours")
    end
    local never = {
        { "req_nodes", "--nodelist", "types=v100,a100 after 'gogh:' says which GPUs will do" },
        { "exc_nodes", "--exclude", "types=v100,a100 after 'gogh:' says which GPUs will do" },
        { "features", "--constraint", "types=v100,a100 after 'gogh:' says which GPUs will do" },
        { "dependency", "--dependency", "submit it when the other has ended" },
        { "reservation", "--reservation", "use another partition" },
        { "licenses", "--licenses", "use another partition" },
        { "burst_buffer", "--bb", "use another partition" },
        { "cpus_per_tres", "--cpus-per-gpu", "say --cpus-per-task" },
        { "mem_per_tres", "--mem-per-gpu", "say --mem" },
    }
    for _, field in ipairs(never) do
        if text_of(job[field[1]]) then
            refuse("%s: GOGH chooses when and where in this partition; %s", field[2], field[3])
        end
    end
    local begin = number_of(job.begin_time, 32)
    if begin and begin > os.time() + 1 then
        refuse("--begin: GOGH chooses when; submit it then, or say --hold and 'gogh release' it")
    end
end

-- ---- submit ----

-- A job that GOGH itself submits, as its owner: it has all it needs. Read in the same way by the
-- daemon: what is not to the letter is somebody else's.
local hex = "[%da-f]"
local token_form = "^gogh: token=" .. hex:rep(16) .. "%-(%d+)"

local function is_from_gogh(job)
    local text = text_of(job.comment) or ""
    local number = text:match(token_form .. "$") or text:match(token_form .. "%-" .. hex:rep(4) .. "$")

    return number ~= nil and #number <= 10 and tonumber(number) <= 2147483647
end

local function submit(job, is_with_others)
    if is_with_others then
        refuse("partition %s: GOGH's partition cannot be named with others; name it alone",
            job.partition)
    end
    refuse_unsteerable(job)
    if is_from_gogh(job) then
        request_clear(job)
        job.priority = 0
        job.requeue = 1
        return
    end
    local gres, nodes = request_of(job)
    local comment = comment_with_script(text_of(job.comment), job.script, nodes)
    local secret = secret_new()

    request_clear(job)
    if comment then
        job.comment = comment
    end
    job.admin_comment = string.format("gogh1 new gres=%s%s held=%s secret=%s", gres,
        nodes and string.format(" nodes=%d", nodes) or "",
        number_of(job.priority, 32) == 0 and "yes" or "no", secret)
    job.priority = 0
    job.requeue = 1
    job.environment.GOGH_SECRET = secret
    if settings.reports ~= "" then
        local is_whole = settings.reports:match("^udp:") or settings.reports:match("^unix:")
        job.environment.GOGH_REPORTS = (is_whole and "" or "udp:") .. settings.reports
    end
end

-- ---- modify ----

local function refuse_change(job, record)
    local priority = tonumber(job.priority)    -- infinite is what 'scontrol release' says

    if priority == 0 and number_of(record.priority, 32) == 0 then
        refuse("GOGH keeps it until it has a place for it; 'gogh hold JOB' keeps GOGH from starting it " ..
            "('gogh jobs' lists yours)")
    elseif priority ~= nil and priority ~= 0 and priority ~= 4294967294 then
        refuse("GOGH releases jobs of this partition when it has placed them; 'gogh release JOB' " ..
            "takes back a hold of yours, 'gogh explain JOB' says why it waits ('gogh jobs' lists yours)")
    end
    local nice = tonumber(job.nice)
    if nice ~= nil and nice ~= 4294967294 then
        refuse("GOGH places this job, so its nice value cannot be changed (Slurm would release it); " ..
            "priority=N after 'gogh:' says at submission what goes first")
    end
    local never = {
        { "req_nodes", "its nodes" }, { "exc_nodes", "its nodes" },
        { "gres", "its GPUs" }, { "tres_per_node", "its GPUs" }, { "tres_per_job", "its GPUs" },
        { "tres_per_task", "its GPUs" }, { "tres_per_socket", "its GPUs" },
        { "features", "its features" }, { "partition", "its partition" },
        { "dependency", "what it waits for" }, { "reservation", "its reservation" },
        { "admin_comment", "its admin comment" }, { "comment", "its comment" },
    }
    for _, field in ipairs(never) do
        if job[field[1]] ~= nil then
            refuse("GOGH places this job, so %s cannot be changed: scancel it and submit it anew",
                field[2])
        end
    end
    if number_of(job.min_nodes, 32) or number_of(job.max_nodes, 32) or number_of(job.requeue, 16) then
        refuse("GOGH places this job, so its nodes cannot be changed: scancel it and submit it anew")
    end
end

-- What came past the gate would have neither hold nor note: not even an operator brings it in.
local function modify(job, record, uid)
    local to = gogh_partition(text_of(job.partition))

    if to and not gogh_partition(text_of(record.partition)) then
        refuse("a job cannot be moved into partition %s: scancel it and submit it there", to)
    end
    if not is_operator(uid) then
        refuse_change(job, record)
    end
end

-- ---- for slurmctld ----

-- Run 'f'; 'no' is for slurmctld where it refuses. Why is told the user (of changes, from Slurm 23.02 on;
-- before, slurmctld's log has it). Where 'f' fails, too: a script that fails lets jobs through,
-- unheld, and these must not pass.
local function guarded(no, f, ...)
    local ok, why = pcall(f, ...)

    if ok then
        return slurm.SUCCESS
    end
    if type(why) == "table" and why.gogh then
        slurm.log_user("gogh: %s", why.gogh)
    else
        slurm.log_error("gogh: job_submit.lua failed: %s", tostring(why))
        slurm.log_user("gogh: the gate failed, so this job cannot be taken; tell your " ..
            "administrator: %s", tostring(why))
    end
    return no
end

function gogh_job_submit(job, partitions, uid)
    local named, several = gogh_partition(partition_of(job, partitions))

    if not named then
        return slurm.SUCCESS
    end
    return guarded(slurm.ERROR, submit, job, several)
end

function gogh_job_modify(job, record, partitions, uid)
    if not gogh_partition(text_of(record.partition)) and not gogh_partition(text_of(job.partition)) then
        return slurm.SUCCESS
    end
    return guarded(slurm.ESLURM_ACCESS_DENIED or slurm.ERROR, modify, job, record, uid)
end

function slurm_job_submit(job, partitions, uid)
    local rc = site_submit and site_submit(job, partitions, uid) or slurm.SUCCESS

    if rc ~= slurm.SUCCESS then
        return rc
    end
    return gogh_job_submit(job, partitions, uid)
end

function slurm_job_modify(job, record, partitions, uid)
    local rc = site_modify and site_modify(job, record, partitions, uid) or slurm.SUCCESS

    if rc ~= slurm.SUCCESS then
        return rc
    end
    return gogh_job_modify(job, record, partitions, uid)
end

slurm.log_info("gogh: the gate is in place for partition %s", table.concat(settings.partitions, ", "))
return slurm.SUCCESS
