/* One line of the driver's answers becomes a value; comments are read. */
#include "act/slurm/view.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "act/driver/wire.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/text/text.h"

/* ---- jobs ---- */

/* Slurm's words for a job's state, from 22.05 to 24.11 (squeue's manual). Those of jobs that wait
 * to run once more are pending; those of jobs that hold their nodes run.
 */
static const struct {
    const char *word;
    enum slurm_state state;
} states[] = {
    { "PENDING", SLURM_PENDING },       { "REQUEUED", SLURM_PENDING },
    { "REQUEUE_HOLD", SLURM_PENDING },  { "REQUEUE_FED", SLURM_PENDING },
    { "RESV_DEL_HOLD", SLURM_PENDING }, { "SPECIAL_EXIT", SLURM_PENDING },
    { "CONFIGURING", SLURM_STARTING },  { "RUNNING", SLURM_RUNNING },
    { "RESIZING", SLURM_RUNNING },      { "SIGNALING", SLURM_RUNNING },
    { "STOPPED", SLURM_RUNNING },       { "SUSPENDED", SLURM_RUNNING },
    { "COMPLETING", SLURM_ENDING },     { "STAGE_OUT", SLURM_ENDING },
    { "COMPLETED", SLURM_COMPLETED },   { "CANCELLED", SLURM_CANCELLED },
    { "TIMEOUT", SLURM_TIMEOUT },       { "FAILED", SLURM_FAILED },
    { "OUT_OF_MEMORY", SLURM_FAILED },  { "BOOT_FAIL", SLURM_FAILED },
    { "DEADLINE", SLURM_FAILED },       { "LAUNCH_FAILED", SLURM_FAILED },
    { "RECONFIG_FAIL", SLURM_FAILED },  { "NODE_FAIL", SLURM_NODE_FAILED },
    { "PREEMPTED", SLURM_NODE_FAILED }, { "REVOKED", SLURM_NODE_FAILED },
};

static const char *text_of(struct arena *a, const struct wire_message *m, const char *key)
{
    const char *value = wire_get(m, key);

    return value && *value ? arena_strdup(a, value) : "";
}

static int read_state(const struct wire_message *m, enum slurm_state *out, struct err *e)
{
    const char *word = wire_get(m, "state");

    for (size_t i = 0; word && i < sizeof states / sizeof *states; i++) {
        if (strcmp(word, states[i].word) == 0) {
            *out = states[i].state;
            return 0;
        }
    }
    return err_set(e, EINVAL, "job: 'state' is '%.40s', which no Slurm up to 24.11 has",
                   word ? word : "");
}

static enum slurm_hold read_hold(const struct wire_message *m)
{
    const char *word = wire_get(m, "held");

    if (word && strcmp(word, "user") == 0)
        return HOLD_USER;
    return word && strcmp(word, "admin") == 0 ? HOLD_ADMIN : HOLD_NONE;
}

/* "12", or "12_3" of a task that has no number of its own yet. */
static int read_id(const struct wire_message *m, struct slurm_job *out, struct err *e)
{
    const char *text = wire_get(m, "id");
    const char *bar = text ? strchr(text, '_') : NULL;
    struct slice id = slice_of(text ? text : ""), task = slice_of("");

    out->array = wire_get_long(m, "array", -1);
    out->task = wire_get_long(m, "task", -1);
    if (bar) {
        id.len = (size_t)(bar - text);
        task = slice_of(bar + 1);
    }
    if (text_to_long(id, 1, LONG_MAX, &out->id) < 0 ||
        (bar && text_to_long(task, 0, INT_MAX, &out->task) < 0))
        return err_set(e, EINVAL, "job: 'id' is '%.40s', which is no job's number",
                       text ? text : "");
    if (bar && out->array < 0)
        out->array = out->id;
    return 0;
}

static int read_numbers(const struct wire_message *m, struct slurm_job *out, struct err *e)
{
    const long uid = wire_get_long(m, "uid", -1);

    if (uid < 0 || uid >= (long)UINT_MAX)
        return err_set(e, EINVAL, "job %ld: 'uid' must be a user's number", out->id);
    out->uid = (uid_t)uid;
    out->n_nodes = (int)wire_get_long(m, "n_nodes", 0);
    out->run = (int)wire_get_long(m, "run", 0);
    out->exit_code = (int)wire_get_long(m, "exit", 0);
    out->signal = (int)wire_get_long(m, "signal", 0);
    out->submit_s = wire_get_double(m, "submit_s");
    out->start_s = wire_get_double(m, "start_s");
    out->end_s = wire_get_double(m, "end_s");
    out->cpus = (int)wire_get_long(m, "cpus", 0);
    out->mem_mib = (int)wire_get_long(m, "mem_mib", 0);
    out->limit_s = wire_get_long(m, "limit_s", 0);
    return 0;
}

