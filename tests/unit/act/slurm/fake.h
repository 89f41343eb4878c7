/* fake.h - a small Slurm that speaks the driver's lines, for tests of the daemon's side.
 *
 * Jobs wait, run and end as Slurm's do, as far as anybody can see; what goes wrong is said by the
 * test: answers that do not come, requests carried out late or not at all, a crash that forgets
 * the last jobs and gives out their numbers again. It writes down what it was asked, and breaks
 * off when something was asked that must never be.
 */
#ifndef TESTS_UNIT_ACT_SLURM_FAKE_H
#define TESTS_UNIT_ACT_SLURM_FAKE_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "act/driver/wire.h"
#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "unit/suite.h"

enum { FAKE_JOBS = 400, FAKE_NODES = 16 };

/* What nodes have, and jobs ask of them; 0 and "": nothing is said. */
struct fake_needs {
    int cpus, mem_mib, limit_s;
    char features[40];
};

struct fake_job {
    struct fake_needs needs;
    bool is_there;
    long id, array, task;
    unsigned uid;
    char state[20], held[8], name[40], comment[120], admin[300], nodes[100], pin[100], gres[100];
    char reason[60], partition[20];
    int run, exit_code, signal;
    double born_s, submit_s, start_s, end_s;
    int n_shards;    // a node's share that it asks for
    int n_risen;     // times that it was put back after its end
};

struct fake_node {
    struct fake_needs has;
    char name[20], state[60], gres[100], address[20];
    int n_shards;
};

/* What becomes of the next change: it is carried out and answered, or not. */
enum fake_fault {
    FAULT_NONE,
    FAULT_REFUSED,
    FAULT_UNKNOWN,
    FAULT_UNKNOWN_DONE,
    FAULT_LATE,
    FAULT_DIE,    // the driver dies before it has done it, or before it has said so
    FAULT_DIE_DONE,
    FAULTS,
};

struct fake {
    int fd;    // our end; -1: no driver
    struct buf in, out;
    struct arena arena;
    struct fake_job jobs[FAKE_JOBS];
    struct fake_node nodes[FAKE_NODES];
    int n_nodes;
    long next_id;
    double now_s, boot_s;
    char other_nodes[100], other_gres[60];    // a job of another partition
    bool is_down;                             // every request fails
    bool is_lazy;                             // starts nothing
    bool lingers;                             // what is requeued keeps its node until 'fake_settle'
    bool is_cut;                              // a line of each listing cannot be read
    char cut_id[20];                          // and it is of this job
    bool hides;                               // listings are empty
    bool is_quiet;                            // notes nothing
    bool is_dying;
    enum fake_fault fault;    // of the next change
    char *late;               // a change that is carried out later
    char index[20];           // devices of whoever is asked for
    const char *typed;        // "can_move_typed"
    long n_requests;
    char asked[20000];
};

