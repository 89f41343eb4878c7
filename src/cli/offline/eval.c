/* eval.c - `gogh eval`: how well newcomers would have been predicted here. */
#include "cli/cmd.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/text/text.h"
#include "catalog/catalog.h"
#include "estimate/model/model.h"
#include "estimate/serving.h"
#include "cli/offline/eval_serving.h"
#include "cli/table.h"
#include "sim/eval/eval.h"
#include "sim/eval/serving.h"
#include "store/store.h"

static const char help[] =
    "Hold out a part of what a store has measured, learn from the rest, reveal a few of the\n"
    "newcomer's measurements, and compare predictions of all others with the truth. Every\n"
    "method has a row; 'gogh' is what the daemon would use.\n"
    "\n"
    "  --db DB              the store\n"
    "  --split WHAT         hold out one workload (job, the default), all workloads of its\n"
    "                       family (family), or one GPU type (gpu); or take each campaign of the\n"
    "                       store (campaign), or one of them (site), for a site never seen: what\n"
    "                       was learned elsewhere meets a few of its cells, and one family after\n"
    "                       another is held out; or hold out what serves (serving), and foresee\n"
    "                       its step times by batch, alone and beside a copy of itself\n"
    "  --model M            what was learned elsewhere: 'pretrained' (the default), which has\n"
    "                       seen published campaigns; a file of 'gogh train'; 'others', of the\n"
    "                       store's other campaigns but for those of the same jobs, gavel-a and\n"
    "                       gavel-b ('campaign' has no other, 'serving' begins with it); or\n"
    "                       'none'\n"
    "  --campaign NAME      the one that is the site; its own. Of 'serving': all with servers\n"
    "  --site-cells LIST    how many cells of the site's other families are revealed: ascending\n"
    "                       numbers; 0,5,10,40\n"
    "  --measurements LIST  how many are revealed of the newcomer: ascending numbers; 0,1,3,5\n"
    "  --seeds N            sequences of measurements for each workload; 8\n"
    "  --seed N             of the draws and the fits; 1\n"
    "  --choose HOW         which are revealed: random (the default), or active: the most\n"
    "                       informative of a random half\n"
    "  --estimator NAME     rows of this one and of 'gogh' only: gogh, hierarchical, network, mean or\n"
    "                       roofline\n"
    "  --dump CSV           also write every scored prediction\n"
    "  --threads N          folds at once; as many as there are processors. The output\n"
    "                       does not depend on it\n"
    "  --json               as JSON\n"
    "\n"
    "Figures are means over workloads and sequences: errors of speeds as fractions, of\n"
    "slowdowns (also of the neighbour's: partner) as differences, rank correlation of\n"
    "speeds, how often the faster of two GPU types is told, and the share inside their 90 %\n"
    "interval. docs/formats/outputs.md defines them.\n"
    "\n"
    "Examples:\n"
    "  gogh eval --db gavel.db --split family --measurements 0,1,3\n"
    "  gogh eval --db gavel.db --split job --dump job.csv --json\n"
    "  gogh eval --db gavel.db --choose active --seeds 4\n"
    "  gogh eval --db all.db --split campaign --site-cells 0,10,40 --measurements 0 --seeds 2\n"
    "  gogh eval --db all.db --split site --campaign zeus --site-cells 40 --json\n"
    "  gogh eval --db all.db --split gpu --campaign zeus --measurements 0\n"
    "  gogh eval --db all.db --split serving --campaign parvagpu --json\n";

enum { LIST_MAX = 16 };

static struct options {
    const char *db, *split, *campaign, *site_cells, *measurements, *choose, *estimator, *dump,
        *model;
    long seeds, seed, threads;    // threads 0: as many as there are processors
    bool is_json;
    int k[LIST_MAX], n[LIST_MAX];
    struct eval_options eval;
} given = { .split = "job", .measurements = "0,1,3,5", .choose = "random", .seeds = 8, .seed = 1 };

static const struct cmd_option options[] = {
    CMD_TEXT("db", given.db),
    CMD_TEXT("split", given.split),
    CMD_TEXT("model", given.model),
    CMD_TEXT("campaign", given.campaign),
    CMD_TEXT("site-cells", given.site_cells),
    CMD_TEXT("measurements", given.measurements),
    CMD_WHOLE("seeds", given.seeds, 1, 1000),
    CMD_WHOLE("seed", given.seed, 0, CMD_SEED_MAX),
    CMD_TEXT("choose", given.choose),
    CMD_TEXT("estimator", given.estimator),
    CMD_TEXT("dump", given.dump),
    CMD_WHOLE("threads", given.threads, 1, 1024),
    CMD_FLAG("json", given.is_json),
};

/* ---- the line ---- */