int slurm_job_read(struct arena *a, const struct wire_message *m, struct slurm_job *out,
                   struct err *e)
{
    int rc;

    *out = (struct slurm_job){ 0 };
    rc = read_id(m, out, e);
    if (rc == 0)
        rc = read_state(m, &out->state, e);
    if (rc == 0)
        rc = read_numbers(m, out, e);
    if (rc < 0)
        return rc;
    out->held = read_hold(m);
    out->partition = text_of(a, m, "partition");
    out->reason = text_of(a, m, "reason");
    out->nodes = text_of(a, m, "nodes");
    out->pin = text_of(a, m, "pin");
    out->gres = text_of(a, m, "gres");
    out->name = text_of(a, m, "name");
    out->comment = text_of(a, m, "comment");
    out->admin = text_of(a, m, "admin");
    out->command = text_of(a, m, "command");
    out->cwd = text_of(a, m, "cwd");
    out->out = text_of(a, m, "out");
    out->features = text_of(a, m, "features");
    return 0;
}

/* A task's number of its own comes only when it is about to run. */
void slurm_number(const struct slurm_job *j, char *out, size_t size)
{
    if (j->task >= 0)
        snprintf(out, size, "%ld_%ld", j->array, j->task);
    else
        snprintf(out, size, "%ld", j->id);
}

void slurm_key(const struct slurm_job *j, char *out, size_t size)
{
    char number[48];

    slurm_number(j, number, sizeof number);
    snprintf(out, size, "%s%s:%.0f", SLURM_KEY, number, j->submit_s);
}

/* ---- nodes ---- */

/* "unknown" is a node of a slurmctld that has just been started: it is not lost. */
static const struct {
    const char *word;
    unsigned flags;
} node_words[] = {
    { "down", SLURM_NODE_DOWN },
    { "invalid", SLURM_NODE_DOWN },
    { "drain", SLURM_NODE_DRAINED },
    { "fail", SLURM_NODE_DRAINED },
    { "maint", SLURM_NODE_DRAINED },
    { "reserved", SLURM_NODE_DRAINED },
    { "powered_down", SLURM_NODE_ASLEEP },
    { "powering_down", SLURM_NODE_ASLEEP | SLURM_NODE_SINKING },
    { "powering_up", SLURM_NODE_WAKING },
    { "allocated", SLURM_NODE_IN_USE },
    { "mixed", SLURM_NODE_IN_USE },
    { "unknown", SLURM_NODE_UNHEARD },
};

static unsigned flags_of(struct slice word)
{
    for (size_t i = 0; i < sizeof node_words / sizeof *node_words; i++)
        if (slice_is(word, node_words[i].word))
            return node_words[i].flags;
    return 0;
}

int slurm_node_read(struct arena *a, const struct wire_message *m, struct slurm_node *out,
                    struct err *e)
{
    const char *at = wire_get(m, "state");
    bool is_silent = false;

    *out = (struct slurm_node){ .name = text_of(a, m, "name"), .gres = text_of(a, m, "gres") };
    out->address = wire_get(m, "address") ? text_of(a, m, "address") : out->name;
    out->reason = text_of(a, m, "reason");
    out->features = text_of(a, m, "features");
    out->cpus = (int)wire_get_long(m, "cpus", 0);
    out->mem_mib = (int)wire_get_long(m, "mem_mib", 0);
    out->limit_s = wire_get_long(m, "limit_s", 0);
    if (!*out->name)
        return err_set(e, EINVAL, "node: 'name' is missing");
    if (!at || !*at)
        return err_set(e, EINVAL, "node %.60s: 'state' is missing", out->name);
    for (struct slice word; slice_next(&at, ',', &word);) {
        if (slice_is(word, "not_responding"))
            is_silent = true;
        else
            out->flags |= flags_of(word);
    }
    if (is_silent && !(out->flags & (SLURM_NODE_ASLEEP | SLURM_NODE_WAKING)))
        out->flags |= SLURM_NODE_DOWN;    // one that wakes is silent, and not lost for that
    return 0;
}

