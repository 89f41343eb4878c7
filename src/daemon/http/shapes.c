#include "daemon/http/shapes.h"

#include <stddef.h>

/* One line a field. What an answer may lack is null there, so the fields of answers are all
 * required; NONE marks those that may be null.
 */
#define MAY .is_required = false
#define MUST .is_required = true
#define NULLABLE .may_be_null = true
#define NONE .is_required = true, NULLABLE
#define FIELD(n, t, text, ...)                                 \
    {                                                          \
        .name = (n), .type = (t), .about = (text), __VA_ARGS__ \
    }
#define FIELDS(...)        \
    (const struct field[]) \
    {                      \
        __VA_ARGS__,       \
        {                  \
            0              \
        }                  \
    }

#define NAME_MAX_BYTES .low = 1, .high = 200
#define JOB_MAX .low = 0, .high = 2147483647

static const char *const states[] = { "waiting", "held",      "running", "finished",
                                      "failed",  "cancelled", NULL };
static const char *const kinds[] = { "training", "inference", NULL };
static const char *const all_kinds[] = { "training", "inference", "service", "replica", NULL };
static const char *const serving_states[] = { "waiting", "starting", "serving",
                                              "held",    "ended",    NULL };
static const char *const replica_states[] = { "waiting", "starting", "ready", "draining", NULL };
static const char *const sources[] = { "careful", "metrics", "replay", NULL };
static const char *const promises[] = { "none", "kept", "short", "unknown", NULL };
static const char *const signals[] = { "TERM", "USR1", "none", NULL };
static const char *const groups[] = { "owner", "workload", "gpu_type", NULL };
static const char *const node_states[] = { "up", "drained", "down", NULL };
static const char *const modes[] = { "active", "shadow", NULL };
static const char *const doings[] = { "start", "stay", "move", "stop", "wait", "limit", NULL };

/* clang-format off */

/* ---- parameters ---- */

const struct schema schema_job_query = { "JobQuery", FIELDS(
    FIELD("state", FIELD_TEXT, "only jobs in this state", .words = states),
    FIELD("owner", FIELD_TEXT, "only jobs of this owner", NAME_MAX_BYTES),
    FIELD("after", FIELD_WHOLE, "only jobs with a larger id", .low = -1, .high = 2147483647),
    FIELD("limit", FIELD_WHOLE, "at most so many in one answer", .low = 1, .high = PAGE_MAX)
) };

#define JOB_ID FIELD("id", FIELD_TEXT, "the job's id or name", MUST, NAME_MAX_BYTES)
const struct schema schema_job_ref = { "JobRef", FIELDS(JOB_ID) };

const struct schema schema_explain_query = { "ExplainQuery", FIELDS(
    JOB_ID,
    FIELD("at", FIELD_TIME, "the newest decision no later than this; the newest of all", MAY)
) };

const struct schema schema_service_query = { "ServiceQuery", FIELDS(
    FIELD("ended", FIELD_FLAG, "also those that have ended", MAY),
    FIELD("after", FIELD_WHOLE, "only services with a larger id", .low = -1, .high = 2147483647),
    FIELD("limit", FIELD_WHOLE, "at most so many in one answer", .low = 1, .high = PAGE_MAX)
) };

const struct schema schema_node_ref = { "NodeRef", FIELDS(
    FIELD("name", FIELD_TEXT, "the node's name", MUST, NAME_MAX_BYTES)
) };

const struct schema schema_page_query = { "PageQuery", FIELDS(
    FIELD("after", FIELD_WHOLE, "go on behind this one: 'next' of the answer before", .low = -1,
          .high = 2147483647),
    FIELD("limit", FIELD_WHOLE, "at most so many in one answer", .low = 1, .high = PAGE_MAX)
) };

const struct schema schema_measurement_query = { "MeasurementQuery", FIELDS(
    FIELD("workload", FIELD_TEXT, "only of this workload", NAME_MAX_BYTES),
    FIELD("gpu", FIELD_TEXT, "only on this GPU type", NAME_MAX_BYTES),
    FIELD("limit", FIELD_WHOLE, "at most so many, the newest cells first; 1000", .low = 1,
          .high = PAGE_MAX)
) };

const struct schema schema_estimate_query = { "EstimateQuery", FIELDS(
    FIELD("workload", FIELD_TEXT, "the workload's full name", MUST, NAME_MAX_BYTES),
    FIELD("gpu", FIELD_TEXT, "only on this GPU type", NAME_MAX_BYTES),
    FIELD("beside", FIELD_TEXT, "sharing a GPU with this workload; alone", NAME_MAX_BYTES)
) };

#define PERIOD                                                                     \
    FIELD("from", FIELD_TIME, "begin of the period; 30 days before its end", MAY), \
        FIELD("to", FIELD_TIME, "its end; now", MAY)
const struct schema schema_period_query = { "PeriodQuery", FIELDS(PERIOD) };

const struct schema schema_report_query = { "ReportQuery", FIELDS(
    PERIOD,
    FIELD("by", FIELD_TEXT, "what the rows are; owner", .words = groups)
) };

const struct schema schema_event_query = { "EventQuery", FIELDS(
    FIELD("after", FIELD_WHOLE, "events behind this sequence number; from now on", .low = -1,
          .high = 9007199254740992.0),
    FIELD("job", FIELD_TEXT, "only of this job: its id or name", NAME_MAX_BYTES)
) };

/* ---- bodies ---- */

/* Ranges are workload_set's, which says them in its errors. */
#define FEATURES                                                                                 \
    FIELD("batch", FIELD_WHOLE, "samples a step", NULLABLE, .low = 1, .high = 10000000),         \
    FIELD("family", FIELD_TEXT, "what generalises to other batch sizes", NULLABLE, .high = 200), \
    FIELD("task", FIELD_TEXT, "as image-classification", NULLABLE, .high = 200),                 \
    FIELD("dataset", FIELD_TEXT, "as ImageNet", NULLABLE, .high = 200),                          \
    FIELD("params", FIELD_NUMBER, "trainable parameters", NULLABLE),                             \
    FIELD("flop_per_sample", FIELD_NUMBER, "FLOP, forward and backward", NULLABLE),              \
    FIELD("bytes_per_sample", FIELD_NUMBER, "device memory traffic, bytes", NULLABLE),           \
    FIELD("kernels_per_step", FIELD_NUMBER, "kernel launches", NULLABLE),                        \
    FIELD("cpu_ms_per_sample", FIELD_NUMBER, "host work, ms", NULLABLE),                         \
    FIELD("cpu_ms_per_step", FIELD_NUMBER, "host work, ms", NULLABLE),                           \
    FIELD("conv", FIELD_NUMBER, "convolutions dominate, 0 to 1", NULLABLE),                      \
    FIELD("gemm", FIELD_NUMBER, "matrix products dominate, 0 to 1", NULLABLE),                   \
    FIELD("rnn", FIELD_NUMBER, "recurrences dominate, 0 to 1", NULLABLE),                        \
    FIELD("sparse", FIELD_NUMBER, "sparse lookups dominate, 0 to 1", NULLABLE),                  \
    FIELD("gpu_activity", FIELD_NUMBER, "alone: share of time in kernels, 0 to 1", NULLABLE),    \
    FIELD("mem_activity", FIELD_NUMBER, "alone: share of time at memory, 0 to 1", NULLABLE),     \
    FIELD("solo_watts", FIELD_NUMBER, "alone: watts of the GPU", NULLABLE),                      \
    FIELD("mem_used_bytes", FIELD_NUMBER, "alone: device memory in use", NULLABLE),              \
    FIELD("precision", FIELD_TEXT, "fp32, tf32, fp16 (bf16, mixed), fp8, int8", NULLABLE,        \
          .high = 15),                                                                           \
    FIELD("needs_capability", FIELD_NUMBER, "lowest compute capability, as 8.6 or 86", NULLABLE)

