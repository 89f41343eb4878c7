/* What a configuration says, held against the machine it is on. */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "base/text/file.h"
#include "daemon/config/auth.h"
#include "daemon/config/config.h"
#include "monitor/servers/scrape.h"
#include "optimize/policy/solver.h"

#define PEM_MAX ((size_t)1 << 20)

struct probe {
    const struct config *config;
    struct buf *out;
    struct buf notes;    // what keeps nobody from starting; comes last
    int n_bad;
};

/* A finding about a line (0: about none). What is bad keeps the daemon from starting; the rest
 * should be known.
 */
__attribute__((format(printf, 4, 5))) static void tell(struct probe *p, bool is_bad, int line,
                                                       const char *format, ...)
{
    const char *path = p->config->path != NULL ? p->config->path : "defaults";
    struct buf *out = is_bad ? p->out : &p->notes;
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (line > 0)
        buf_printf(out, "%s:%d: %s\n", path, line, text);
    else
        buf_printf(out, "%s: %s\n", path, text);
    p->n_bad += is_bad;
}

#define bad(p, setting, ...) tell((p), true, config_line((p)->config, (setting)), __VA_ARGS__)
#define note(p, setting, ...) tell((p), false, config_line((p)->config, (setting)), __VA_ARGS__)

/* ---- places to write ---- */

static void parent_of(const char *path, char *out, size_t size)
{
    const char *slash = strrchr(path, '/');

    snprintf(out, size, "%.*s", slash > path ? (int)(slash - path) : 1, path);
}

/* Is there a directory for 'path' that takes new files? */
static void probe_parent(struct probe *p, const char *setting, const char *path)
{
    char dir[512];
    struct stat st;

    parent_of(path, dir, sizeof dir);
    bool is_there = stat(dir, &st) == 0 && S_ISDIR(st.st_mode);
    if (!is_there && (strcmp(dir, "/run/gogh") == 0 || strcmp(dir, "/var/lib/gogh") == 0))
        note(p, setting, "%s: '%s' is not there yet; systemd makes it when it starts the service",
             setting, dir);
    else if (!is_there)
        bad(p, setting,
            "%s: the directory '%s' is not there; make it ('install -d %s'), or name "
            "another",
            setting, dir, dir);
    else if (access(dir, W_OK | X_OK) < 0)
        bad(p, setting,
            "%s: the directory '%s' cannot be written: %s; change its owner, or name "
            "another",
            setting, dir, strerror(errno));
}

static void probe_store(struct probe *p)
{
    const char *path = p->config->store;

    probe_parent(p, "store", path);
    if (access(path, F_OK) == 0 && access(path, R_OK | W_OK) < 0)
        bad(p, "store", "store: '%s': %s; change its owner", path, strerror(errno));
}

/* The last directory of the path is made where it is not there. */
static void probe_dir(struct probe *p, const char *setting, const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0)
        probe_parent(p, setting, path);
    else if (!S_ISDIR(st.st_mode))
        bad(p, setting, "%s: '%s' is no directory; name another", setting, path);
    else if (access(path, W_OK | X_OK) < 0)
        bad(p, setting, "%s: '%s': %s; change its owner", setting, path, strerror(errno));
}

static void probe_socket(struct probe *p, const char *setting, const char *path)
{
    struct stat st;

    if (path == NULL)
        return;
    probe_parent(p, setting, path);
    if (lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode))
        bad(p, setting, "%s: '%s' is there and no socket; name another", setting, path);
}

/* ---- files to read ---- */

static bool is_private(const char *path)
{
    struct stat st;

    return stat(path, &st) < 0 || (st.st_mode & 07) == 0;
}

/* Does it belong to neither root nor us? */
static bool is_others(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && st.st_uid != 0 && st.st_uid != geteuid();
}

static void probe_pem(struct probe *p, const char *key, const char *path, const char *mark)
{
    struct arena a;
    struct err e;
    const char *text;
    size_t len;

    arena_init(&a);
    if (file_read(&a, path, NULL, PEM_MAX, &text, &len, &e) < 0)
        bad(p, "listen", "listen: %s=%s", key, e.text);
    else if (memmem(text, len, mark, strlen(mark)) == NULL)
        bad(p, "listen", "listen: %s=%s has no line '-----BEGIN ... %s'; want a PEM file", key,
            path, mark);
    arena_release(&a);
}

static void probe_tls(struct probe *p)
{
    const struct config *c = p->config;

    if (c->cert != NULL) {
        probe_pem(p, "cert", c->cert, "CERTIFICATE-----");
        probe_pem(p, "key", c->key, "PRIVATE KEY-----");
        if (!is_private(c->key))
            note(p, "listen", "listen: everybody can read the key; 'chmod o-rwx %s'", c->key);
    } else if (c->listen != NULL) {
        note(p, "listen",
             "listen: %s without TLS: whoever is on this machine can "
             "read along",
             c->listen);
    }
    if (c->listen != NULL && c->tokens == NULL)
        note(p, "listen", "listen: without a 'tokens' line nobody comes in by TCP");
}

static void probe_tokens(struct probe *p)
{
    const char *path = p->config->tokens;
    struct auth *a = NULL;
    struct err e = { 0 };

    if (path == NULL)
        return;
    if (access(path, R_OK) < 0) {
        bad(p, "tokens", "tokens: '%s': %s; 'gogh token new' makes one", path, strerror(errno));
        return;
    }
    if (auth_open(p->config, &a, &e) == 0)
        auth_close(a);
    else if (geteuid() == 0 && is_others(path))    // the daemon's user may not be who asks
        note(p, "tokens", "tokens: %s", e.text);
    else
        bad(p, "tokens", "tokens: %s", e.text);
}

