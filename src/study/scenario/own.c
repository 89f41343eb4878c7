#include "study/scenario/own.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text/buf.h"
#include "base/text/file.h"
#include "catalog/catalog.h"
#include "sim/hindsight.h"
#include "sim/rerun/rerun.h"
#include "sim/sim.h"
#include "sim/world/truth.h"
#include "store/store.h"
#include "study/scenario/text.h"

static const char *const usual_policies[] = { "fifo-fastest", "fifo-promise", "gavel", "gogh" };
#define N_USUAL ((int)(sizeof usual_policies / sizeof *usual_policies))

/* From which intervals are shown (spread.h). */
#define USUAL_SEEDS 4

/* Of a text file that is written. */
#define TEXT_BYTES_MAX ((size_t)1 << 30)

/* ---- a record as files ---- */

struct record_files {
    struct arena *arena;
    const char *cluster, *trace, *truth;    // paths
};

static int write_text(const char *path, const struct buf *text, int rc, struct err *e)
{
    if (rc < 0)
        return err_set(e, EFBIG, "%s: would be too long", path);
    return file_write(path, buf_text(text), text->len, e);
}

static int write_inputs(const struct record_files *f, const struct cluster *cl,
                        const struct trace *t, struct err *e)
{
    struct buf text;

    buf_init(&text, TEXT_BYTES_MAX);
    int rc = write_text(f->cluster, &text, cluster_write(cl, &text), e);
    buf_clear(&text);
    if (rc == 0)
        rc = write_text(f->trace, &text, trace_write(t, &text), e);
    buf_release(&text);
    return rc;
}

/* To who has no descriptor nothing is fitted: what is believed of it alone, on a type where it was
 * not measured, stands for it.
 */
static int add_believed(struct catalog *to, const struct truth *believed, struct err *e)
{
    const struct catalog *c = believed->catalog;
    int rc = 0;

    for (int w = 0; w < c->n_workloads && rc == 0; w++) {
        for (int t = 0; t < c->n_types && isnan(c->workloads[w].flop_per_sample) && rc == 0; t++) {
            const struct measurement m = {
                .key = { .workload = catalog_find_workload(to, c->workloads[w].name),
                         .gpu_type = catalog_find_type_alike(to, c->types[t].name),
                         .neighbour = -1,
                         .n_gpus = 1 },
                .fits = true,
                .throughput = truth_speed(believed, w, t),
                .watts = truth_watts(believed, w, t),
                .duration_s = NAN,
                .noise = NAN,
            };

            if (m.throughput > 0 && catalog_cell(to, m.key) == NULL)
                rc = catalog_record(to, &m, 0, e);
        }
    }
    return rc;
}

/* What was measured, and what is believed of those that nothing else is known of. */
static int fill_truth(struct catalog *to, const struct rerun_site *past, struct err *e)
{
    struct truth believed = { 0 };
    int rc = sim_adopt(to, past->catalog, NULL, e);

    if (rc == 0)
        rc = truth_from_beliefs(&believed, past->catalog, past->est, e);
    if (rc == 0)
        rc = catalog_begin(to, e);
    if (rc == 0)
        rc = catalog_end(to, add_believed(to, &believed, e), e);
    truth_release(&believed);
    return rc;
}

/* In a store of its own, made anew. */
static int write_truth(const struct record_files *f, const struct rerun_site *past, struct err *e)
{
    struct store *s = NULL;
    struct catalog c;

    if (unlink(f->truth) < 0 && errno != ENOENT)
        return err_set(e, errno, "%s: cannot be made anew: %s", f->truth, strerror(errno));
    catalog_init(&c);
    int rc = store_open(f->truth, STORE_CREATE, &s, e);
    if (rc == 0)
        rc = catalog_load(&c, s, e);
    if (rc == 0)
        rc = fill_truth(&c, past, e);
    catalog_release(&c);
    store_close(s);
    return rc;
}

static int take_record(void *self, const struct rerun_site *past, struct err *e)
{
    const struct record_files *f = self;
    const struct hindsight all = { .state = past->state,
                                   .catalog = past->catalog,
                                   .from_s = -INFINITY,
                                   .to_s = INFINITY,
                                   .n_jobs_max = INT_MAX };
    struct cluster cl;
    struct trace t;
    int rc = hindsight_cluster(f->arena, past->state, past->catalog, past->settings, &cl, e);

    if (rc == 0)
        rc = hindsight_trace(f->arena, &all, &cl, &t, e);
    if (rc == 0)
        rc = write_inputs(f, &cl, &t, e);
    return rc < 0 ? rc : write_truth(f, past, e);
}

