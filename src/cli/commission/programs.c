#include "cli/commission/programs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/program.h"
#include "base/text/buf.h"
#include "base/text/file.h"
#include "base/text/json.h"
#include "base/text/words.h"
#include "daemon/http/shapes.h"

#define FILE_MAX (1 << 20)

/* ---- own programs ---- */

static int set_key(struct words *w, const struct word *word, struct site_program *out,
                   struct err *e)
{
    const char *value = words_name(w, word->value);

    if (value && slice_is(word->key, "workload"))
        out->workload = value;
    else if (value && slice_is(word->key, "precision"))
        out->precision = value;
    else if (value && slice_is(word->key, "new") && strcmp(value, "yes") == 0)
        out->is_new = true;
    else if (!slice_is(word->key, "batch") ||
             text_to_long(word->value, 1, 10000000, &out->batch) < 0)
        return err_set(e, EINVAL,
                       "%s:%d: '%.*s': want workload=NAME, batch=N (a whole number from 1), "
                       "precision=P or new=yes, then -- and the command",
                       w->name, w->line, (int)(word->key.len + 1 + word->value.len),
                       word->key.at ? word->key.at : word->value.at);
    return 0;
}

/* A word of the command as it stood there. */
static const char *word_text(struct arena *a, const struct word *word)
{
    if (!word->key.at)
        return arena_strndup(a, word->value.at, word->value.len);
    return arena_printf(a, "%.*s=%.*s", (int)word->key.len, word->key.at, (int)word->value.len,
                        word->value.at);
}

static int read_line(struct arena *a, struct words *w, struct site_program *out, struct err *e)
{
    int i = 0;

    out->line = w->line;
    for (; i < w->n && !(w->word[i].key.at == NULL && slice_is(w->word[i].value, "--")); i++) {
        if (w->word[i].key.at == NULL)
            return err_set(e, EINVAL,
                           "%s:%d: '%.*s' stands before --; write workload=NAME -- COMMAND",
                           w->name, w->line, (int)w->word[i].value.len, w->word[i].value.at);
        if (set_key(w, &w->word[i], out, e) < 0)
            return -EINVAL;
    }
    if (out->workload == NULL)
        return err_set(e, EINVAL, "%s:%d: which workload? Write workload=NAME before the command",
                       w->name, w->line);
    if (i + 1 >= w->n)
        return err_set(e, EINVAL, "%s:%d: which command? Write it behind --", w->name, w->line);
    out->argv = ARENA_ARRAY(a, const char *, (size_t)(w->n - i));
    for (i++; i < w->n; i++) {
        const char *word = word_text(a, &w->word[i]);

        if (strcmp(word, "---") == 0)
            return err_set(e, EINVAL,
                           "%s:%d: '---' parts programs in gogh-pair; put the command in a script",
                           w->name, w->line);
        out->argv[out->n_argv++] = word;
    }
    return 0;
}

int programs_parse(struct arena *a, const char *name, const char *text, size_t len,
                   struct programs *out, struct err *e)
{
    struct words w;
    int rc;

    *out = (struct programs){ .list = ARENA_ARRAY(a, struct site_program, PROGRAMS_MAX),
                              .are_own = true };
    words_open(&w, a, name, text, len);
    while ((rc = words_next(&w, e)) > 0) {
        if (out->n == PROGRAMS_MAX)
            return err_set(e, EINVAL, "%s:%d: at most %d programs; leave out some", name, w.line,
                           PROGRAMS_MAX);
        rc = read_line(a, &w, &out->list[out->n++], e);
        if (rc < 0)
            return rc;
    }
    if (rc == 0 && out->n == 0)
        return err_set(e, EINVAL, "%s: no program; write workload=NAME -- COMMAND", name);
    return rc;
}

int programs_read(struct arena *a, const char *path, struct programs *out, struct err *e)
{
    const char *text;
    size_t len;
    int rc = file_read_text(a, path, NULL, FILE_MAX, &text, &len, e);

    return rc < 0 ? rc : programs_parse(a, path, text, len, out, e);
}

