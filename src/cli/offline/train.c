/* train.c - `gogh train`: a model from what a store has measured. */
#include "cli/cmd.h"

#include <cblas.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/text/json.h"
#include "catalog/catalog.h"
#include "cli/offline/contest.h"
#include "cli/offline/learned.h"
#include "estimate/model/model.h"
#include "estimate/network/network.h"
#include "nn/gp.h"
#include "store/store.h"

static const char help[] =
    "Learn from everything that a store has measured: how much speeds and watts differ by site,\n"
    "GPU type, family and workload, over its campaigns where it has three or more, and then on\n"
    "the site's own. The store keeps the model and uses it from then on, if it foresees families\n"
    "of this site no worse than the one in use; 'gogh catalog model' shows it.\n"
    "\n"
    "  --db DB      the store\n"
    "  --out FILE   write the weights there (docs/formats/weights.md); the store stays as it is\n"
    "  --from M     the model to start from and to beat: 'site', what the store has learned (the\n"
    "               default where it has); 'pretrained' (the default elsewhere); a file; 'none'\n"
    "  --seed N     chance: which readings are looked at; 1\n"
    "  --about T    a word on where it is from, which the weights carry\n"
    "  --network    make the network of '--estimator network' instead, which learns from synthetic\n"
    "               sites and needs no store: about a minute; with --out, --seed and --json\n"
    "  --json       the summary as JSON\n"
    "\n"
    "The same store and seed give the same bytes on every machine whose CPU has AVX2 and FMA:\n"
    "OpenBLAS adds up numbers in an order that depends on the CPU, so the command starts itself\n"
    "again with OPENBLAS_CORETYPE=Haswell, unless that variable is set already.\n"
    "\n"
    "Examples:\n"
    "  gogh train --db lab.db\n"
    "  gogh train --db gavel.db --seed 7 --out gavel.weights --json\n"
    "  gogh train --network --out network.weights\n";

static struct options {
    const char *db, *out, *about, *from;
    long seed;
    bool is_network, is_json;
    bool has_contests;    // were held in this training
} given = { .seed = 1 };

static const struct cmd_option options[] = {
    CMD_TEXT("db", given.db),        CMD_TEXT("out", given.out),
    CMD_TEXT("from", given.from),    CMD_WHOLE("seed", given.seed, 0, CMD_SEED_MAX),
    CMD_TEXT("about", given.about),  CMD_FLAG("network", given.is_network),
    CMD_FLAG("json", given.is_json),
};

/* ---- the same arithmetic everywhere ---- */

#define CORETYPE "OPENBLAS_CORETYPE"