const struct schema schema_descriptor = { "Descriptor", FIELDS(
    FIELD("name", FIELD_TEXT, "the model's name", MUST, NAME_MAX_BYTES),
    FIELD("inference", FIELD_FLAG, "forward only", MAY),
    FEATURES
) };

const struct schema schema_submit = { "Submission", FIELDS(
    FIELD("name", FIELD_TEXT, "unique among live jobs; made up where absent", NAME_MAX_BYTES),
    FIELD("workload", FIELD_TEXT, "what it runs: a name of the catalog, or a built-in model",
          NAME_MAX_BYTES),
    FIELD("batch", FIELD_WHOLE, "samples a step", .low = 1, .high = 10000000),
    FIELD("precision", FIELD_TEXT, "fp32, tf32, fp16 (bf16, mixed), fp8, int8", .low = 1,
          .high = 15),
    FIELD("descriptor", FIELD_OBJECT, "or the workload described", .of = &schema_descriptor),
    FIELD("new_workload", FIELD_FLAG, "the name is no slip of one that is known", MAY),
    FIELD("kind", FIELD_TEXT, "inference where there is a rate, else training", .words = kinds),
    FIELD("steps", FIELD_NUMBER, "training: how many", .low = 1e-9, .high = 1e15),
    FIELD("rate", FIELD_NUMBER, "inference: steps/s asked of it; a service: requests/s",
          .low = 1e-9, .high = 1e9),
    FIELD("duration_s", FIELD_NUMBER, "inference: seconds from its first start", .low = 1e-3,
          .high = 1e10),
    FIELD("min_throughput", FIELD_NUMBER, "the promise, steps/s", .low = 0, .high = 1e9),
    FIELD("deadline", FIELD_TIME, "the promise as a time; needs steps", NULLABLE),
    FIELD("gpus", FIELD_WHOLE, "the gang, all at once; 1", .low = 1, .high = 4096),
    FIELD("max_gpus", FIELD_WHOLE, "and at most so many; gpus, of a service 8", .low = 1,
          .high = 4096),
    FIELD("priority", FIELD_WHOLE, "higher goes first; 0", .low = -1000000, .high = 1000000),
    FIELD("urgency", FIELD_NUMBER, "its time is worth so many times delay_w; 1", .low = 0.01,
          .high = 100),
    FIELD("exclusive", FIELD_FLAG, "shares its GPUs with nobody", MAY),
    FIELD("one_node", FIELD_FLAG, "the gang stands on one node", MAY),
    FIELD("nodes", FIELD_WHOLE, "the gang stands on so many nodes, as many GPUs on each", .low = 1,
          .high = 4096),
    FIELD("types", FIELD_TEXTS, "GPU types it may use; any", .low = 0, .high = 64),
    FIELD("hold", FIELD_FLAG, "do not start it until it is released", MAY),
    FIELD("owner", FIELD_TEXT, "for whom, with the scope operate", NAME_MAX_BYTES),
    FIELD("argv", FIELD_TEXTS, "a program and its arguments", MUST, .low = 1, .high = 65536),
    FIELD("cwd", FIELD_TEXT, "working directory from the root; the owner's home", .low = 1,
          .high = 4096),
    FIELD("env", FIELD_MAP, "its environment", .low = 0, .high = 65536),
    FIELD("stdout", FIELD_TEXT, "file for its output", .low = 1, .high = 4096),
    FIELD("stderr", FIELD_TEXT, "file for its errors", .low = 1, .high = 4096),
    FIELD("timeout_s", FIELD_NUMBER, "a run that takes longer is ended", .low = 1e-3, .high = 1e10),
    FIELD("retries", FIELD_WHOLE, "how often a bad end is tried again; 0", .low = 0,
          .high = 1000000),
    FIELD("checkpoint_signal", FIELD_TEXT, "how a move is announced; TERM", .words = signals),
    FIELD("grace_s", FIELD_NUMBER, "seconds it may take to save", .low = 0, .high = 86400),
    FIELD("cpus", FIELD_WHOLE, "CPUs of its node that it takes for each GPU; 0", .low = 0,
          .high = 100000),
    FIELD("mem_mib", FIELD_WHOLE, "MiB of its node's memory, likewise; 0", .low = 0,
          .high = 1 << 30),
    FIELD("service", FIELD_FLAG, "it serves requests until it is cancelled (docs/services.md)",
          MAY),
    FIELD("p99_s", FIELD_NUMBER, "service: 99 of 100 requests are answered within", .low = 1e-4,
          .high = 3600),
    FIELD("ttft_s", FIELD_NUMBER, "service, in place of p99_s: seconds to the first token",
          .low = 1e-4, .high = 3600),
    FIELD("tpot_s", FIELD_NUMBER, "and of each further one", .low = 1e-5, .high = 3600),
    FIELD("max_batch", FIELD_WHOLE, "service: requests that are answered at once; 32", .low = 1,
          .high = 65536),
    FIELD("load_time_s", FIELD_NUMBER, "service: from a start until it is ready; 120, then as seen",
          .low = 1e-3, .high = 3600),
    FIELD("no_move", FIELD_FLAG, "service: no replica is moved to save energy", MAY),
    FIELD("probe", FIELD_TEXT, "service: path that answers 200 when a replica is ready; it reports",
          .low = 1, .high = 1000),
    FIELD("metrics", FIELD_TEXT, "service: path of its Prometheus metrics; it reports", .low = 1,
          .high = 1000)
) };

const struct schema schema_scale = { "Scale", FIELDS(
    FIELD("rate", FIELD_NUMBER, "requests/s to be ready for at first; as it was", .low = 1e-9,
          .high = 1e9),
    FIELD("max_gpus", FIELD_WHOLE, "replicas at most; as it was", .low = 1, .high = 64)
) };