static inline void fake_note(struct fake *f, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static inline void fake_note(struct fake *f, const char *format, ...)
{
    const size_t at = strlen(f->asked), size = sizeof f->asked;
    va_list args;

    if (f->is_quiet)
        return;
    va_start(args, format);
    vsnprintf(f->asked + at, size - at, format, args);
    va_end(args);
}

static inline void fake_set(char *to, size_t size, const char *text)
{
    const size_t n = strlen(text);

    ck_assert_uint_lt(n, size);
    memcpy(to, text, n + 1);
}

/* ---- jobs ---- */

static inline struct fake_job *fake_job_of(struct fake *f, const char *number)
{
    char own[48];

    for (int i = 0; i < FAKE_JOBS; i++) {
        struct fake_job *j = &f->jobs[i];

        if (j->task >= 0 && j->array > 0)
            snprintf(own, sizeof own, "%ld_%ld", j->array, j->task);
        else
            snprintf(own, sizeof own, "%ld", j->id);
        if (j->is_there && strcmp(own, number) == 0)
            return j;
    }
    return NULL;
}

static inline struct fake_job *fake_add(struct fake *f)
{
    for (int i = 0; i < FAKE_JOBS; i++)    // a crash may have left younger numbers in use
        if (f->jobs[i].is_there && f->jobs[i].id >= f->next_id && f->jobs[i].task < 0)
            f->next_id = f->jobs[i].id + 1;
    for (int i = 0; i < FAKE_JOBS; i++) {
        struct fake_job *j = &f->jobs[i];

        if (j->is_there)
            continue;
        *j = (struct fake_job){ .is_there = true, .id = f->next_id++, .task = -1 };
        j->born_s = j->submit_s = f->now_s;
        fake_set(j->state, sizeof j->state, "PENDING");
        fake_set(j->held, sizeof j->held, "user");
        return j;
    }
    ck_abort_msg("too many jobs");
    return NULL;
}

static inline bool fake_is(const struct fake_job *j, const char *state)
{
    return strcmp(j->state, state) == 0;
}

static inline bool fake_holds_node(const struct fake_job *j)
{
    return fake_is(j, "RUNNING") || fake_is(j, "CONFIGURING") || fake_is(j, "COMPLETING");
}

/* Is 'name' in "a,b"? */
static inline bool fake_lists(const char *list, const char *name)
{
    const size_t n = strlen(name);

    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == n && strncmp(at, name, n) == 0)
            return true;
    return false;
}

static inline int fake_used(const struct fake *f, const char *node)
{
    int used = 0;

    for (int i = 0; i < FAKE_JOBS; i++)
        if (f->jobs[i].is_there && fake_holds_node(&f->jobs[i]) &&
            fake_lists(f->jobs[i].nodes, node))
            used += f->jobs[i].n_shards;
    return used;
}

static inline bool fake_fits(const struct fake *f, const struct fake_job *j)
{
    int n = 0;

    for (int i = 0; i < f->n_nodes; i++) {
        const struct fake_node *d = &f->nodes[i];

        if (!fake_lists(j->pin, d->name))
            continue;
        n++;
        if (strcmp(d->state, "idle") != 0 || fake_used(f, d->name) + j->n_shards > d->n_shards)
            return false;
    }
    return n > 0;
}

/* Slurm forgets those that ended long ago. */
static inline void fake_purge(struct fake *f)
{
    for (int i = 0; i < FAKE_JOBS; i++) {
        struct fake_job *j = &f->jobs[i];

        if (j->is_there && !fake_is(j, "PENDING") && !fake_holds_node(j) &&
            f->now_s > j->end_s + 300)
            j->is_there = false;
    }
}

/* The scheduler's round. */
static inline void fake_schedule(struct fake *f)
{
    for (int i = 0; i < FAKE_JOBS && !f->is_lazy; i++) {
        struct fake_job *j = &f->jobs[i];

        if (!j->is_there || !fake_is(j, "PENDING") || strcmp(j->held, "no") != 0 ||
            !fake_fits(f, j))
            continue;
        fake_set(j->state, sizeof j->state, "RUNNING");
        fake_set(j->nodes, sizeof j->nodes, j->pin);
        j->start_s = f->now_s;
        j->end_s = 0;
    }
}

static inline void fake_end(struct fake *f, struct fake_job *j, const char *state, int exit_code,
                            int signal)
{
    fake_set(j->state, sizeof j->state, state);
    j->exit_code = exit_code;
    j->signal = signal;
    j->end_s = f->now_s;
}

/* As Slurm does, with a new time of submission. */
static inline void fake_requeued(struct fake *f, struct fake_job *j, const char *held)
{
    j->submit_s = f->now_s;
    fake_set(j->state, sizeof j->state, "PENDING");
    fake_set(j->held, sizeof j->held, held);
    j->nodes[0] = '\0';
    j->run++;
    j->exit_code = j->signal = 0;
}