static bool can_do_haswell(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

/* OpenBLAS reads the variable when it is loaded, before main: so this process starts anew,
 * once. Where that fails the training goes on as the machine would have it, and the weights
 * carry the name of the arithmetic that they were made with.
 */
static void start_again_as_haswell(char **argv)
{
    if (getenv(CORETYPE) || !can_do_haswell() || strcmp(openblas_get_corename(), "Haswell") == 0)
        return;
    setenv(CORETYPE, "Haswell", 1);
    execv("/proc/self/exe", argv);
    log_warn("starting again with " CORETYPE "=Haswell: %s; the weights will be %s's",
             strerror(errno), openblas_get_corename());
}

/* ---- training ---- */

static void tell(const struct options *o, const struct model *m, double seconds)
{
    const struct comparison *c = &m->comparison;
    const char *where = o->out ? o->out : o->db;

    if (!o->is_json) {
        learned_print(m, o->has_contests);
        if (!isnan(c->champion) && !isnan(c->challenger))
            printf("it %s: error %.4f against %.4f of the one it was to beat\n",
                   c->is_won ? "is no worse, and is used" : "lost, and is not used", c->challenger,
                   c->champion);
        printf("trained in %.1f s; %s %s\n", seconds,
               o->out      ? "written to"
               : c->is_won ? "kept in"
                           : "kept for comparison in",
               where);
        return;
    }
    json_t *j = learned_json(m);
    json_object_set_new(j, "champion", json_number_or_null(c->champion));
    json_object_set_new(j, "challenger", json_number_or_null(c->challenger));
    json_object_set_new(j, "won", json_boolean(c->is_won));
    json_object_set_new(j, "seed", json_integer(o->seed));
    json_object_set_new(j, "seconds", json_real(seconds));
    json_object_set_new(j, "where", json_string(where));
    json_print(j, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
}

static int train(const struct options *o, struct arena *a, const struct catalog *c, struct store *s,
                 struct model **out, struct err *e)
{
    const char *about = o->about ? o->about : arena_printf(a, "gogh train, seed %ld", o->seed);
    struct model *champion = NULL;
    struct examples x;
    int n = 0, rc = model_open(o->from, s, &champion, e);

    if (rc < 0)
        return rc;
    examples_take(c, &x);
    for (int i = 0; i < x.n_campaigns; i++)
        n += x.read[LEARN_SPEEDS][i].n;
    if (n == 0)
        rc = err_set(e, ENOENT,
                     "%s: no speeds were measured, so there is nothing to learn from; 'gogh "
                     "import' first",
                     o->db);
    if (rc == 0)
        rc = model_train(&x, champion, (uint64_t)o->seed, about, out, e);
    if (rc == 0 && o->out)
        (*out)->n_measurements = 0;    // a file is of no site
    given.has_contests = c->n_campaigns > MODEL_CAMPAIGNS_MIN;
    if (rc == 0 && given.has_contests)
        rc = contest_hold(c, (uint64_t)o->seed, *out, e);
    examples_release(&x);
    model_destroy(champion);
    return rc;
}

/* ---- the network ---- */

static int train_network(const struct options *o, struct err *e)
{
    struct progress progress;
    double began_s = clock_stopwatch_s();

    progress_begin(&progress, "training", false);
    struct network *n = network_train(
        &(struct network_options){ .seed = (uint64_t)o->seed, .progress = &progress });
    progress_end(&progress);
    double seconds = clock_stopwatch_s() - began_s;
    int rc = network_write(n, o->out, e);
    if (rc == 0 && o->is_json)
        json_print(json_pack("{s:s, s:i, s:I, s:f, s:s}", "about", network_about(n), "weights",
                             network_n_weights(n), "seed", (json_int_t)o->seed, "seconds", seconds,
                             "where", o->out),
                   JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    else if (rc == 0)
        printf("%s: %d weights\ntrained in %.1f s; written to %s\n", network_about(n),
               network_n_weights(n), seconds, o->out);
    network_destroy(n);
    return rc;
}

static int check(const struct cmd_call *call)
{
    const struct options *o = &given;

    if (o->is_network && (o->db || o->from || o->about))
        return cmd_misuse(call->cmd, "--network learns from synthetic sites: it goes with --out, "
                                     "--seed and --json");
    if (o->is_network)
        return o->out ? 0 : cmd_misuse(call->cmd, "--network: say where to: --out FILE");
    return given.db ? 0 : cmd_misuse(call->cmd, "say which store to learn from: --db DB");
}

static int run(const struct cmd_call *call, struct err *e)
{
    const struct options *o = &given;
    struct catalog c;
    struct store *s = NULL;
    struct model *m = NULL;
    struct clock clock = clock_real();

    start_again_as_haswell(call->argv);
    nn_init();
    if (o->is_network)
        return train_network(o, e);
    double began_s = clock_stopwatch_s();
    catalog_init(&c);
    int rc = store_open(o->db, o->out ? STORE_READ : STORE_WRITE, &s, e);
    if (rc == 0)
        rc = catalog_load(&c, s, e);
    if (rc == 0)
        rc = train(o, call->arena, &c, s, &m, e);
    if (rc == 0)
        rc = o->out ? model_write(m, o->out, e)
                    : model_keep(m, s, m->comparison.is_won ? MODEL_CHAMPION : MODEL_CHALLENGER,
                                 clock_now_s(&clock), e);
    if (rc == 0)
        tell(o, m, clock_stopwatch_s() - began_s);
    model_destroy(m);
    catalog_release(&c);
    store_close(s);
    return rc;
}

const struct cmd cmd_train = {
    .name = "train",
    .synopsis = "train {--db DB [--from M] [--about TEXT] | --network} [--out FILE] [--seed N] "
                "[--json]",
    .summary = "learn from everything that was measured",
    .help = help,
    CMD_OPTIONS(options),
    .check = check,
    .run = run,
};