static const struct schema schema_observation = { "Observation", FIELDS(
    FIELD("workload", FIELD_TEXT, "a workload of the catalog", MUST, NAME_MAX_BYTES),
    FIELD("gpu", FIELD_TEXT, "the GPU type", MUST, NAME_MAX_BYTES),
    FIELD("beside", FIELD_TEXT, "the workload that shared the GPU; none", NULLABLE,
          NAME_MAX_BYTES),
    FIELD("gpus", FIELD_WHOLE, "size of the gang; 1", .low = 1, .high = 65535),
    FIELD("spread", FIELD_FLAG, "the gang stood on several nodes", MAY),
    FIELD("limit_w", FIELD_WHOLE, "power limit in force; the default", .low = 0, .high = 65535),
    FIELD("unfit", FIELD_FLAG, "it ran out of GPU memory", MAY),
    FIELD("throughput", FIELD_NUMBER, "steps/s", NULLABLE, .low = 1e-12, .high = 1e12),
    FIELD("watts", FIELD_NUMBER, "of the whole GPU", NULLABLE, .low = 1e-3, .high = 1e6),
    FIELD("time", FIELD_TIME, "when; now", MAY),
    FIELD("duration_s", FIELD_NUMBER, "over how long", NULLABLE, .low = 0, .high = 1e10),
    FIELD("noise", FIELD_NUMBER, "sd of ln throughput; 0.05", NULLABLE, .low = 0,
          .high = 10)
) };

const struct schema schema_observations = { "Observations", FIELDS(
    FIELD("measurements", FIELD_LIST, "what was measured", MUST, .of = &schema_observation,
          .low = 1, .high = MEASUREMENTS_MAX)
) };

static const struct schema schema_program = { "Program", FIELDS(
    FIELD("workload", FIELD_TEXT, "what it runs, as in a submission", MUST, NAME_MAX_BYTES),
    FIELD("batch", FIELD_WHOLE, "samples a step", .low = 1, .high = 10000000),
    FIELD("precision", FIELD_TEXT, "fp32, tf32, fp16 (bf16, mixed), fp8, int8", .low = 1,
          .high = 15),
    FIELD("new_workload", FIELD_FLAG, "the name is no slip of one that is known", MAY)
) };

static const struct schema schema_target = { "CommissionTarget", FIELDS(
    FIELD("gpu", FIELD_TEXT, "the GPU type", MUST, NAME_MAX_BYTES),
    FIELD("workload", FIELD_TEXT, "the workload's full name", MUST, NAME_MAX_BYTES),
    FIELD("beside", FIELD_TEXT, "sharing the GPU with this workload; alone", NULLABLE,
          NAME_MAX_BYTES)
) };

const struct schema schema_commission_ask = { "CommissionQuestion", FIELDS(
    FIELD("programs", FIELD_LIST, "what could be run", MUST, .of = &schema_program, .low = 0,
          .high = PROGRAMS_MAX),
    FIELD("pairs", FIELD_WHOLE, "name at most so many measurements; 10", .low = 0, .high = 50),
    FIELD("own", FIELD_FLAG, "the programs are what the site runs, not benchmarks", MAY),
    FIELD("targets", FIELD_LIST, "what is to be known; as jobs and measurements suggest",
          .of = &schema_target, .low = 1, .high = TARGETS_MAX)
) };

/* ---- jobs ---- */

#define JOB_FIELDS                                                                               \
    FIELD("id", FIELD_WHOLE, "counted from 0", MUST, JOB_MAX),                                   \
        FIELD("name", FIELD_TEXT, "unique among live jobs", MUST),                               \
        FIELD("owner", FIELD_TEXT, "whose it is", NONE),                                         \
        FIELD("state", FIELD_TEXT, "where it stands", MUST, .words = states),                    \
        FIELD("kind", FIELD_TEXT, "what it is", MUST, .words = all_kinds),                       \
        FIELD("workload", FIELD_TEXT, "what it runs", MUST),                                     \
        FIELD("n_gpus", FIELD_WHOLE, "the gang", MUST),                                          \
        FIELD("max_gpus", FIELD_WHOLE, "and at most", MUST),                                     \
        FIELD("priority", FIELD_WHOLE, "higher goes first", MUST),                               \
        FIELD("urgency", FIELD_NUMBER, "its time is worth so many times delay_w", MUST),         \
        FIELD("exclusive", FIELD_FLAG, "shares its GPUs with nobody", MUST),                     \
        FIELD("one_node", FIELD_FLAG, "the gang stands on one node", MUST),                      \
        FIELD("nodes", FIELD_WHOLE, "on so many nodes, as many GPUs on each", NONE),             \
        FIELD("types", FIELD_TEXTS, "GPU types it may use; empty: any", MUST),                   \
        FIELD("steps", FIELD_NUMBER, "to do", NONE),                                             \
        FIELD("rate", FIELD_NUMBER, "steps/s asked of it; a service: requests/s", NONE),         \
        FIELD("duration_s", FIELD_NUMBER, "for how long", NONE),                                 \
        FIELD("min_throughput", FIELD_NUMBER, "the promise, steps/s; 0: none", MUST),            \
        FIELD("deadline_s", FIELD_NUMBER, "the promise as a time", NONE),                        \
        FIELD("gpus", FIELD_TEXTS, "where it runs, as box/0", MUST),                             \
        FIELD("gpu_type", FIELD_TEXT, "the type of these", NONE),                                \
        FIELD("limit_w", FIELD_WHOLE, "their power limit; 0: the default", MUST),                \
        FIELD("steps_done", FIELD_NUMBER, "as last heard", MUST),                                \
        FIELD("need", FIELD_NUMBER, "steps/s that keep the promise from now on; 0: none", MUST), \
        FIELD("speed", FIELD_NUMBER, "steps/s as reported", NONE),                               \
        FIELD("predicted", FIELD_NUMBER, "steps/s as estimated for this place", NONE),           \
        FIELD("predicted_low", FIELD_NUMBER, "its lower end", NONE),                             \
        FIELD("promise", FIELD_TEXT, "is it kept", MUST, .words = promises),                     \
        FIELD("watts", FIELD_NUMBER, "its part of its GPUs' draw", NONE),                        \
        FIELD("joules", FIELD_NUMBER, "its part so far", NONE),                                  \
        FIELD("submit_s", FIELD_NUMBER, "time", MUST),                                           \
        FIELD("started_s", FIELD_NUMBER, "time of its first start", NONE),                       \
        FIELD("ended_s", FIELD_NUMBER, "time", NONE),                                            \
        FIELD("changed_s", FIELD_NUMBER, "time of its last change of state", MUST),              \
        FIELD("waited_s", FIELD_NUMBER, "seconds until its first start", MUST),                  \
        FIELD("moves", FIELD_WHOLE, "how often it was moved", MUST),                             \
        FIELD("failures", FIELD_WHOLE, "runs that ended badly", MUST),                           \
        FIELD("reason", FIELD_TEXT, "why it waits, or how it failed", NONE),                     \
        FIELD("serving", FIELD_TEXT, "a service: how it stands", NONE, .words = serving_states), \
        FIELD("service", FIELD_WHOLE, "a replica: the id of its service", NONE),                 \
        FIELD("replica", FIELD_WHOLE, "and its number there", NONE),                             \
        FIELD("port", FIELD_WHOLE, "and where it serves", NONE)

