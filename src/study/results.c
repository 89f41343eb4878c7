#include "study/results.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text/file.h"
#include "study/scenario/data.h"
#include "study/results_inner.h"

#define RUN_BYTES_MAX (64 << 20)    // a run's file has some 100 KB; more is somebody else's

const char *results_build(struct arena *a)
{
    char hex[65] = "unknown";

    (void)data_file_digest("/proc/self/exe", hex, NULL);
    return arena_strdup(a, hex);
}

/* ---- the directory ---- */

static bool is_ours_half_written(const char *name)
{
    static const char end[] = ".tmp";
    const size_t len = strlen(name), end_len = sizeof end - 1;

    return len > end_len && strcmp(name + len - end_len, end) == 0 &&
           (strstr(name, ".json.") != NULL || strstr(name, ".csv.") != NULL ||
            strstr(name, ".html.") != NULL);
}

/* What file_write had begun when its process was killed. */
static void clear_away(const char *dir)
{
    DIR *d = opendir(dir);
    const struct dirent *entry;

    if (d == NULL)
        return;
    while ((entry = readdir(d)) != NULL) {
        if (is_ours_half_written(entry->d_name))
            (void)unlinkat(dirfd(d), entry->d_name, 0);
    }
    closedir(d);
}

static int make_directory(const char *path, struct err *e)
{
    struct stat st;

    if (mkdir(path, 0777) == 0)
        return 0;
    if (errno != EEXIST)
        return err_set(e, errno, "%s: cannot make this directory: %s", path, strerror(errno));
    if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode))
        return err_set(e, ENOTDIR, "%s: is a file; --out wants a directory", path);
    return 0;
}

static int lock(const char *path, const char *dir, struct err *e)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);

    if (fd < 0)
        return err_set(e, errno, "%s: cannot write: %s", path, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    close(fd);
    return err_set(e, EBUSY,
                   "%s: another study is at work there; wait for it, or use another --out", dir);
}

int results_lock(struct results *b, struct err *e)
{
    struct arena a;

    arena_init(&a);
    const char *runs = arena_printf(&a, "%s/runs", b->dir);
    int rc = make_directory(b->dir, e);
    if (rc == 0)
        rc = make_directory(runs, e);
    if (rc == 0)
        rc = lock(arena_printf(&a, "%s/lock", runs), b->dir, e);
    if (rc >= 0) {
        b->is_locked = true;
        b->lock = rc;
        clear_away(b->dir);
        clear_away(runs);
    }
    arena_release(&a);
    return rc < 0 ? rc : 0;
}

void results_unlock(struct results *b)
{
    if (b->is_locked)
        close(b->lock);
    b->is_locked = false;
}

/* ---- runs ---- */

static const char *path_of(struct arena *a, const struct results *b, const struct study_run *k)
{
    return arena_printf(a, "%s/runs/%s.json", b->dir, study_run_name(a, k));
}

static bool says(const json_t *j, const char *key, const char *want)
{
    const char *got = json_string_value(json_object_get(j, key));

    return got != NULL && strcmp(got, want) == 0;
}

static const char *digest_of(const struct results *b, const struct scenario *s)
{
    for (int i = 0; i < b->n_data; i++) {
        if (b->data[i].scenario == s)
            return b->data[i].digest;
    }
    return "none";
}

/* Was it made by this build of this version from this data? */
static bool is_of(const struct results *b, const struct study_run *k, const json_t *j)
{
    return b->takes_any || (says(j, "version", b->version) && says(j, "build", b->build) &&
                            says(j, "data", digest_of(b, k->scenario)));
}

enum found { FOUND_NOTHING, FOUND_GARBAGE, FOUND_ANOTHERS, FOUND_RUN };

/* What lies where the run should; fills 'row' where it is that. */
static enum found find(struct arena *a, const struct results *b, const struct study_run *k,
                       struct results_row *row)
{
    enum found found = FOUND_NOTHING;
    struct arena scratch;
    const char *text;
    size_t len;

    arena_init(&scratch);
    if (file_read(&scratch, path_of(&scratch, b, k), NULL, RUN_BYTES_MAX, &text, &len, NULL) == 0) {
        json_t *j = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
        const json_t *data = json_object_get(j, "data");

        found = FOUND_GARBAGE;
        if (says(j, "run", study_run_name(&scratch, k)) && json_is_string(data) &&
            results_read_back(a, json_object_get(j, "result"), json_object_get(j, "details"),
                              &row->result))
            found = is_of(b, k, j) ? FOUND_RUN : FOUND_ANOTHERS;
        row->key = *k;
        /* Older files name the data also where nobody reads it. */
        if (found == FOUND_RUN)
            row->digest = scenario_needs_data(k->scenario)
                              ? arena_strdup(a, json_string_value(data))
                              : "none";
        json_decref(j);
    }
    arena_release(&scratch);
    return found;
}

bool results_has(struct arena *a, const struct results *b, const struct study_run *k,
                 struct study_result *out)
{
    struct results_row row = { 0 };
    bool is_there = find(a, b, k, &row) == FOUND_RUN;

    if (is_there)
        *out = row.result;
    return is_there;
}

/* The digests of all rows, each once. */
static const char *join_digests(struct arena *a, const struct results *b)
{
    const char *all = "";

    for (int i = 0; i < b->n_rows; i++) {
        const char *one = b->rows[i].digest;

        if (strcmp(one, "none") != 0 && strstr(all, one) == NULL)
            all = arena_printf(a, "%s%s%s", all, all[0] != '\0' ? ", " : "", one);
    }
    return all[0] != '\0' ? all : "none";
}

void results_fill(struct arena *a, struct results *b, const struct study_run *keys, int n_keys)
{
    b->rows = ARENA_ARRAY(a, struct results_row, (size_t)n_keys);
    b->n_rows = 0;
    b->broken = NULL;
    for (int i = 0; i < n_keys; i++) {
        enum found found = find(a, b, &keys[i], &b->rows[b->n_rows]);

        b->n_rows += found == FOUND_RUN;
        if (found == FOUND_GARBAGE && b->broken == NULL)
            b->broken = path_of(a, b, &keys[i]);
    }
    b->digest = join_digests(a, b);
}

int results_keep(const struct results *b, const struct study_run *k, const struct study_result *r,
                 struct err *e)
{
    struct arena a;

    arena_init(&a);
    json_t *j = json_pack("{s:s, s:s, s:s, s:s, s:o, s:o}", "run", study_run_name(&a, k), "version",
                          b->version, "build", b->build, "data", digest_of(b, k->scenario),
                          "result", results_row_json(k, r), "details", results_details_json(r));
    assert(j != NULL);
    /* 17 digits read back as the same number. */
    char *text = json_dumps(j, JSON_COMPACT | JSON_REAL_PRECISION(17));
    assert(text != NULL);
    int rc = file_write(path_of(&a, b, k), text, strlen(text), e);
    free(text);
    json_decref(j);
    arena_release(&a);
    return rc;
}