/* "0,1,3": numbers that grow. */
static bool parse_list(const char *text, int most, int *list, int *n)
{
    *n = 0;
    for (;;) {
        size_t len = strcspn(text, ",");
        long v;
        if (*n == LIST_MAX || text_to_long((struct slice){ text, len }, 0, most, &v) < 0 ||
            (*n > 0 && v <= list[*n - 1]))
            return false;
        list[(*n)++] = (int)v;
        if (text[len] == '\0')
            return true;
        text += len + 1;
    }
}

static long n_processors(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);

    return n < 1 ? 1 : n;
}

static int check_list(const struct cmd_call *call, const char *option, const char *text, int most,
                      int *list, int *n)
{
    return parse_list(text, most, list, n)
               ? 0
               : cmd_misuse(call->cmd,
                            "%s wants up to %d ascending numbers from 0 to %d with commas between, "
                            "as 0,1,3, not '%s'",
                            option, LIST_MAX, most, text);
}

/* Without one all methods have rows. */
static int check_estimator(const struct cmd_call *call, const char *name, unsigned *methods)
{
    static const enum eval_method estimators[] = { EVAL_GOGH, EVAL_HIERARCHICAL, EVAL_NETWORK,
                                                   EVAL_MEAN, EVAL_ROOFLINE };

    *methods = 0;
    if (name == NULL)
        return 0;
    for (size_t i = 0; i < sizeof estimators / sizeof *estimators; i++)
        if (strcmp(name, eval_method_names[estimators[i]]) == 0)
            *methods = 1U << estimators[i] | 1U << EVAL_GOGH;
    return *methods
               ? 0
               : cmd_misuse(
                     call->cmd,
                     "--estimator wants gogh, hierarchical, network, mean or roofline, not '%s'",
                     name);
}

static bool is_serving(const struct options *o)
{
    return strcmp(o->split, "serving") == 0;
}

static int check(const struct cmd_call *call)
{
    struct options *o = &given;
    struct eval_options *eval = &o->eval;
    int split = text_find(eval_split_names, EVAL_SPLITS, o->split),
        choice = text_find(eval_choice_names, EVAL_CHOICES, o->choose);

    if (o->db == NULL)
        return cmd_misuse(call->cmd, "say which store: --db DB");
    if (is_serving(o)) {
        o->model = o->model ? o->model : "others";
        return o->dump ? cmd_misuse(call->cmd, "--split serving has no --dump") : 0;
    }
    if (split < 0)
        return cmd_misuse(
            call->cmd, "--split wants job, family or gpu, campaign or site, or serving, not '%s'",
            o->split);
    if (choice < 0)
        return cmd_misuse(call->cmd, "--choose wants random or active, not '%s'", o->choose);
    int rc = check_list(call, "--measurements", o->measurements, EVAL_K_MAX, o->k, &eval->n_k);
    if (o->site_cells && split < EVAL_PARTS)
        log_warn("--site-cells is for --split campaign and site: all else of the site is known");
    if (rc == 0)
        rc = check_list(call, "--site-cells", o->site_cells ? o->site_cells : "0,5,10,40",
                        EVAL_N_MAX, o->n, &eval->n_n);
    if (rc == 0)
        rc = check_estimator(call, o->estimator, &eval->methods);
    if (rc == 0 && split == EVAL_CAMPAIGN && o->model && strcmp(o->model, "others") != 0)
        rc = cmd_misuse(call->cmd, "--split campaign learns from the others, not from --model");
    if (!o->model)
        o->model = split == EVAL_CAMPAIGN ? "others" : "pretrained";
    if (rc == 0 && split == EVAL_CAMPAIGN && o->campaign)
        rc = cmd_misuse(call->cmd,
                        "--split campaign takes each in turn; --campaign goes with others");
    eval->split = (enum eval_split)split;
    eval->choice = (enum eval_choice)choice;
    eval->k = o->k;
    eval->n = o->n;
    eval->n_sequences = (int)o->seeds;
    eval->seed = (uint64_t)o->seed;
    eval->n_threads = (int)(o->threads > 0 ? o->threads : n_processors());
    eval->keeps_predictions = o->dump != NULL;
    return rc;
}

/* ---- output ---- */

static bool is_of_sites(const struct options *o)
{
    return o->eval.split >= EVAL_PARTS;
}

static json_t *whole_or_null(int n)
{
    return n < 0 ? json_null() : json_integer(n);
}

/* NULL: of no campaign, or of all. */
static const char *campaign_of(const struct catalog *c, const struct eval_row *row)
{
    return row->campaign < 0 ? NULL : c->campaigns[row->campaign];
}

/* Those that were the site, in the order of their rows. */
static json_t *campaigns_of(const struct catalog *c, const struct eval_result *r)
{
    json_t *names = json_array();

    for (int i = 0; i < r->n_rows; i++)
        if (r->rows[i].campaign >= 0 && (i == 0 || r->rows[i].campaign != r->rows[i - 1].campaign))
            json_array_append_new(names, json_string(campaign_of(c, &r->rows[i])));
    return names;
}