static int make_directory(const char *path, struct err *e)
{
    if (mkdir(path, 0777) < 0 && errno != EEXIST)
        return err_set(e, errno, "%s: cannot make this directory: %s", path, strerror(errno));
    return 0;
}

static int make_record(struct arena *a, const struct own_options *o, const char *dir,
                       struct record_files *f, struct err *e)
{
    int rc = access(o->record, R_OK) < 0
                 ? err_set(e, errno, "%s: cannot be read: %s", o->record, strerror(errno))
                 : make_directory(o->dir, e);

    if (rc == 0)
        rc = make_directory(dir, e);
    return rc < 0 ? rc : rerun_end(a, o->record, take_record, f, e);
}

static int open_record(struct arena *a, const struct own_options *o, struct own_options *out,
                       struct err *e)
{
    const char *dir = arena_printf(a, "%s/record", o->dir);
    struct record_files f = { .arena = a,
                              .cluster = arena_printf(a, "%s/site.cluster", dir),
                              .trace = arena_printf(a, "%s/site.trace", dir),
                              .truth = arena_printf(a, "%s/site.db", dir) };
    int rc = o->is_made ? 0 : make_record(a, o, dir, &f, e);

    *out = (struct own_options){
        .cluster = o->cluster != NULL ? o->cluster : f.cluster,
        .trace = f.trace,
        .truth = o->truth != NULL ? o->truth : f.truth,
    };
    return rc;
}

/* ---- the scenario ---- */

int own_absolute(struct arena *a, const char **path, struct err *e)
{
    char whole[PATH_MAX];

    if (*path == NULL)
        return 0;
    if (realpath(*path, whole) == NULL)
        return err_set(e, errno, "%s: cannot be read: %s", *path, strerror(errno));
    *path = arena_strdup(a, whole);
    return 0;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* A word as a shell takes it. */
static const char *shell_word(struct arena *a, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_./,:=+@%-";
    const char *quoted = "'";

    if (word[0] != '\0' && word[strspn(word, plain)] == '\0')
        return word;
    for (const char *end; (end = strchr(word, '\'')) != NULL; word = end + 1)
        quoted = arena_printf(a, "%s%.*s'\\''", quoted, (int)(end - word), word);
    return arena_printf(a, "%s%s'", quoted, word);
}

static const char *option(struct arena *a, const char *name, const char *value)
{
    return value != NULL ? arena_printf(a, " %s %s", name, shell_word(a, value)) : "";
}

static const char *command_of(struct arena *a, const struct own_options *o)
{
    const char *all =
        arena_printf(a, "%s%s%s%s%s%s%s", option(a, "--cluster", o->cluster),
                     option(a, "--trace", o->trace), option(a, "--sacct", o->sacct),
                     option(a, "--record", o->record), option(a, "--truth", o->truth),
                     option(a, "--partition", o->partition), option(a, "--workload", o->workload));

    return all + (all[0] == ' ');
}

/* With power limits where the site's plans may set them. */
static int limits_of(struct arena *a, struct scenario *s, struct err *e)
{
    struct cluster cl;
    int rc = cluster_parse(a, s->cluster_file, s->cluster, strlen(s->cluster), &cl, e);

    s->has_limits = rc == 0 && cl.settings.power_limits != 0;
    return rc;
}

int scenario_own(struct arena *a, const struct own_options *o, struct scenario *out, struct err *e)
{
    struct own_options is = *o;
    int rc = o->record != NULL ? open_record(a, o, &is, e) : 0;

    *out = (struct scenario){
        .name = "site",
        .command = command_of(a, o),
        .truth = is.truth != NULL ? TRUTH_STORE : TRUTH_BUILTIN,
        .truth_file = is.truth,
        .jobs = is.sacct != NULL ? JOBS_SACCT : JOBS_TRACE,
        .jobs_file = is.sacct != NULL ? is.sacct : is.trace,
        .partition = is.partition,
        .workload = is.workload,
        .served = 1.0 / 3,
        .n_policies = N_USUAL,
        .policies = usual_policies,
        .first_seed = SCENARIO_FIRST_SEED,
        .n_seeds = USUAL_SEEDS,
    };
    if (rc == 0)
        rc = own_absolute(a, &out->jobs_file, e);
    if (rc == 0)
        rc = own_absolute(a, &out->truth_file, e);
    if (rc == 0)
        rc = own_absolute(a, &is.cluster, e);
    if (rc == 0)
        rc = scenario_use_cluster(a, is.cluster, out, e);
    if (rc < 0)
        return rc;
    out->title =
        arena_printf(a, "%.90s on %.90s", base_name(o->record != NULL ? o->record : out->jobs_file),
                     base_name(is.cluster));
    return limits_of(a, out, e);
}
