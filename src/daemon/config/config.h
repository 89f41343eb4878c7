/* config.h - /etc/gogh/gogh.conf as a value.
 *
 *     store     /var/lib/gogh/gogh.db
 *     socket    /run/gogh/gogh.sock mode=0666
 *     listen    127.0.0.1:7117 cert=/etc/gogh/tls.crt key=/etc/gogh/tls.key
 *     tokens    /etc/gogh/tokens
 *     allow     group=gpu-admins operate
 *     gpus      auto
 *     node      box k80:2 p100:2 v100:2      # and gputype, workload and set lines, as in a
 *     set       report_s 60                  # cluster file (docs/formats/cluster.md)
 *
 * Made by: config_read. Read by: everything in the daemon, and `gogh config check`. Lives in
 * the arena it was read into; a reload reads a new one. docs/formats/gogh.conf.md and
 * gogh.conf(5) describe every line.
 */
#ifndef DAEMON_CONFIG_CONFIG_H
#define DAEMON_CONFIG_CONFIG_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/log.h"
#include "catalog/cluster/cluster.h"

struct arena;
struct buf;
struct err;

#define CONFIG_PATH "/etc/gogh/gogh.conf"
#define CONFIG_SOCKET "/run/gogh/gogh.sock"    // also where `gogh` looks; $GOGH_SOCKET overrides

enum config_gpus { GPUS_AUTO, GPUS_NVML, GPUS_ROCM, GPUS_DECLARED };
enum config_mode { MODE_ACTIVE, MODE_SHADOW };
enum config_executor { EXECUTOR_LOCAL, EXECUTOR_SLURM };
enum config_power { POWER_AUTO, POWER_NVML, POWER_ROCM, POWER_DCGM, POWER_MODEL };

/* 'allow user=NAME SCOPE' or 'allow group=NAME SCOPE': what peers of the socket may do. */
struct config_allow {
    bool is_group;
    const char *name;
    int scope;    // enum scope
    int line;     // where it is said
};

struct config {
    const char *path;              // where it is from; NULL: the defaults
    const char *store;             // the SQLite file
    const char *run_dir;           // a directory for runs of jobs: orders, status, logs
    const char *services_dir;      // endpoints of services; beside the store unless it is said
    int port_first, port_last;     // ports that replicas of services are given
    const char *scrape_table;      // what is what on their pages; NULL: the table that ships
    const char *socket;            // Unix stream socket for HTTP; NULL: none
    mode_t socket_mode;            // 0666
    int socket_scope;              // of peers that nothing else is said about; SCOPE_SUBMIT
    const char *listen;            // "HOST:PORT"; NULL: no TCP
    const char *cert, *key;        // PEM files; TCP without them only on the loopback, and said so
    const char *tokens;            // file; NULL: no tokens, so nobody comes in by TCP
    struct config_allow *allow;    // (n_allow)
    int n_allow;

    const char *reports;        // Unix datagram socket for job reports; NULL: only by UDP
    const char *reports_udp;    // "HOST:PORT"; NULL: none

    enum config_mode mode;    // shadow: place by shadow_policy, plan beside, act on none of ours
    const char *policy;       // "gogh"
    const char *shadow_policy;    // "fifo-fastest": what the site does without us
    int estimator;                // enum estimator_kind
    const char *model;            // as --model; NULL: the site's, else the pretrained one
    bool is_learning;             // train anew when there is enough news
    long seed;

    enum config_executor executor;
    const char *slurm_partition;    // GOGH's: "gogh"
    const char *slurm_conf;         // SLURM_CONF; NULL: Slurm's own default
    const char *slurm_commands;     // directory of sbatch and the others; NULL: by PATH
    double slurm_poll_s;            // between two looks at Slurm; 2
    double slurm_patience_s;        // a placed job that Slurm does not start is taken back; 60
    double slurm_rate;              // calls a second to slurmctld, on average; 4
    bool slurm_sleep;               // send empty nodes to sleep (after sleep_after_s)
    const char *record;             // what happens is written there for 'gogh replay'; NULL: no

    enum config_gpus gpus;
    enum config_power power;
    const char *dcgm_url;    // "http://127.0.0.1:9400/metrics"
    bool uses_mps;           // start CUDA MPS where it is there
    double power_s;          // between two readings of power; 5

    double grace_s;          // a job may take this long to checkpoint; 30
    double warmup_s;         // of a placement before a window begins; 10
    double solve_s;          // a plan that takes longer is given up for the greedy one; 10
    double decide_s;         // at most one decision in this time; 1
    double timeout_s;        // an idle or dawdling client is cut off; 15
    long body_max;           // bytes of a request; 1 MiB
    long connections_max;    // 512
    double rate_max;         // requests a second of one caller; 0: no limit; 2000
    bool has_job_labels;     // /metrics with a label per job
    enum log_level log;

    struct cluster cluster;    // node, gputype, workload and set lines; 'gputype' ones in any case
    const int *lines;          // by setting: where it was set, 0: nowhere; NULL: all are defaults
};

extern const char *const config_modes[];    // by mode

/* The line that says 'word'; 0: none does. */
int config_line(const struct config *c, const char *word);

/* Is the host of "HOST:PORT", "[HOST]:PORT" or "HOST/..." this machine, as it is written? */
bool config_is_loopback(const char *address);

/* Every setting at its default, nothing declared. */
void config_defaults(struct config *c);

/* The settings in effect, as lines that config_parse reads back to the same, and as JSON
 * by name (yours). Figures of described GPU types and workloads are left to the file.
 */
void config_print(const struct config *c, struct buf *out);
json_t *config_json(const struct config *c);

/* Parse 'text'; 'name' is for messages. -EINVAL with file, line and cure. */
int config_parse(struct arena *a, const char *name, const char *text, size_t len,
                 struct config *out, struct err *e);

/* Read and parse a file; a missing one is -ENOENT. */
int config_read(struct arena *a, const char *path, struct config *out, struct err *e);

/* What does not depend on the text alone: directories that can be written, files that can be read,
 * users and groups that exist, a certificate with its key, a policy that exists. Appends one line
 * per finding to 'out', worst first ("gogh.conf:12: tokens: ..."); gives the number of those that
 * would keep the daemon from starting.
 */
int config_probe(const struct config *c, struct buf *out);

/* What of 'now' takes effect in a daemon that runs with 'was': 0, or -EINVAL naming the first
 * setting that needs a restart (store, run_dir, socket, nodes, ...).
 */
int config_may_reload(const struct config *was, const struct config *now, struct err *e);

/* The file that ships, in parts up to NULL: every setting with its default and what it means,
 * commented out.
 */
extern const char *const config_template[];

#endif