static inline void fake_settle(struct fake *f)
{
    for (int i = 0; i < FAKE_JOBS; i++)
        if (f->jobs[i].is_there && fake_is(&f->jobs[i], "COMPLETING"))
            fake_requeued(f, &f->jobs[i], "admin");
}

/* ---- requests ---- */

static inline void fake_put_needs(struct buf *b, const struct fake_needs *n)
{
    if (n->cpus)
        wire_put_long(b, "cpus", n->cpus);
    if (n->mem_mib)
        wire_put_long(b, "mem_mib", n->mem_mib);
    if (*n->features)
        wire_put(b, "features", n->features);
    if (n->limit_s)
        wire_put_long(b, "limit_s", n->limit_s);
}

static inline void fake_put_double(struct buf *b, const char *key, double value)
{
    char text[40];

    snprintf(text, sizeof text, "%.17g", value);
    wire_put(b, key, text);
}

static inline void fake_job_line(struct fake *f, uint64_t seq, const struct fake_job *j)
{
    struct buf *b = &f->out;

    wire_begin(b, seq, "job");
    wire_put_long(b, "id", j->id);
    if (j->task >= 0) {
        wire_put_long(b, "array", j->array);
        wire_put_long(b, "task", j->task);
    }
    wire_put_long(b, "uid", j->uid);
    wire_put(b, "partition", *j->partition ? j->partition : "gogh");
    wire_put(b, "state", j->state);
    wire_put(b, "reason", *j->reason ? j->reason : "None");
    wire_put(b, "held",
             fake_is(j, "PENDING") || (fake_is(j, "RUNNING") && strcmp(j->held, "user") == 0)
                 ? j->held
                 : "no");
    wire_put(b, "nodes", j->nodes);
    wire_put(b, "pin", j->pin);
    wire_put(b, "gres", j->gres);
    wire_put_long(b, "run", j->run);
    fake_put_double(b, "submit_s", j->submit_s);
    if (j->start_s > 0)
        fake_put_double(b, "start_s", j->start_s);
    if (j->end_s > 0)
        fake_put_double(b, "end_s", j->end_s);
    wire_put_long(b, "exit", j->exit_code);
    wire_put_long(b, "signal", j->signal);
    wire_put(b, "name", j->name);
    wire_put(b, "comment", j->comment);
    wire_put(b, "admin", j->admin);
    wire_put(b, "out", "/home/u/slurm-1.out");
    fake_put_needs(b, &j->needs);
    wire_end(b);
}

static inline void fake_jobs(struct fake *f, uint64_t seq)
{
    fake_schedule(f);
    for (int i = 0; i < FAKE_JOBS; i++)
        if (f->jobs[i].is_there && !f->hides)
            fake_job_line(f, seq, &f->jobs[i]);
    if (*f->other_nodes) {
        wire_begin(&f->out, seq, "other");
        wire_put_long(&f->out, "id", 99);
        wire_put(&f->out, "nodes", f->other_nodes);
        wire_put(&f->out, "gres", f->other_gres);
        wire_put_long(&f->out, "cpus", 1);
        wire_end(&f->out);
    }
    if (f->is_cut) {
        wire_begin(&f->out, 0, "trouble");
        wire_put_long(&f->out, "n", 1);
        wire_put(&f->out, "id", *f->cut_id ? f->cut_id : NULL);
        wire_end(&f->out);
    }
}

static inline void fake_node_lines(struct fake *f, uint64_t seq)
{
    for (int i = 0; i < f->n_nodes; i++) {
        const struct fake_node *d = &f->nodes[i];
        const bool is_used = strcmp(d->state, "idle") == 0 && fake_used(f, d->name) > 0;

        wire_begin(&f->out, seq, "node");
        wire_put(&f->out, "name", d->name);
        wire_put(&f->out, "state", is_used ? "mixed" : d->state);
        wire_put(&f->out, "gres", d->gres);
        fake_put_needs(&f->out, &d->has);
        wire_put(&f->out, "address", *d->address ? d->address : NULL);
        wire_end(&f->out);
    }
}