static void print_json(const struct options *o, const struct catalog *c,
                       const struct eval_result *r)
{
    json_t *rows = json_array();

    for (int i = 0; i < r->n_rows; i++) {
        const struct eval_row *row = &r->rows[i];
        json_t *j = json_pack("{s:o, s:i, s:s}", "n", whole_or_null(row->n), "k", row->k, "method",
                              row->method);
        if (is_of_sites(o))
            json_object_set_new(j, "campaign", json_pack("s?", campaign_of(c, row)));
        for (int f = 0; f < EVAL_FIGURES; f++)
            json_object_set_new(j, eval_figure_names[f], json_number_or_null(row->figure[f]));
        json_array_append_new(rows, j);
    }
    json_t *all = json_pack("{s:s, s:s, s:s, s:I, s:I, s:i, s:i}", "split", o->split, "model",
                            o->model, "choose", o->choose, "seeds", (json_int_t)o->seeds, "seed",
                            (json_int_t)o->seed, "workloads", r->n_workloads, "folds", r->n_folds);
    json_object_set_new(all, "campaigns", campaigns_of(c, r));
    json_object_set_new(all, "rows", rows);
    json_print(all, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
}

static bool is_told(const struct eval_result *r, int figure)
{
    for (int i = 0; i < r->n_rows; i++)
        if (isfinite(r->rows[i].figure[figure]))
            return true;
    return false;
}

static int width_of(int figure)
{
    int n = (int)strlen(eval_figure_names[figure]);

    return n > 13 ? n : 13;
}

static void print_row(const struct options *o, const struct eval_result *r,
                      const struct eval_row *row)
{
    if (is_of_sites(o))
        printf("%3d ", row->n);
    printf("%3d %-16s", row->k, row->method);
    for (int f = 0; f < EVAL_FIGURES; f++) {
        if (is_told(r, f) && isfinite(row->figure[f]))
            printf(" %*.4f", width_of(f), row->figure[f]);
        else if (is_told(r, f))
            printf(" %*s", width_of(f), "-");
    }
    printf("\n");
}

static void print_table(const struct options *o, const struct catalog *c,
                        const struct eval_result *r)
{
    printf("split %s: %d workloads, %d %s; %ld sequences of %s measurements, seed %ld\n", o->split,
           r->n_workloads, r->n_folds, is_of_sites(o) ? "families held out" : "folds", o->seeds,
           o->eval.choice == EVAL_ACTIVE ? "chosen" : "random", o->seed);
    if (is_of_sites(o))
        printf("%3s ", "n");
    printf("%3s %-16s", "k", "method");
    for (int f = 0; f < EVAL_FIGURES; f++)
        if (is_told(r, f))
            printf(" %*s", width_of(f), eval_figure_names[f]);
    printf("\n");
    for (int i = 0; i < r->n_rows; i++) {
        const struct eval_row *row = &r->rows[i], *last = i > 0 ? row - 1 : NULL;
        if (last && (row->campaign != last->campaign || row->n != last->n || row->k != last->k))
            printf("\n");
        if (is_of_sites(o) && (!last || row->campaign != last->campaign))
            printf("%s\n", row->campaign < 0 ? "mean over campaigns" : campaign_of(c, row));
        print_row(o, r, row);
    }
}

static int put_prediction(struct buf *b, const struct catalog *c, const struct eval_prediction *p)
{
    csv_quote(b, c->workloads[p->workload].name);
    buf_printf(b, ",%d,", p->sequence);
    if (p->n >= 0)
        buf_printf(b, "%d", p->n);
    buf_printf(b, ",%d,%s,", p->k, p->method);
    csv_quote(b, c->types[p->type].name);
    buf_puts(b, ",");
    if (p->neighbour >= 0)
        csv_quote(b, c->workloads[p->neighbour].name);
    buf_printf(b, ",%s,%.9g,%.9g,", eval_quantity_names[p->quantity], p->truth, p->mean);
    if (!isnan(p->sd))
        buf_printf(b, "%.9g", p->sd);
    return buf_puts(b, "\n");
}

static int write_dump(const struct catalog *c, const struct eval_result *r, const char *path,
                      struct err *e)
{
    struct buf b;
    int rc = 0;

    buf_init(&b, (size_t)4 << 30);
    buf_puts(&b, "workload,sequence,n,k,method,gpu,neighbour,quantity,truth,mean,sd\n");
    for (int i = 0; i < r->n_predictions && rc == 0; i++)
        rc = put_prediction(&b, c, &r->predictions[i]);
    if (rc < 0)
        rc = err_set(e, EFBIG, "%s: more than 4 GiB; reveal fewer, or take fewer --seeds", path);
    return cmd_write(path, &b, rc, e);
}

/* ---- running ---- */

static void tell_fold(void *self, int done, int total)
{
    progress_step(self, done, total);
}

static int evaluate(struct options *o, const struct catalog *c, struct err *e)
{
    struct eval_result r;
    struct progress p;

    progress_begin(&p, "evaluating", false);
    o->eval.fold_f = tell_fold;
    o->eval.self = &p;
    int rc = eval_run(c, &o->eval, &r, e);
    progress_end(&p);
    if (rc < 0)
        rc = err_prefix(e, "%s", o->db);
    else if (o->dump)
        rc = write_dump(c, &r, o->dump, e);
    if (rc == 0 && o->is_json)
        print_json(o, c, &r);
    else if (rc == 0)
        print_table(o, c, &r);
    eval_release(&r);
    return rc;
}

/* An evaluation takes minutes: what its end would trip over is better known before. */
static int check_dump(const char *path, struct err *e)
{
    const char *slash = strrchr(path, '/');
    struct stat s;
    struct buf dir;
    int rc = 0;

    if (stat(path, &s) == 0 && !S_ISREG(s.st_mode) && !S_ISDIR(s.st_mode))
        return 0;    // a pipe is written to as it is
    if (stat(path, &s) == 0 && S_ISDIR(s.st_mode))
        return err_set(e, EISDIR, "--dump %s: is a directory; name a file in it", path);
    buf_init(&dir, PATH_MAX);
    buf_append(&dir, path, slash ? (size_t)(slash - path) + 1 : 0);
    if (!slash)
        buf_puts(&dir, ".");
    if (access(buf_text(&dir), W_OK | X_OK) < 0)
        rc = err_set(e, errno, "--dump %s: %s: %s", path, buf_text(&dir), strerror(errno));
    buf_release(&dir);
    return rc;
}

/* Nobody said which is the site: its own, or the only one that there is. */
static int only_campaign(const struct catalog *c)
{
    int only = -1;

    for (int i = 0; i < c->n_cells; i++) {
        int campaign = c->cells[i].key.campaign;
        if (campaign == CATALOG_SITE || (only >= 0 && campaign != only))
            return CATALOG_SITE;
        only = campaign;
    }
    return only < 0 ? CATALOG_SITE : only;
}

static int find_campaign(struct options *o, const struct catalog *c, struct err *e)
{
    o->eval.campaign = o->campaign ? catalog_find_campaign(c, o->campaign) : only_campaign(c);
    if (o->eval.campaign < 0)
        return err_set(e, ENOENT, "%s: no campaign '%s'; 'gogh catalog --db %s' lists them", o->db,
                       o->campaign, o->db);
    return 0;
}

static int evaluate_serving(const struct options *o, const struct catalog *c, struct err *e)
{
    const struct serving_eval_options serving = { .model = o->eval.model,
                                                  .campaign = o->campaign ? o->eval.campaign : -1,
                                                  .z = SERVING_Z,
                                                  .seed = (uint64_t)o->seed };
    int rc = eval_serving(c, &serving, o->model, o->is_json, e);

    return rc < 0 ? err_prefix(e, "%s", o->db) : 0;
}

static int find_model(const struct options *o, struct model **out, struct err *e)
{
    int rc = strcmp(o->model, "others") == 0 ? 0 : model_open(o->model, NULL, out, e);

    if (rc == 0 && strcmp(o->model, "none") == 0)
        *out = model_untaught();
    return rc;
}

static int run(const struct cmd_call *call, struct err *e)
{
    struct catalog c;
    struct store *store = NULL;
    struct model *m = NULL;
    int rc = given.dump ? check_dump(given.dump, e) : 0;

    (void)call;
    catalog_init(&c);
    if (rc == 0)
        rc = store_open(given.db, STORE_READ, &store, e);
    if (rc == 0)
        rc = catalog_load(&c, store, e);
    if (rc == 0)
        rc = find_campaign(&given, &c, e);
    if (rc == 0)
        rc = find_model(&given, &m, e);
    given.eval.model = m;
    if (rc == 0)
        rc = is_serving(&given) ? evaluate_serving(&given, &c, e) : evaluate(&given, &c, e);
    model_destroy(m);
    catalog_release(&c);
    store_close(store);
    return rc;
}

const struct cmd cmd_eval = {
    .name = "eval",
    .synopsis = "eval --db DB [--split job|family|gpu|campaign|site|serving] [--model M] "
                "[--campaign NAME] [--site-cells LIST] [--measurements LIST] [--seeds N] "
                "[--choose random|active] [--estimator NAME] [--dump CSV] [--json]",
    .summary = "how well newcomers would have been predicted here",
    .help = help,
    CMD_OPTIONS(options),
    .check = check,
    .run = run,
};