const struct schema schema_job = { "Job", FIELDS(JOB_FIELDS) };

static const struct schema schema_job_reports = { "JobReports", FIELDS(
    FIELD("heard_s", FIELD_NUMBER, "time of the last report", NONE),
    FIELD("steps", FIELD_NUMBER, "cumulative, as it says", MUST)
) };

static const struct schema schema_command = { "Command", FIELDS(
    FIELD("argv", FIELD_TEXTS, "program and arguments", MUST),
    FIELD("cwd", FIELD_TEXT, "working directory", MAY),
    FIELD("env", FIELD_TEXTS, "names of variables; their values are not told", MAY),
    FIELD("uid", FIELD_WHOLE, "as whom", MAY),
    FIELD("gid", FIELD_WHOLE, "and with which group", MAY),
    FIELD("stdout", FIELD_TEXT, "as submitted", MAY),
    FIELD("stderr", FIELD_TEXT, "as submitted", MAY),
    FIELD("timeout_s", FIELD_NUMBER, "a run that takes longer is ended", MAY),
    FIELD("retries", FIELD_WHOLE, "how often a bad end is tried again", MAY),
    FIELD("checkpoint_signal", FIELD_TEXT, "how a move is announced", .words = signals),
    FIELD("grace_s", FIELD_NUMBER, "seconds it may take to save", MAY),
    FIELD("cpus", FIELD_WHOLE, "CPUs of its node that it takes for each GPU", MAY),
    FIELD("mem_mib", FIELD_WHOLE, "MiB of its node's memory, likewise", MAY)
) };

const struct schema schema_job_whole = { "JobWhole", FIELDS(
    JOB_FIELDS,
    FIELD("command", FIELD_OBJECT, "as submitted", NONE, .of = &schema_command),
    FIELD("run", FIELD_WHOLE, "its present or last run, counted from 0", NONE),
    FIELD("pid", FIELD_WHOLE, "of its process", NONE),
    FIELD("slurm_id", FIELD_WHOLE, "the Slurm job that it is", NONE),
    FIELD("dir", FIELD_TEXT, "the run's directory", NONE),
    FIELD("stdout", FIELD_TEXT, "where its output goes", NONE),
    FIELD("stderr", FIELD_TEXT, "where its errors go", NONE),
    FIELD("reports", FIELD_OBJECT, "what it says of itself", NONE, .of = &schema_job_reports)
) };

#define NEXT(what) FIELD("next", FIELD_WHOLE, "'after' for " what "; null: that was all", NONE)
const struct schema schema_jobs = { "Jobs", FIELDS(
    FIELD("jobs", FIELD_LIST, "by id", MUST, .of = &schema_job),
    FIELD("total", FIELD_WHOLE, "jobs that match", MUST),
    NEXT("more jobs")
) };

/* ---- services ---- */

static const struct schema schema_replica = { "Replica", FIELDS(
    FIELD("job", FIELD_WHOLE, "its id as a job", MUST),
    FIELD("name", FIELD_TEXT, "its name as a job", MUST),
    FIELD("replica", FIELD_WHOLE, "its number in the service, from 0", MUST),
    FIELD("gpu", FIELD_TEXT, "where it is, as box/0", MUST),
    FIELD("node", FIELD_TEXT, "on which node", MUST),
    FIELD("type", FIELD_TEXT, "of that GPU", MUST),
    FIELD("state", FIELD_TEXT, "how it stands", MUST, .words = replica_states),
    FIELD("weight", FIELD_NUMBER, "its part of all requests", MUST),
    FIELD("port", FIELD_WHOLE, "where it serves; 0: not known", MUST),
    FIELD("ready_s", FIELD_NUMBER, "time since when it takes requests", NONE)
) };

#define SERVICE_FIELDS                                                                           \
    FIELD("id", FIELD_WHOLE, "as a job", MUST, JOB_MAX),                                         \
        FIELD("name", FIELD_TEXT, "unique among live jobs", MUST),                               \
        FIELD("owner", FIELD_TEXT, "whose it is", NONE),                                         \
        FIELD("state", FIELD_TEXT, "serving: a replica is ready", MUST, .words = serving_states),\
        FIELD("workload", FIELD_TEXT, "what it runs", MUST),                                     \
        FIELD("promised_rate", FIELD_NUMBER, "requests/s that it was said to get", MUST),        \
        FIELD("p99_s", FIELD_NUMBER, "promised: 99 of 100 requests within", NONE),               \
        FIELD("ttft_s", FIELD_NUMBER, "or the first token within", NONE),                        \
        FIELD("tpot_s", FIELD_NUMBER, "and each further one", NONE),                             \
        FIELD("max_batch", FIELD_WHOLE, "requests that are answered at once", MUST),             \
        FIELD("max_gpus", FIELD_WHOLE, "replicas at most", MUST),                                \
        FIELD("no_move", FIELD_FLAG, "no replica is moved to save energy", MUST),                \
        FIELD("submit_s", FIELD_NUMBER, "time", MUST),                                           \
        FIELD("rate", FIELD_NUMBER, "requests/s that came in the last five minutes", NONE),      \
        FIELD("demand", FIELD_NUMBER, "requests/s that it is to be ready for", NONE),            \
        FIELD("capacity", FIELD_NUMBER, "requests/s that its ready replicas hold", MUST),        \
        FIELD("ready", FIELD_WHOLE, "replicas that take requests", MUST),                        \
        FIELD("starting", FIELD_WHOLE, "that will", MUST),                                       \
        FIELD("draining", FIELD_WHOLE, "that take no more", MUST),                               \
        FIELD("requests", FIELD_NUMBER, "answered since the daemon began", MUST),                \
        FIELD("late", FIELD_NUMBER, "of these after the promised time", MUST),                   \
        FIELD("late_share", FIELD_NUMBER, "late / requests", NONE),                              \
        FIELD("p99_seen_s", FIELD_NUMBER, "99 of 100 were within, where it is known", NONE),     \
        FIELD("watts", FIELD_NUMBER, "of its replicas now", MUST),                               \
        FIELD("joules", FIELD_NUMBER, "of all its replicas so far", MUST),                       \
        FIELD("joules_per_1000_requests", FIELD_NUMBER, "of these, and of all requests", NONE),  \
        FIELD("capacity_from", FIELD_TEXT, "how capacity is found", MUST, .words = sources),     \
        FIELD("hours", FIELD_WHOLE, "of arrivals that are replayed for it", MUST),               \
        FIELD("load_s", FIELD_NUMBER, "from a replica's start until it is ready", NONE),         \
        FIELD("failures", FIELD_WHOLE, "of replicas, in a row", MUST),                           \
        FIELD("heard_s", FIELD_NUMBER, "time of the last report", NONE),                         \
        FIELD("replicas", FIELD_LIST, "that are not over", MUST, .of = &schema_replica),         \
        FIELD("warnings", FIELD_TEXTS, "what is not as it should be", MUST),                     \
        FIELD("why", FIELD_TEXT, "as a sentence", MUST)