static inline void fake_copy(char *to, size_t size, const struct wire_message *m, const char *key)
{
    const char *value = wire_get(m, key);

    fake_set(to, size, value ? value : "");
}

static inline void fake_submit(struct fake *f, const struct wire_message *m, uint64_t seq)
{
    struct fake_job *j = fake_add(f);

    fake_copy(j->name, sizeof j->name, m, "name");
    fake_copy(j->comment, sizeof j->comment, m, "comment");
    j->uid = (unsigned)wire_get_long(m, "uid", -1);
    if (seq) {
        wire_begin(&f->out, seq, "submitted");
        wire_put_long(&f->out, "id", j->id);
        wire_end(&f->out);
    }
}

/* Old ones give a job both devices whose gres type is changed: nobody may ask for that. */
static inline void fake_check_types(const struct fake *f, const struct fake_job *j,
                                    const struct wire_message *m)
{
    const char *gres = wire_get(m, "gres");

    if (f->typed && *j->gres && (strchr(j->gres, '_') || strchr(gres, '_')))
        ck_assert_msg(strcmp(j->gres, gres) == 0, "job %ld: %s after %s", j->id, gres, j->gres);
}

static inline void fake_pin(struct fake *f, struct fake_job *j, const struct wire_message *m)
{
    const char *last;

    fake_check_types(f, j, m);

    fake_copy(j->pin, sizeof j->pin, m, "nodes");
    fake_copy(j->gres, sizeof j->gres, m, "gres");
    fake_copy(j->admin, sizeof j->admin, m, "admin");
    last = strrchr(j->gres, ':');
    j->n_shards = last ? last[1] - '0' : 1;
    fake_set(j->held, sizeof j->held, "no");
    (void)f;
}

static inline void fake_signalled(struct fake *f, struct fake_job *j)
{
    if (fake_is(j, "RUNNING") && strstr(j->name, "saves"))
        fake_end(f, j, "COMPLETED", 0, 0);
}

static inline void fake_put_back(struct fake *f, struct fake_job *j)
{
    j->n_risen += !fake_holds_node(j);
    fake_requeued(f, j, "admin");
}

static inline void fake_one(struct fake *f, struct fake_job *j, const struct wire_message *m)
{
    if (strcmp(m->verb, "pin") == 0 && fake_is(j, "PENDING"))
        fake_pin(f, j, m);
    else if (strcmp(m->verb, "note") == 0)
        fake_copy(j->admin, sizeof j->admin, m, "admin");
    else if (strcmp(m->verb, "hold") == 0)
        fake_set(j->held, sizeof j->held, "admin");
    else if (strcmp(m->verb, "requeue") == 0 && f->lingers && fake_is(j, "RUNNING"))
        fake_set(j->state, sizeof j->state, "COMPLETING");
    else if (strcmp(m->verb, "requeue") == 0 && !fake_is(j, "PENDING"))
        fake_put_back(f, j);
    else if (strcmp(m->verb, "signal") == 0)
        fake_signalled(f, j);
    else if (strcmp(m->verb, "cancel") == 0 && !fake_is(j, "COMPLETED"))
        fake_end(f, j, "CANCELLED", 0, 0);
}

static inline void fake_devices(struct fake *f, const struct fake_job *j, const char *id,
                                uint64_t seq)
{
    wire_begin(&f->out, seq, "device");
    wire_put(&f->out, "id", id);
    wire_put(&f->out, "node", j->nodes);
    wire_put(&f->out, "index", f->index);
    wire_end(&f->out);
}

/* Slurm changes no place of a job that runs, and puts none back that waits, or that must not be. */
static inline bool fake_refuses(const struct fake_job *j, const struct wire_message *m)
{
    if (wire_get_long(m, "uid", j->uid) != (long)j->uid)
        return true;
    if (strcmp(m->verb, "pin") == 0)
        return !fake_is(j, "PENDING");
    return strcmp(m->verb, "requeue") == 0 &&
           (fake_is(j, "PENDING") || strstr(j->name, "norequeue"));
}