/* ---- comments ---- */

static bool is_hex(struct slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!isdigit((unsigned char)s.at[i]) && !(s.at[i] >= 'a' && s.at[i] <= 'f'))
            return false;
    return true;
}

/* Of "0123456789abcdef-17-1a2b" the 17; -1: of another form. */
static long token_job(struct slice s)
{
    const size_t mark = s.len > 22 && s.at[s.len - 5] == '-' ? 5 : 0;
    long job;

    if (s.len <= 17 || s.len >= SLURM_TOKEN_MAX || s.at[16] != '-' ||
        !is_hex((struct slice){ s.at, 16 }) ||
        (mark && !is_hex((struct slice){ s.at + s.len - 4, 4 })) ||
        text_to_long((struct slice){ s.at + 17, s.len - 17 - mark }, 0, INT_MAX, &job) < 0)
        return -1;
    return job;
}

int slurm_token_job(const char *token, const char *site, int n_jobs)
{
    const long job = token_job(slice_of(token));

    return job >= 0 && job < n_jobs && strncmp(token, site, 16) == 0 ? (int)job : -1;
}

static void copy_token(struct slice s, struct slurm_note *out)
{
    if (token_job(s) >= 0)
        snprintf(out->token, sizeof out->token, "%.*s", (int)s.len, s.at);
}

static void take_number(struct slice s, int *out)
{
    long v;

    if (text_to_long(s, 0, INT_MAX, &v) == 0)
        *out = (int)v;
}

static void take_pair(struct arena *a, struct slice key, struct slice value, struct slurm_note *out)
{
    if (slice_is(key, "token"))
        copy_token(value, out);
    else if (slice_is(key, "at"))
        out->at = arena_strndup(a, value.at, value.len);
    else if (slice_is(key, "gres"))
        out->gres = arena_strndup(a, value.at, value.len);
    else if (slice_is(key, "nodes"))
        take_number(value, &out->n_nodes);
    else if (slice_is(key, "held"))
        out->is_held = slice_is(value, "yes");
    else if (slice_is(key, "failures"))
        take_number(value, &out->n_failures);
    else if (slice_is(key, "asked"))
        take_number(value, &out->asked_run);
    else if (slice_is(key, "secret") && value.len == 32 && is_hex(value))
        snprintf(out->secret, sizeof out->secret, "%.*s", (int)value.len, value.at);
}

/* The next word of 'at', which moves behind it; an empty one at the end. */
static struct slice next_word(const char **at)
{
    struct slice word;

    *at += strspn(*at, " \t");
    word = (struct slice){ *at, strcspn(*at, " \t") };
    *at += word.len;
    return word;
}

/* After "gogh1": pairs, and the word "new". A text of another form ("refused: ...") has neither. */
static void read_admin(struct arena *a, const char *at, struct slurm_note *out)
{
    for (struct slice w = next_word(&at); w.len; w = next_word(&at)) {
        const char *is = memchr(w.at, '=', w.len);

        if (slice_is(w, "new"))
            out->is_new = true;
        else if (is)
            take_pair(a, (struct slice){ w.at, (size_t)(is - w.at) },
                      (struct slice){ is + 1, w.len - (size_t)(is - w.at) - 1 }, out);
        else
            return;
    }
}

/* After "gogh:": of all that a user may write there only the token is read here. */
static void read_comment(const char *at, struct slurm_note *out)
{
    static const char key[] = "token=";
    const size_t n = sizeof key - 1;

    for (struct slice w = next_word(&at); w.len; w = next_word(&at))
        if (w.len > n && strncmp(w.at, key, n) == 0)
            copy_token((struct slice){ w.at + n, w.len - n }, out);
}

void slurm_note_read(struct arena *a, const char *comment, const char *admin,
                     struct slurm_note *out)
{
    *out = (struct slurm_note){ .at = "", .gres = "", .asked_run = -1 };
    if (strncmp(admin, "gogh1", 5) == 0 && (admin[5] == ' ' || !admin[5])) {
        out->is_ours = true;
        read_admin(a, admin + 5, out);
    }
    if (!*out->token && strncmp(comment, "gogh:", 5) == 0) {
        read_comment(comment + 5, out);
        out->is_ours |= *out->token != '\0';
    }
}