static const struct schema schema_service = { "Service", FIELDS(SERVICE_FIELDS) };

static const struct schema schema_place_neighbour = { "PlaceNeighbour", FIELDS(
    FIELD("workload", FIELD_TEXT, "that runs on such GPUs", MUST),
    FIELD("capacity", FIELD_NUMBER, "requests/s of a replica beside it; 0: refused", NONE),
    FIELD("verdict", FIELD_TEXT, "as a sentence", MUST)
) };

static const struct schema schema_place = { "Place", FIELDS(
    FIELD("type", FIELD_TEXT, "GPU type", MUST),
    FIELD("gpus", FIELD_WHOLE, "that are up", MUST),
    FIELD("free", FIELD_WHOLE, "of these with nobody on them", MUST),
    FIELD("replicas", FIELD_WHOLE, "of this service on them", MUST),
    FIELD("capacity", FIELD_NUMBER, "requests/s that a replica alone holds", NONE),
    FIELD("needed", FIELD_NUMBER, "replicas that would hold the demand", NONE),
    FIELD("watts", FIELD_NUMBER, "of such a GPU at work", NONE),
    FIELD("joules_per_1000_requests", FIELD_NUMBER, "where it is at its capacity", NONE),
    FIELD("verdict", FIELD_TEXT, "chosen, or why not", MUST),
    FIELD("beside", FIELD_LIST, "neighbours that it could have", MUST,
          .of = &schema_place_neighbour)
) };

const struct schema schema_service_whole = { "ServiceWhole", FIELDS(
    SERVICE_FIELDS,
    FIELD("places", FIELD_LIST, "by GPU type", MUST, .of = &schema_place)
) };

const struct schema schema_services = { "Services", FIELDS(
    FIELD("services", FIELD_LIST, "by id", MUST, .of = &schema_service),
    FIELD("total", FIELD_WHOLE, "services that match", MUST),
    NEXT("more services")
) };

static const struct schema schema_endpoint = { "Endpoint", FIELDS(
    FIELD("replica", FIELD_WHOLE, "its number in the service", MUST),
    FIELD("host", FIELD_TEXT, "where it is", MUST),
    FIELD("port", FIELD_WHOLE, "and serves", MUST),
    FIELD("weight", FIELD_NUMBER, "its part of all requests; they add up to 1", MUST),
    FIELD("state", FIELD_TEXT, "who is not ready has the weight 0", MUST, .words = replica_states)
) };

const struct schema schema_endpoints = { "Endpoints", FIELDS(
    FIELD("service", FIELD_TEXT, "its name", MUST),
    FIELD("id", FIELD_WHOLE, "and id", MUST),
    FIELD("version", FIELD_WHOLE, "grows with every change", MUST),
    FIELD("endpoints", FIELD_LIST, "of its replicas", MUST, .of = &schema_endpoint)
) };

static const struct schema schema_cost_parts = { "CostParts", FIELDS(
    FIELD("draw_w", FIELD_NUMBER, "more watts of the GPUs", MUST),
    FIELD("price_w", FIELD_NUMBER, "price of GPUs that nobody else uses", MUST),
    FIELD("work_w", FIELD_NUMBER, "what its steps are worth: below 0", MUST),
    FIELD("short_w", FIELD_NUMBER, "its promise", MUST),
    FIELD("neighbour_w", FIELD_NUMBER, "what neighbours lose", MUST),
    FIELD("move_w", FIELD_NUMBER, "the move", MUST),
    FIELD("wake_w", FIELD_NUMBER, "waking GPUs", MUST)
) };

static const struct schema schema_candidate = { "Candidate", FIELDS(
    FIELD("type", FIELD_TEXT, "GPU type", MUST),
    FIELD("n_gpus", FIELD_WHOLE, "so many of them", MUST),
    FIELD("gpu", FIELD_TEXT, "one of them", NONE),
    FIELD("beside", FIELD_TEXT, "the job that is there; null: alone", NONE),
    FIELD("beside_id", FIELD_WHOLE, "its id", NONE),
    FIELD("limit_w", FIELD_WHOLE, "under this power limit; 0: the default", MUST),
    FIELD("places", FIELD_WHOLE, "how many like this there are", MUST),
    FIELD("wake_s", FIELD_NUMBER, "seconds until these GPUs are awake", MAY),
    FIELD("speed", FIELD_NUMBER, "steps/s", NONE),
    FIELD("low", FIELD_NUMBER, "its lower end", NONE),
    FIELD("high", FIELD_NUMBER, "its upper end", NONE),
    FIELD("watts", FIELD_NUMBER, "the GPUs' draw", NONE),
    FIELD("added_w", FIELD_NUMBER, "of these by this job", NONE),
    FIELD("joules", FIELD_NUMBER, "until its work is done", NONE),
    FIELD("cost_w", FIELD_NUMBER, "what the plan costs more with the job there", NONE),
    FIELD("parts", FIELD_OBJECT, "of that, in watts", NONE, .of = &schema_cost_parts),
    FIELD("counted_on", FIELD_NUMBER, "factor of the speed that was counted on", MAY),
    FIELD("hope_w", FIELD_NUMBER, "what it would cost more if only belief counted", MAY),
    FIELD("margin", FIELD_NUMBER, "low / need - 1", NONE),
    FIELD("kept", FIELD_NUMBER, "chance that its promise holds there", MAY),
    FIELD("neighbour_speed", FIELD_NUMBER, "what is left to the neighbour, as a part", NONE),
    FIELD("neighbour_keeps", FIELD_FLAG, "its promise", NONE),
    FIELD("verdict", FIELD_TEXT, "chosen, or why not", MUST)
) };