static inline void fake_trouble(struct fake *f, uint64_t seq, const char *id, const char *kind)
{
    wire_begin(&f->out, seq, "trouble");
    wire_put(&f->out, "id", id);
    wire_put(&f->out, "kind", kind);
    wire_put(&f->out, "text", "so it is");
    wire_end(&f->out);
}

/* Carry it out; 'seq' 0: nobody hears of it. False: some job was not there. */
static inline bool fake_do(struct fake *f, const struct wire_message *m, uint64_t seq)
{
    bool is_good = true;

    if (strcmp(m->verb, "submit") == 0)
        fake_submit(f, m, seq);
    for (int i = 0; i < m->n_pairs; i++) {
        const char *value = m->pairs[i].value;
        struct fake_job *j = strcmp(m->pairs[i].key, "id") == 0 ? fake_job_of(f, value) : NULL;
        const bool is_refused = j && fake_refuses(j, m);

        if (strcmp(m->pairs[i].key, "id") == 0 && (!j || is_refused)) {
            is_good = false;
            if (seq)
                fake_trouble(f, seq, value, j ? "refused" : "gone");
        } else if (j && strcmp(m->verb, "devices") == 0 && seq)
            fake_devices(f, j, value, seq);
        else if (j)
            fake_one(f, j, m);
    }
    return is_good;
}

static inline void fake_write_down(struct fake *f, const struct wire_message *m)
{
    static const char *const keys[] = { "id",    "name",   "nodes", "n_nodes", "gres",
                                        "admin", "signal", "node",  "state",   "minutes" };

    fake_note(f, "%s", m->verb);
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        for (int i = 0; i < m->n_pairs; i++) {
            const char *v = m->pairs[i].value;
            const char *at = strcmp(keys[k], "admin") == 0 ? strstr(v, " at=") : NULL;

            if (strcmp(m->pairs[i].key, keys[k]) == 0 && strcmp(keys[k], "n_nodes") != 0)
                fake_note(f, " %s", at ? at + 1 : v);
        }
    fake_note(f, "\n");
}

static inline void fake_answer(struct fake *f, uint64_t seq, const char *how, const char *kind)
{
    wire_begin(&f->out, seq, how);
    wire_put(&f->out, "kind", kind);
    wire_put(&f->out, "text", kind ? "so it is" : NULL);
    wire_end(&f->out);
}

static inline void fake_hello(struct fake *f, uint64_t seq)
{
    wire_begin(&f->out, seq, "config");
    wire_put(&f->out, "version", "22.05.8");
    wire_put(&f->out, "can_move_typed", f->typed);
    wire_put_long(&f->out, "min_job_age_s", 300);
    fake_put_double(&f->out, "boot_s", f->boot_s);
    wire_end(&f->out);
}

static inline void fake_change(struct fake *f, const struct wire_message *m, const char *line)
{
    const enum fake_fault fault = f->fault;

    fake_write_down(f, m);
    f->fault = FAULT_NONE;
    if (fault == FAULT_REFUSED) {
        fake_answer(f, m->seq, "failed", "refused");
    } else if (fault == FAULT_NONE) {
        if (fake_do(f, m, m->seq))
            fake_answer(f, m->seq, "done", NULL);
        else
            fake_answer(f, m->seq, "failed", strcmp(m->verb, "pin") == 0 ? "refused" : "gone");
    } else {
        if (fault == FAULT_UNKNOWN_DONE || fault == FAULT_DIE_DONE)
            (void)fake_do(f, m, 0);
        if (fault == FAULT_DIE || fault == FAULT_DIE_DONE) {
            f->is_dying = true;
            return;
        }
        if (fault == FAULT_LATE) {
            free(f->late);
            f->late = strdup(line);
        }
        fake_answer(f, m->seq, "unknown", NULL);
    }
}

