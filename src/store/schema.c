/* schema.c - the tables, as a list of steps from each version to the next.
 *
 * docs/formats/store.md says what the columns mean.
 */
#include "store/inner.h"

static const char version_1[] =
    "PRAGMA application_id = 1196377928;"    // STORE_APPLICATION_ID

    "CREATE TABLE meta ("
    " key TEXT NOT NULL PRIMARY KEY,"
    " value INTEGER NOT NULL"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE gpu_types ("
    " id INTEGER PRIMARY KEY,"
    " name TEXT NOT NULL UNIQUE,"
    " title TEXT,"
    " source TEXT,"
    " peak_fp32_flops REAL,"
    " peak_fp16_flops REAL,"
    " bandwidth_bytes_s REAL,"
    " mem_bytes REAL,"
    " launch_s REAL,"
    " idle_w REAL,"
    " sleep_w REAL,"
    " cap_w REAL,"
    " year INTEGER NOT NULL"
    ") STRICT;"

    "CREATE TABLE workloads ("
    " id INTEGER PRIMARY KEY,"
    " name TEXT NOT NULL UNIQUE,"
    " batch REAL,"
    " is_inference INTEGER NOT NULL,"
    " family TEXT,"
    " task TEXT,"
    " dataset TEXT,"
    " params REAL,"
    " flop_per_sample REAL,"
    " bytes_per_sample REAL,"
    " kernels_per_step REAL,"
    " cpu_ms_per_sample REAL,"
    " cpu_ms_per_step REAL,"
    " conv REAL,"
    " gemm REAL,"
    " rnn REAL,"
    " sparse REAL"
    ") STRICT;"

    "CREATE TABLE origins ("
    " id INTEGER PRIMARY KEY,"
    " kind TEXT NOT NULL,"
    " name TEXT NOT NULL,"
    " digest TEXT NOT NULL,"
    " time_s REAL NOT NULL,"
    " UNIQUE (kind, digest)"
    ") STRICT;"

    "CREATE TABLE measurements ("
    " id INTEGER PRIMARY KEY,"
    " workload INTEGER NOT NULL REFERENCES workloads (id),"
    " gpu_type INTEGER NOT NULL REFERENCES gpu_types (id),"
    " neighbour INTEGER REFERENCES workloads (id),"
    " n_gpus INTEGER NOT NULL CHECK (n_gpus > 0),"
    " is_spread INTEGER NOT NULL,"
    " fits INTEGER NOT NULL,"
    " limit_w REAL,"
    " throughput REAL,"
    " watts REAL,"
    " time_s REAL NOT NULL,"
    " duration_s REAL,"
    " noise REAL,"
    " origin INTEGER REFERENCES origins (id)"
    ") STRICT;"
    "CREATE TRIGGER measurements_keep_update BEFORE UPDATE ON measurements"
    " BEGIN SELECT RAISE(ABORT, 'measurements are append-only'); END;"
    "CREATE TRIGGER measurements_keep_delete BEFORE DELETE ON measurements"
    " BEGIN SELECT RAISE(ABORT, 'measurements are append-only'); END;"
    "CREATE TRIGGER measurements_keep_insert BEFORE INSERT ON measurements"    // OR REPLACE
    " WHEN EXISTS (SELECT 1 FROM measurements WHERE id = new.id)"
    " BEGIN SELECT RAISE(ABORT, 'measurements are append-only'); END;"

    "CREATE TABLE estimates ("
    " workload INTEGER NOT NULL REFERENCES workloads (id),"
    " gpu_type INTEGER NOT NULL REFERENCES gpu_types (id),"
    " neighbour INTEGER NOT NULL,"    // 0: alone; part of the key, so never NULL
    " ln_speed REAL,"
    " ln_speed_sd REAL,"
    " ln_watts REAL,"
    " ln_watts_sd REAL,"
    " unfit REAL,"
    " time_s REAL NOT NULL,"
    " PRIMARY KEY (workload, gpu_type, neighbour)"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE events ("
    " seq INTEGER PRIMARY KEY,"
    " time_s REAL NOT NULL,"
    " kind TEXT NOT NULL,"
    " body TEXT NOT NULL"
    ") STRICT;"
    "CREATE TRIGGER events_keep_update BEFORE UPDATE ON events"
    " BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;"
    "CREATE TRIGGER events_keep_delete BEFORE DELETE ON events"
    " BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;"
    "CREATE TRIGGER events_keep_insert BEFORE INSERT ON events"
    " WHEN EXISTS (SELECT 1 FROM events WHERE seq = new.seq)"
    " BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;"

    "CREATE TABLE nodes ("
    " id INTEGER PRIMARY KEY,"
    " name TEXT NOT NULL UNIQUE,"
    " body TEXT NOT NULL"
    ") STRICT;"

    "CREATE TABLE gpus ("
    " id INTEGER PRIMARY KEY,"
    " node INTEGER NOT NULL REFERENCES nodes (id),"
    " slot INTEGER NOT NULL,"
    " type TEXT NOT NULL,"
    " body TEXT NOT NULL,"
    " UNIQUE (node, slot)"
    ") STRICT;"

    "CREATE TABLE jobs ("
    " id INTEGER PRIMARY KEY,"
    " state TEXT NOT NULL,"
    " owner TEXT,"
    " body TEXT NOT NULL"
    ") STRICT;"

    "CREATE TABLE models ("
    " id INTEGER PRIMARY KEY,"
    " name TEXT NOT NULL,"
    " time_s REAL NOT NULL,"
    " bytes BLOB NOT NULL"
    ") STRICT;"
    "CREATE INDEX models_by_name ON models (name, id);";

/* Jobs come apart into what was asked, which never changes, and where they stand, which an
 * event rewrites: small rows, so that a thousand reports touch a few pages. The rows of
 * version 1 are let go of: they follow from the journal, and the next writer makes them anew.
 */
static const char version_2[] = "DROP TABLE jobs;"
                                "DELETE FROM gpus;"
                                "DELETE FROM nodes;"
                                "DELETE FROM meta WHERE key = 'applied_seq';"

                                "CREATE TABLE jobs ("
                                " id INTEGER PRIMARY KEY,"
                                " name TEXT NOT NULL,"
                                " owner TEXT,"
                                " workload TEXT NOT NULL,"
                                " is_inference INTEGER NOT NULL,"
                                " submit_s REAL NOT NULL,"
                                " steps REAL NOT NULL,"
                                " is_guess INTEGER NOT NULL,"
                                " rate REAL NOT NULL,"
                                " duration_s REAL NOT NULL,"
                                " min_throughput REAL NOT NULL,"
                                " deadline_s REAL,"
                                " n_gpus INTEGER NOT NULL,"
                                " max_gpus INTEGER NOT NULL,"
                                " priority INTEGER NOT NULL,"
                                " is_exclusive INTEGER NOT NULL,"
                                " needs_one_node INTEGER NOT NULL,"
                                " types TEXT,"
                                " command TEXT,"
                                " key TEXT,"
                                " digest TEXT"
                                ") STRICT;"

                                "CREATE TABLE job_states ("
                                " id INTEGER PRIMARY KEY REFERENCES jobs (id),"
                                " state TEXT NOT NULL,"
                                " steps_done REAL NOT NULL,"
                                " heard_s REAL NOT NULL,"
                                " pace REAL NOT NULL,"
                                " changed_s REAL NOT NULL,"
                                " started_s REAL,"
                                " n_moves INTEGER NOT NULL,"
                                " limit_w INTEGER NOT NULL,"
                                " gpus TEXT,"
                                " reason TEXT"
                                ") STRICT;"

                                "CREATE TABLE usage ("
                                " hour_s INTEGER NOT NULL,"
                                " job INTEGER NOT NULL,"
                                " gpu_type INTEGER NOT NULL,"
                                " active_j REAL NOT NULL,"
                                " idle_j REAL NOT NULL,"
                                " gpu_s REAL NOT NULL,"
                                " steps REAL NOT NULL,"
                                " promised_s REAL NOT NULL,"
                                " kept_s REAL NOT NULL,"
                                " n_measured REAL NOT NULL,"
                                " abs_error REAL NOT NULL,"
                                " n_covered REAL NOT NULL,"
                                " PRIMARY KEY (hour_s, job, gpu_type)"
                                ") STRICT, WITHOUT ROWID;"

                                "CREATE TABLE decisions ("
                                " id INTEGER PRIMARY KEY,"
                                " job INTEGER NOT NULL,"
                                " time_s REAL NOT NULL,"
                                " body TEXT NOT NULL"
                                ") STRICT;"
                                "CREATE INDEX decisions_by_job ON decisions (job, time_s);";

/* A gang may ask for several nodes, where it could ask for one; on GPUs of some types nobody may
 * share.
 */
static const char version_3[] =
    "ALTER TABLE jobs RENAME COLUMN needs_one_node TO n_nodes;"
    "ALTER TABLE gpu_types ADD COLUMN share_max INTEGER NOT NULL DEFAULT 0;";

/* Rates of a type by precision; of a workload its precision, and what a monitor sees of it alone.
 * Features of 0, which older versions took, say nothing.
 */
static const char version_4[] =
    "ALTER TABLE gpu_types ADD COLUMN peak_tf32_flops REAL;"
    "ALTER TABLE gpu_types ADD COLUMN peak_fp8_flops REAL;"
    "ALTER TABLE gpu_types ADD COLUMN peak_int8_flops REAL;"
    "ALTER TABLE gpu_types ADD COLUMN capability INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE workloads ADD COLUMN gpu_activity REAL;"
    "ALTER TABLE workloads ADD COLUMN mem_activity REAL;"
    "ALTER TABLE workloads ADD COLUMN solo_watts REAL;"
    "ALTER TABLE workloads ADD COLUMN mem_used_bytes REAL;"
    "ALTER TABLE workloads ADD COLUMN precision TEXT;"
    "ALTER TABLE workloads ADD COLUMN needs_capability INTEGER NOT NULL DEFAULT 0;"
    "UPDATE workloads SET flop_per_sample = NULL WHERE flop_per_sample < 1;"
    "UPDATE workloads SET bytes_per_sample = NULL WHERE bytes_per_sample < 1;"
    "UPDATE workloads SET kernels_per_step = NULL WHERE kernels_per_step < 1;";

/* Measurements of other places stand apart from the site's own, which have no campaign. */
static const char version_5[] =
    "CREATE TABLE campaigns ("
    " id INTEGER PRIMARY KEY,"
    " name TEXT NOT NULL UNIQUE"
    ") STRICT;"
    "ALTER TABLE measurements ADD COLUMN campaign INTEGER REFERENCES campaigns (id);";

/* Estimates follow from measurements and are worked out when they are asked for. Models of earlier
 * versions are of another kind, and no program reads them any more.
 */
static const char version_6[] = "DROP TABLE estimates;"
                                "DELETE FROM models;";

/* How GPUs are shared decides what neighbours cost: of a type as it is here, and in a campaign. */
static const char version_7[] =
    "ALTER TABLE gpu_types ADD COLUMN sharing INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE campaigns ADD COLUMN sharing INTEGER NOT NULL DEFAULT 0;";

/* What a job's time is worth, beside the usual. */
static const char version_8[] = "ALTER TABLE jobs ADD COLUMN urgency REAL NOT NULL DEFAULT 1;";

/* What power limits do is learned from measurements, and not learned again after a restart. */
static const char version_9[] = "ALTER TABLE measurements ADD COLUMN ln_pace REAL;"
                                "ALTER TABLE measurements ADD COLUMN ln_undone REAL;"
                                "ALTER TABLE measurements ADD COLUMN seen_ln_speed REAL;"
                                "ALTER TABLE measurements ADD COLUMN seen_noise REAL;"
                                "ALTER TABLE measurements ADD COLUMN law_ln_watts REAL;"
                                "ALTER TABLE measurements ADD COLUMN seen_ln_watts REAL;"
                                "ALTER TABLE measurements ADD COLUMN seen_watts_noise REAL;";

/* Services, their replicas, and what arrived at them, an hour a row. */
static const char version_10[] =
    "ALTER TABLE jobs ADD COLUMN terms TEXT;"
    "ALTER TABLE job_states ADD COLUMN ready_s REAL;"
    "ALTER TABLE job_states ADD COLUMN drain_s REAL;"
    "ALTER TABLE job_states ADD COLUMN rate REAL;"
    "ALTER TABLE job_states ADD COLUMN max_gpus INTEGER NOT NULL DEFAULT 0;"
    "CREATE TABLE arrivals ("
    " service INTEGER NOT NULL,"
    " hour_s INTEGER NOT NULL,"
    " bytes BLOB NOT NULL,"
    " PRIMARY KEY (service, hour_s)"
    ") STRICT, WITHOUT ROWID;";

/* What replicas answered, and what of it was late, by the hour. */
static const char version_11[] = "ALTER TABLE usage ADD COLUMN requests REAL NOT NULL DEFAULT 0;"
                                 "ALTER TABLE usage ADD COLUMN late REAL NOT NULL DEFAULT 0;";

const char *const store_migrations[] = { version_1, version_2,  version_3, version_4,
                                         version_5, version_6,  version_7, version_8,
                                         version_9, version_10, version_11 };
const int store_n_migrations = sizeof(store_migrations) / sizeof(store_migrations[0]);