const struct schema schema_explain = { "Explanation", FIELDS(
    FIELD("job", FIELD_WHOLE, "its id", MUST),
    FIELD("name", FIELD_TEXT, "its name", MUST),
    FIELD("time_s", FIELD_NUMBER, "of the decision", MUST),
    FIELD("made_by", FIELD_TEXT, "the policy", MUST),
    FIELD("gap_w", FIELD_NUMBER, "watts that its plan is at most from the best; null: not known",
          NONE),
    FIELD("gap_ratio", FIELD_NUMBER, "the same, of all that it costs", NONE),
    FIELD("gap_varying_ratio", FIELD_NUMBER, "the same, of what plans can change", NONE),
    FIELD("state", FIELD_TEXT, "running or waiting, by that decision", MUST),
    FIELD("gpus", FIELD_TEXTS, "where", MUST),
    FIELD("reason", FIELD_TEXT, "why it waits", NONE),
    FIELD("wait_w", FIELD_NUMBER, "what waiting costs", NONE),
    FIELD("may_start_s", FIELD_NUMBER, "time when a place is expected to be free", NONE),
    FIELD("waits_for", FIELD_TEXT, "the job whose end that is", NONE),
    FIELD("waits_for_id", FIELD_WHOLE, "its id", NONE),
    FIELD("need", FIELD_NUMBER, "steps/s", MUST),
    FIELD("z", FIELD_NUMBER, "standard deviations between speed and low", MUST),
    FIELD("left_out", FIELD_WHOLE, "candidates beyond those told", MUST),
    FIELD("candidates", FIELD_LIST, "best first", MUST, .of = &schema_candidate)
) };

/* ---- the plan ---- */

static const struct schema schema_plan_job = { "PlannedJob", FIELDS(
    FIELD("id", FIELD_WHOLE, "the job", MUST),
    FIELD("name", FIELD_TEXT, "its name", MUST),
    FIELD("does", FIELD_TEXT, "what would happen to it", MUST, .words = doings),
    FIELD("gpus", FIELD_TEXTS, "where it would run", MUST),
    FIELD("from", FIELD_TEXTS, "where it runs now", NONE),
    FIELD("type", FIELD_TEXT, "GPU type", NONE),
    FIELD("limit_w", FIELD_WHOLE, "power limit; 0: the default", MUST),
    FIELD("speed", FIELD_NUMBER, "predicted, steps/s", NONE),
    FIELD("low", FIELD_NUMBER, "its lower end", NONE),
    FIELD("need", FIELD_NUMBER, "steps/s", MUST),
    FIELD("short", FIELD_FLAG, "its lower end is below the promise", MUST),
    FIELD("kept", FIELD_NUMBER, "chance that the promise holds; null: there is none", NONE),
    FIELD("reason", FIELD_TEXT, "why it would wait", NONE)
) };

const struct schema schema_plan = { "Plan", FIELDS(
    FIELD("time_s", FIELD_NUMBER, "when it was asked", MUST),
    FIELD("made_by", FIELD_TEXT, "the policy", MUST),
    FIELD("seconds", FIELD_NUMBER, "how long it took", MUST),
    FIELD("fallback", FIELD_FLAG, "the greedy plan stands in", MUST),
    FIELD("why", FIELD_TEXT, "for the fallback", NONE),
    FIELD("watts", FIELD_NUMBER, "predicted draw of all GPUs", MUST),
    FIELD("gap_w", FIELD_NUMBER,
          "watts that it is at most from the best; null: the policy gives no bound", NONE),
    FIELD("gap_ratio", FIELD_NUMBER, "the same, of all that it costs", NONE),
    FIELD("gap_varying_ratio", FIELD_NUMBER, "the same, of what plans can change", NONE),
    FIELD("placed", FIELD_WHOLE, "jobs", MUST),
    FIELD("waiting", FIELD_WHOLE, "jobs", MUST),
    FIELD("behind", FIELD_WHOLE, "jobs too far back in the queue to be looked at", MUST),
    FIELD("short", FIELD_WHOLE, "jobs with a named shortfall", MUST),
    FIELD("z", FIELD_NUMBER, "standard deviations between speed and low", MUST),
    FIELD("delay_w", FIELD_NUMBER, "as of /v1/status", MUST),
    FIELD("jobs", FIELD_LIST, "each of them", MUST, .of = &schema_plan_job)
) };

/* ---- nodes and GPUs ---- */

const struct schema schema_node = { "Node", FIELDS(
    FIELD("name", FIELD_TEXT, "its name", MUST),
    FIELD("state", FIELD_TEXT, "drained: what runs goes on, nothing new starts", MUST,
          .words = node_states),
    FIELD("gpus", FIELD_WHOLE, "how many", MUST),
    FIELD("busy", FIELD_WHOLE, "of these with a job", MUST),
    FIELD("types", FIELD_TEXTS, "as k80:2", MUST)
) };

const struct schema schema_nodes = { "Nodes", FIELDS(
    FIELD("nodes", FIELD_LIST, "all of them", MUST, .of = &schema_node)
) };

static const struct schema schema_resident = { "Resident", FIELDS(
    FIELD("id", FIELD_WHOLE, "the job", MUST),
    FIELD("name", FIELD_TEXT, "its name", MUST)
) };

static const struct schema schema_gpu = { "Gpu", FIELDS(
    FIELD("gpu", FIELD_TEXT, "as box/0", MUST),
    FIELD("node", FIELD_TEXT, "the node", MUST),
    FIELD("slot", FIELD_WHOLE, "its place there", MUST),
    FIELD("type", FIELD_TEXT, "GPU type", MUST),
    FIELD("title", FIELD_TEXT, "as its maker has it", NONE),
    FIELD("sharing", FIELD_TEXT, "how jobs share it: exclusive, timeslice, mps, mig", NONE),
    FIELD("jobs", FIELD_LIST, "on it", MUST, .of = &schema_resident),
    FIELD("watts", FIELD_NUMBER, "its draw", NONE),
    FIELD("source", FIELD_TEXT, "who says so: nvml, rocm, dcgm, model", NONE),
    FIELD("joules", FIELD_NUMBER, "since the daemon began", NONE),
    FIELD("limit_w", FIELD_WHOLE, "power limit; 0: the default", MUST)
) };

const struct schema schema_gpus = { "Gpus", FIELDS(
    FIELD("gpus", FIELD_LIST, "by node and slot", MUST, .of = &schema_gpu),
    FIELD("total", FIELD_WHOLE, "of the cluster", MUST),
    NEXT("more GPUs")
) };

/* ---- the catalog ---- */

const struct schema schema_workload = { "Workload", FIELDS(
    FIELD("name", FIELD_TEXT, "the model and its batch", MUST),
    FIELD("inference", FIELD_FLAG, "forward only", MUST),
    FIELD("cells", FIELD_WHOLE, "places where it was measured", MUST),
    FEATURES
) };

const struct schema schema_workloads = { "Workloads", FIELDS(
    FIELD("workloads", FIELD_LIST, "in order of appearance", MUST, .of = &schema_workload),
    FIELD("total", FIELD_WHOLE, "of the catalog", MUST),
    NEXT("more workloads")
) };