static inline void fake_line(struct fake *f, char *line, size_t len)
{
    struct wire_message m;
    struct err e = { 0 };
    char *copy = strndup(line, len);
    int rc;

    arena_reset(&f->arena);
    rc = wire_read(&f->arena, line, len, &m, &e);
    ck_assert_msg(rc == 0, "%s", e.text);
    f->n_requests++;
    if (f->is_down) {
        fake_answer(f, m.seq, "failed", "down");
    } else if (strcmp(m.verb, "jobs") == 0 || strcmp(m.verb, "nodes") == 0 ||
               strcmp(m.verb, "hello") == 0) {
        if (*m.verb == 'j')
            fake_jobs(f, m.seq);
        else if (*m.verb == 'n')
            fake_node_lines(f, m.seq);
        else
            fake_hello(f, m.seq);
        fake_answer(f, m.seq, "done", NULL);
    } else {
        fake_change(f, &m, copy);
    }
    free(copy);
}

/* What was not answered is carried out after all. */
static inline void fake_do_late(struct fake *f)
{
    struct wire_message m;

    if (!f->late)
        return;
    arena_reset(&f->arena);
    ck_assert_int_eq(wire_read(&f->arena, f->late, strlen(f->late), &m, NULL), 0);
    (void)fake_do(f, &m, 0);
    free(f->late);
    f->late = NULL;
}

/* The driver dies; with it what it has not read. */
static inline void fake_die(struct fake *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
    f->is_dying = false;
    buf_clear(&f->in);
    buf_clear(&f->out);
}

/* Read what is there and answer it. True: there was something. */
static inline bool fake_serve(struct fake *f)
{
    char bytes[65536], *lf;
    const ssize_t n = f->fd < 0 ? -1 : recv(f->fd, bytes, sizeof bytes, MSG_DONTWAIT);

    if (n <= 0)
        return false;
    ck_assert_int_eq(buf_append(&f->in, bytes, (size_t)n), 0);
    while (f->in.len && !f->is_dying && (lf = memchr(f->in.data, '\n', f->in.len)) != NULL) {
        const size_t len = (size_t)(lf - f->in.data);

        fake_line(f, f->in.data, len);
        memmove(f->in.data, f->in.data + len + 1, f->in.len - len - 1);
        f->in.len -= len + 1;
    }
    for (size_t at = 0; at < f->out.len;) {
        const ssize_t sent = send(f->fd, f->out.data + at, f->out.len - at, MSG_NOSIGNAL);

        if (sent < 0)
            break;
        at += (size_t)sent;
    }
    buf_clear(&f->out);
    if (f->is_dying)
        fake_die(f);
    return true;
}

/* ---- life ---- */

static inline void fake_init(struct fake *f)
{
    *f = (struct fake){ .fd = -1, .next_id = 1, .now_s = 1000, .boot_s = 10, .index = "0" };
    buf_init(&f->in, 1 << 22);
    buf_init(&f->out, 1 << 22);
    arena_init(&f->arena);
}

static inline void fake_release(struct fake *f)
{
    if (f->fd >= 0)
        close(f->fd);
    free(f->late);
    buf_release(&f->in);
    buf_release(&f->out);
    arena_release(&f->arena);
}

static inline int fake_open(void *self)
{
    struct fake *f = self;
    int fds[2];

    fake_die(f);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    f->fd = fds[1];
    return fds[0];
}

/* slurmctld is killed and started: jobs younger than 'age_s' are gone, their numbers free. */
static inline void fake_crash(struct fake *f, double age_s)
{
    for (int i = 0; i < FAKE_JOBS; i++) {
        struct fake_job *j = &f->jobs[i];

        if (!j->is_there || j->born_s <= f->now_s - age_s)
            continue;
        j->is_there = false;
        if (j->id < f->next_id)
            f->next_id = j->id;
    }
    f->boot_s = f->now_s;
}

#endif