/* ---- those that ship ---- */

static int take_listed(struct arena *a, const char *program, const json_t *one,
                       struct programs *out, struct err *e)
{
    const char *name = json_text_of(one, "name");
    double batch = json_number_of(one, "batch");
    struct site_program *p = &out->list[out->n];

    if (name == NULL || !text_is_name(slice_of(name)) || out->n == PROGRAMS_MAX)
        return err_set(e, EINVAL, "%s --list --json: want at most %d objects with a \"name\"",
                       program, PROGRAMS_MAX);
    out->n++;
    *p = (struct site_program){ .workload = arena_strdup(a, name), .is_new = true, .n_argv = 2 };
    p->batch = batch >= 1 && batch <= 1e7 ? (long)batch : 0;
    p->argv = ARENA_ARRAY(a, const char *, 2);
    p->argv[0] = arena_strdup(a, program);
    p->argv[1] = p->workload;
    return 0;
}

int programs_parse_list(struct arena *a, const char *program, const char *text, size_t len,
                        struct programs *out, struct err *e)
{
    json_t *list = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
    int rc = 0;

    *out = (struct programs){ .list = ARENA_ARRAY(a, struct site_program, PROGRAMS_MAX) };
    if (!json_is_array(list))
        rc = err_set(e, EINVAL, "%s --list --json: this is no list of workloads", program);
    for (size_t i = 0; i < json_array_size(list) && rc == 0; i++)
        rc = take_listed(a, program, json_array_get(list, i), out, e);
    json_decref(list);
    return rc;
}

/* What a program of ours prints. */
static int read_output(const char *path, struct buf *out, struct err *e)
{
    int p[2], status = 0;
    char bytes[4096];
    ssize_t n;

    if (pipe(p) < 0)
        return err_set(e, errno, "a pipe to %s: %s", path, strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        dup2(p[1], STDOUT_FILENO);
        close(p[0]);
        close(p[1]);
        execl(path, path, "--list", "--json", (char *)NULL);
        _exit(127);
    }
    close(p[1]);
    while (pid > 0 && (n = read(p[0], bytes, sizeof bytes)) > 0)
        buf_append(out, bytes, (size_t)n);
    close(p[0]);
    if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0)
        return err_set(e, EIO, "%s --list --json does not say what it can run; see what it prints",
                       path);
    return 0;
}

int programs_shipped(struct arena *a, struct programs *out, struct err *e)
{
    char room[PROGRAM_PATH_SIZE];
    const char *path = program_find("gogh-burn", "GOGH_BURN", GOGH_LIBEXEC, room);
    struct buf text;

    if (access(path, X_OK) < 0)
        return err_set(e, ENOENT,
                       "%s: %s; install it, or give programs of your own with --programs FILE",
                       path, strerror(errno));
    buf_init(&text, FILE_MAX);
    int rc = read_output(path, &text, e);
    if (rc == 0)
        rc = programs_parse_list(a, path, buf_text(&text), text.len, out, e);
    buf_release(&text);
    return rc;
}

/* ---- for the daemon ---- */

json_t *programs_json(const struct programs *p)
{
    json_t *list = json_array();

    for (int i = 0; i < p->n; i++) {
        const struct site_program *one = &p->list[i];
        json_t *o = json_pack("{s:s}", "workload", one->workload);

        if (one->batch > 0)
            json_object_set_new(o, "batch", json_integer(one->batch));
        if (one->precision != NULL)
            json_object_set_new(o, "precision", json_string(one->precision));
        if (one->is_new)
            json_object_set_new(o, "new_workload", json_true());
        json_array_append_new(list, o);
    }
    return list;
}

const struct site_program *programs_find(const struct programs *p, const char *name)
{
    for (int i = 0; i < p->n; i++)
        if (p->list[i].name != NULL && name != NULL && strcmp(p->list[i].name, name) == 0)
            return &p->list[i];
    return NULL;
}