static const struct schema schema_cell = { "Cell", FIELDS(
    FIELD("workload", FIELD_TEXT, "what was measured", MUST),
    FIELD("gpu", FIELD_TEXT, "on which GPU type", MUST),
    FIELD("beside", FIELD_TEXT, "sharing it with whom; null: alone", NONE),
    FIELD("gpus", FIELD_WHOLE, "size of the gang", MUST),
    FIELD("spread", FIELD_FLAG, "over several nodes", MUST),
    FIELD("limit_w", FIELD_WHOLE, "power limit; 0: the default", MUST),
    FIELD("campaign", FIELD_TEXT, "who measured it; 'site': this one", MUST),
    FIELD("measured", FIELD_WHOLE, "how often its speed was", MUST),
    FIELD("unfit", FIELD_WHOLE, "how often it did not fit", MUST),
    FIELD("throughput", FIELD_NUMBER, "steps/s, mean of all", NONE),
    FIELD("sd", FIELD_NUMBER, "of the mean's logarithm", NONE),
    FIELD("watts", FIELD_NUMBER, "of the whole GPU", NONE),
    FIELD("last_s", FIELD_NUMBER, "time of the newest", MUST)
) };

const struct schema schema_cells = { "Cells", FIELDS(
    FIELD("measurements", FIELD_LIST, "by cell, the newest cell first", MUST, .of = &schema_cell),
    FIELD("total", FIELD_WHOLE, "cells that match", MUST)
) };

const struct schema schema_taken = { "Taken", FIELDS(
    FIELD("taken", FIELD_WHOLE, "measurements taken in", MUST)
) };

static const struct schema schema_estimate = { "Estimate", FIELDS(
    FIELD("gpu", FIELD_TEXT, "GPU type", MUST),
    FIELD("beside", FIELD_TEXT, "sharing it with whom; null: alone", NONE),
    FIELD("speed", FIELD_NUMBER, "steps/s", MUST),
    FIELD("low", FIELD_NUMBER, "lower end of 90 %", MUST),
    FIELD("high", FIELD_NUMBER, "its upper end", MUST),
    FIELD("sd", FIELD_NUMBER, "of ln throughput", MUST),
    FIELD("unfit", FIELD_NUMBER, "chance that it does not fit", MUST),
    FIELD("watts", FIELD_NUMBER, "of the GPU with all on it", MUST),
    FIELD("slowdown", FIELD_NUMBER, "of the speed alone", MUST),
    FIELD("measured", FIELD_WHOLE, "how often it was", MUST)
) };

const struct schema schema_estimates = { "Estimates", FIELDS(
    FIELD("workload", FIELD_TEXT, "of which", MUST),
    FIELD("estimates", FIELD_LIST, "by GPU type", MUST, .of = &schema_estimate)
) };

static const struct schema schema_commission_pick = { "CommissionPick", FIELDS(
    FIELD("gpu", FIELD_TEXT, "the GPU type", MUST),
    FIELD("workload", FIELD_TEXT, "of one program", MUST),
    FIELD("beside", FIELD_TEXT, "and of the other; null: alone", NONE),
    FIELD("gain", FIELD_NUMBER, "by how much the mean sd of targets falls", MUST),
    FIELD("why", FIELD_TEXT, "as a sentence", MUST)
) };

static const struct schema schema_commission_belief = { "CommissionBelief", FIELDS(
    FIELD("gpu", FIELD_TEXT, "the GPU type", MUST),
    FIELD("workload", FIELD_TEXT, "of which", MUST),
    FIELD("beside", FIELD_TEXT, "beside whom; null: alone", NONE),
    FIELD("mean", FIELD_NUMBER, "alone steps/s, beside somebody the slowdown; as estimates", MUST),
    FIELD("sd", FIELD_NUMBER, "of its logarithm", MUST)
) };

const struct schema schema_commission = { "Commission", FIELDS(
    FIELD("measurements", FIELD_LIST, "those that teach most, best first", MUST,
          .of = &schema_commission_pick),
    FIELD("targets", FIELD_LIST, "what is to be known, as it is believed now", MUST,
          .of = &schema_commission_belief),
    FIELD("programs", FIELD_LIST, "the workloads of the programs, as asked", MUST,
          .of = &schema_workload),
    FIELD("unknown_types", FIELD_TEXTS, "left out: nobody knows their memory", MUST)
) };

/* ---- report and shadow ---- */

static const struct schema schema_shadow_run = { "ShadowRun", FIELDS(
    FIELD("policy", FIELD_TEXT, "its name", MUST),
    FIELD("finished", FIELD_WHOLE, "jobs", MUST),
    FIELD("energy_j", FIELD_NUMBER, "joules", MUST),
    FIELD("work_s", FIELD_NUMBER, "work done, in seconds alone on the reference GPU", MUST),
    FIELD("joules_per_work", FIELD_NUMBER, "energy_j / work_s", NONE),
    FIELD("promise_attainment", FIELD_NUMBER, "share of promises kept", NONE),
    FIELD("mean_jct_s", FIELD_NUMBER, "from submission to end", NONE)
) };

const struct schema schema_shadow = { "Shadow", FIELDS(
    FIELD("from_s", FIELD_NUMBER, "time", MUST),
    FIELD("to_s", FIELD_NUMBER, "time", MUST),
    FIELD("jobs", FIELD_WHOLE, "submitted in that period", MUST),
    FIELD("runs", FIELD_LIST, "under one policy and the other", MUST, .of = &schema_shadow_run),
    FIELD("saved", FIELD_NUMBER, "share of joules per work that the first saves", NONE),
    FIELD("measured_j", FIELD_NUMBER, "what was really used, as far as the store has it", MUST)
) };

static const struct schema schema_report_row = { "ReportRow", FIELDS(
    FIELD("name", FIELD_TEXT, "of an owner, workload or GPU type", MUST),
    FIELD("jobs", FIELD_WHOLE, "that used something", MUST),
    FIELD("joules", FIELD_NUMBER, "in all", MUST),
    FIELD("active_j", FIELD_NUMBER, "drawn above idle", MUST),
    FIELD("idle_j", FIELD_NUMBER, "parts of the idle draw", MUST),
    FIELD("gpu_s", FIELD_NUMBER, "GPU-seconds held", MUST),
    FIELD("steps", FIELD_NUMBER, "done", MUST),
    FIELD("promised_s", FIELD_NUMBER, "seconds with a promise", MUST),
    FIELD("kept_s", FIELD_NUMBER, "of these in which it was kept", MUST),
    FIELD("kept", FIELD_NUMBER, "kept_s / promised_s", NONE),
    FIELD("measured", FIELD_NUMBER, "speeds", MUST),
    FIELD("error", FIELD_NUMBER, "mean of |measured / believed - 1|", NONE),
    FIELD("coverage", FIELD_NUMBER, "share inside the believed 90 % interval", NONE)
) };

static const struct schema schema_report_hour = { "ReportHour", FIELDS(
    FIELD("hour_s", FIELD_NUMBER, "its beginning", MUST),
    FIELD("joules", FIELD_NUMBER, "in that hour", MUST),
    FIELD("kept", FIELD_NUMBER, "kept_s / promised_s", NONE),
    FIELD("error", FIELD_NUMBER, "mean of |measured / believed - 1|", NONE)
) };