static void probe_table(struct probe *p)
{
    struct scrape_table table;
    struct err e = { 0 };

    if (scrape_table_load(p->config->scrape_table, &table, &e) < 0)
        bad(p, "scrape_table", "scrape_table: %s", e.text);
}

static void probe_model(struct probe *p)
{
    const char *m = p->config->model;

    if (m == NULL || strcmp(m, "site") == 0 || strcmp(m, "pretrained") == 0 ||
        strcmp(m, "none") == 0)
        return;
    if (access(m, R_OK) < 0)
        bad(p, "model", "model: '%s': %s; want site, pretrained, none or a file of 'gogh train'", m,
            strerror(errno));
}

/* ---- Slurm ---- */

/* Where the driver looks for commands where nobody says (act/driver/task.c). */
#define COMMANDS_PATH "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:/opt/slurm/bin"

static bool is_in(const char *name, const char *path)
{
    char file[512];

    while (*path) {
        const size_t len = strcspn(path, ":");

        snprintf(file, sizeof file, "%.*s/%s", (int)len, path, name);
        if (access(file, X_OK) == 0)
            return true;
        path += len + (path[len] == ':');
    }
    return false;
}

/* Those of another Slurm than the others would not do, so a directory that is named has all. */
static void probe_commands(struct probe *p)
{
    static const char *const names[] = { "sbatch", "scancel", "scontrol", "sinfo", "squeue" };
    const char *dir = p->config->slurm_commands;
    char missing[64] = "";
    struct stat st;

    if (dir != NULL && (stat(dir, &st) < 0 || !S_ISDIR(st.st_mode))) {
        bad(p, "slurm_commands", "slurm_commands: the directory '%s' is not there", dir);
        return;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const size_t used = strlen(missing);

        if (!is_in(names[i], dir != NULL ? dir : COMMANDS_PATH))
            snprintf(missing + used, sizeof missing - used, "%s%s", used > 0 ? ", " : "", names[i]);
    }
    if (missing[0] != '\0')
        bad(p, "slurm_commands",
            "slurm_commands: there is no %s in '%s'; name the directory that has Slurm's commands",
            missing, dir != NULL ? dir : COMMANDS_PATH);
}

/* It is an argument of commands, and one name of a list there. */
static bool is_partition(const char *name)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";

    return name[0] != '\0' && name[0] != '-' && strspn(name, letters) == strlen(name);
}

static void probe_slurm_reports(struct probe *p)
{
    const char *udp = p->config->reports_udp;

    if (udp == NULL)
        note(p, "executor",
             "executor: jobs on other nodes cannot report to a socket of this host; say "
             "'reports_udp HOST:PORT' with a name that they know");
    else if (config_is_loopback(udp))
        note(p, "reports_udp",
             "reports_udp: %s means themselves to jobs on other nodes; say a name of this host "
             "that they know",
             udp);
}

static void probe_slurm(struct probe *p)
{
    const struct config *c = p->config;

    probe_commands(p);
    if (c->slurm_conf != NULL && access(c->slurm_conf, R_OK) < 0)
        bad(p, "slurm_conf", "slurm_conf: '%s': %s; name Slurm's slurm.conf", c->slurm_conf,
            strerror(errno));
    if (!is_partition(c->slurm_partition))
        bad(p, "slurm_partition",
            "slurm_partition: '%s' is no name of a partition; want one, of letters, digits, '_', "
            "'.' and '-'",
            c->slurm_partition);
    probe_slurm_reports(p);
}

/* ---- names ---- */

static void probe_policy(struct probe *p, const char *setting, const char *policy)
{
    struct solver s;
    struct err e;

    if (solver_by_name(policy, 1, &s, &e) < 0)
        bad(p, setting, "%s: %s", setting, e.text);
}

static void probe_allow(struct probe *p)
{
    for (int i = 0; i < p->config->n_allow; i++) {
        const struct config_allow *a = &p->config->allow[i];

        if (a->is_group ? getgrnam(a->name) == NULL : getpwnam(a->name) == NULL)
            tell(p, false, a->line, "allow: there is no %s '%s' here; the line does nothing",
                 a->is_group ? "group" : "user", a->name);
    }
}

int config_probe(const struct config *c, struct buf *out)
{
    struct probe p = { .config = c, .out = out };

    buf_init(&p.notes, 1 << 20);
    probe_store(&p);
    probe_dir(&p, "run_dir", c->run_dir);
    if (config_line(c, "services_dir") > 0)    // else it is beside the store, which was looked at
        probe_dir(&p, "services_dir", c->services_dir);
    probe_socket(&p, "socket", c->socket);
    probe_socket(&p, "reports", c->reports);
    if (c->socket == NULL && c->listen == NULL)
        bad(&p, "socket", "socket: with neither a socket nor a 'listen' line nobody can reach it");
    probe_tls(&p);
    probe_tokens(&p);
    probe_policy(&p, "policy", c->policy);
    probe_policy(&p, "shadow_policy", c->shadow_policy);
    probe_model(&p);
    probe_table(&p);
    probe_allow(&p);
    if (c->executor == EXECUTOR_SLURM)
        probe_slurm(&p);
    if (c->cluster.n_nodes > 1 && c->executor == EXECUTOR_LOCAL)
        bad(&p, "gpus", "node: %d nodes: processes are started on this box alone; declare one",
            c->cluster.n_nodes);
    if (c->gpus == GPUS_DECLARED && c->cluster.n_nodes == 0)
        bad(&p, "gpus",
            "gpus: none is declared; add a line like 'node box v100:2', or say 'gpus "
            "auto'");
    buf_puts(out, buf_text(&p.notes));
    buf_release(&p.notes);
    return p.n_bad;
}