static const struct schema schema_report_service = { "ReportService", FIELDS(
    FIELD("id", FIELD_WHOLE, "of the service", MUST),
    FIELD("name", FIELD_TEXT, "of the service", MUST),
    FIELD("owner", FIELD_TEXT, "whose it is", NONE),
    FIELD("requests", FIELD_NUMBER, "answered", MUST),
    FIELD("late", FIELD_NUMBER, "of these after the promised time", MUST),
    FIELD("late_share", FIELD_NUMBER, "late / requests", NONE),
    FIELD("hours", FIELD_WHOLE, "in which something was answered", MUST),
    FIELD("kept_hours", FIELD_WHOLE, "of these with at most 1 % late", MUST),
    FIELD("p99_s", FIELD_NUMBER, "99 of 100 were within, where it is known", NONE),
    FIELD("promised_p99_s", FIELD_NUMBER, "as promised; of language models the first token", MUST),
    FIELD("joules", FIELD_NUMBER, "of its replicas", MUST),
    FIELD("gpu_s", FIELD_NUMBER, "GPU-seconds held", MUST),
    FIELD("watts", FIELD_NUMBER, "mean over its life within the period", NONE),
    FIELD("joules_per_1000_requests", FIELD_NUMBER, "of both", NONE)
) };

const struct schema schema_report = { "Report", FIELDS(
    FIELD("from_s", FIELD_NUMBER, "time", MUST),
    FIELD("to_s", FIELD_NUMBER, "time", MUST),
    FIELD("by", FIELD_TEXT, "what the rows are", MUST, .words = groups),
    FIELD("total", FIELD_OBJECT, "of all rows", MUST, .of = &schema_report_row),
    FIELD("rows", FIELD_LIST, "most joules first", MUST, .of = &schema_report_row),
    FIELD("hours", FIELD_LIST, "in their order", MUST, .of = &schema_report_hour),
    FIELD("services", FIELD_LIST, "by id", MUST, .of = &schema_report_service),
    FIELD("saved", FIELD_OBJECT, "against the shadow policy", NONE, .of = &schema_shadow)
) };

/* ---- the daemon ---- */

#define COUNT(state) FIELD(state, FIELD_WHOLE, "how many are", MUST)
static const struct schema schema_job_counts = { "JobCounts", FIELDS(
    COUNT("waiting"), COUNT("held"), COUNT("running"), COUNT("finished"), COUNT("failed"),
    COUNT("cancelled")
) };

static const struct schema schema_slurm = { "Slurm", FIELDS(
    FIELD("up", FIELD_FLAG, "it answers", MUST),
    FIELD("trouble", FIELD_TEXT, "why it does not", NONE),
    FIELD("version", FIELD_TEXT, "Slurm's", NONE),
    FIELD("partition", FIELD_TEXT, "that GOGH steers", MUST),
    FIELD("seen_s", FIELD_NUMBER, "time of the last look at it", NONE),
    FIELD("calls", FIELD_WHOLE, "of its commands so far", MUST),
    FIELD("late", FIELD_WHOLE, "of these that had to be killed", MUST),
    FIELD("drivers", FIELD_WHOLE, "driver processes started so far", MUST),
    FIELD("resubmits", FIELD_WHOLE, "jobs that Slurm had lost", MUST),
    FIELD("strays", FIELD_WHOLE, "jobs with a token of ours that are not ours", MUST),
    FIELD("foreign", FIELD_WHOLE, "jobs of the partition that another store's GOGH has", MUST),
    FIELD("under_way", FIELD_WHOLE, "orders that are not carried out yet", MUST)
) };

const struct schema schema_status = { "Status", FIELDS(
    FIELD("version", FIELD_TEXT, "of the daemon", MUST),
    FIELD("pid", FIELD_WHOLE, "of its process", MUST),
    FIELD("began_s", FIELD_NUMBER, "time", MUST),
    FIELD("now_s", FIELD_NUMBER, "time", MUST),
    FIELD("ready", FIELD_FLAG, "as /readyz", MUST),
    FIELD("mode", FIELD_TEXT, "shadow: it places by shadow_policy, and our plans are only made",
          MUST, .words = modes),
    FIELD("policy", FIELD_TEXT, "who makes plans", MUST),
    FIELD("jobs", FIELD_OBJECT, "by state", MUST, .of = &schema_job_counts),
    FIELD("nodes", FIELD_WHOLE, "how many", MUST),
    FIELD("gpus", FIELD_WHOLE, "how many", MUST),
    FIELD("watts", FIELD_NUMBER, "of all GPUs", NONE),
    FIELD("joules", FIELD_NUMBER, "since it began", NONE),
    FIELD("delay_w", FIELD_NUMBER, "what the setting comes to: an hour of a job's time is worth "
          "delay_w / 1000 kWh", MUST),
    FIELD("decisions", FIELD_WHOLE, "since it began", MUST),
    FIELD("fallbacks", FIELD_WHOLE, "decisions by the greedy plan", MUST),
    FIELD("certified", FIELD_WHOLE, "decisions whose plan has a bound", MUST),
    FIELD("decision_s", FIELD_NUMBER, "seconds that the last one took", NONE),
    FIELD("gap_w", FIELD_NUMBER, "watts that the last plan with a bound is at most from the best",
          NONE),
    FIELD("gap_ratio", FIELD_NUMBER, "the same, of all that it costs", NONE),
    FIELD("gap_varying_ratio", FIELD_NUMBER, "the same, of what plans can change", NONE),
    FIELD("moves", FIELD_WHOLE, "since it began", MUST),
    FIELD("last_decision_s", FIELD_NUMBER, "time", NONE),
    FIELD("measurements", FIELD_WHOLE, "since it began", MUST),
    FIELD("error", FIELD_NUMBER, "mean of |measured / believed - 1|", NONE),
    FIELD("coverage", FIELD_NUMBER, "share inside the believed 90 % interval", NONE),
    FIELD("acting_w", FIELD_NUMBER, "shadow mode: predicted draw as it runs", NONE),
    FIELD("shadow_w", FIELD_NUMBER, "shadow mode: predicted draw of our plan", NONE),
    FIELD("store_ok", FIELD_FLAG, "the store takes what is written", MUST),
    FIELD("slurm", FIELD_OBJECT, "where Slurm runs the jobs", NONE, .of = &schema_slurm)
) };

const struct schema schema_health = { "Health", FIELDS(
    FIELD("ok", FIELD_FLAG, "the loop turns", MUST)
) };

const struct schema schema_ready = { "Ready", FIELDS(
    FIELD("ready", FIELD_FLAG, "runs are adopted and a plan was made", MUST)
) };
/* clang-format on */
