/* import.c - `gogh import`: other people's measurements into a store. */
#include "cli/cmd.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/text/json.h"
#include "catalog/catalog.h"
#include "catalog/import/draft.h"
#include "catalog/import/import.h"
#include "estimate/prior/doubts.h"
#include "store/store.h"

static const char help[] =
    "Fill a store with measurements. All of a file is imported, or nothing; the same\n"
    "file again changes nothing. The store is made where there is none.\n"
    "\n"
    "  import gavel FILE   steps/s of jobs alone and in pairs, in Gavel's JSON\n"
    "      --isolated FILE2   take isolated speeds from FILE2, keep FILE's slowdowns\n"
    "      --watts CSV        gpu,workload,watts: what each job draws alone\n"
    "  import zeus DIR     seconds per epoch and watts: DIR/summary_power_<gpu>.csv\n"
    "  import csv FILE     anybody's measurements (docs/formats/measurements.md)\n"
    "\n"
    "and data sets as they are published:\n"
    "  import neusight FILE                transformers on many GPU types\n"
    "  import pytorch-gpu-benchmark FILE   torchvision's networks in two precisions\n"
    "  import pollux FILE                  training on T4s, by batch size and placement\n"
    "  import parvagpu FILE                inference on MIG slices, alone and in pairs\n"
    "  import miso DIR                     training on MIG slices, and watts\n"
    "  import elasticflow TAR              training on A100s, by gang size\n"
    "  import mlenergy FILE                text generators, with watts\n"
    "\n"
    "  --db DB           the store\n"
    "  --campaign NAME   whose measurements these are; without it they are this site's own\n"
    "  --sharing MODE    how the campaign's GPUs were shared: exclusive, timeslice, mps, mig,\n"
    "                    or unknown, which takes back what was said\n"
    "  --workloads CSV   descriptors (gavel, csv): by family, or by name with a 'name' column\n"
    "  --json            report as JSON\n"
    "\n"
    "What is far from the roofline is told, as its unit may be wrong; it is imported all the same.\n"
    "\n"
    "Examples:\n"
    "  gogh import gavel simulation_throughputs.json --workloads workloads.csv --db lab.db\n"
    "  gogh import gavel sim.json --isolated physical.json --watts watts.csv --db lab.db\n"
    "  gogh import gavel oracle_throughputs.json --campaign gavel-oracle --db lab.db\n"
    "  gogh import neusight e2e_latency.csv --campaign neusight --db lab.db\n"
    "  gogh import zeus zeus/trace --campaign zeus --db lab.db\n"
    "  gogh import csv ours.csv --db lab.db --json\n";

static struct options {
    const char *kind, *input;
    const char *db, *campaign, *sharing, *isolated, *workloads, *watts;
    enum sharing mode;
    bool is_json;
} given;

typedef int read_f(struct draft *d, const char *path, struct progress *p, struct err *e);

/* What has a file or directory and no options of its own. */
static const struct format {
    const char *name;
    read_f *read;
} formats[] = {
    { "zeus", import_zeus_read },
    { "neusight", import_neusight_read },
    { "pytorch-gpu-benchmark", import_pytorch_gpu_benchmark_read },
    { "pollux", import_pollux_read },
    { "parvagpu", import_parvagpu_read },
    { "miso", import_miso_read },
    { "elasticflow", import_elasticflow_read },
    { "mlenergy", import_mlenergy_read },
};

#define NAMES                                                                                 \
    "gavel, zeus, csv, neusight, pytorch-gpu-benchmark, pollux, parvagpu, miso, elasticflow " \
    "or mlenergy"

static const struct format *find_format(const char *name)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    return NULL;
}

static const struct cmd_option options[] = {
    CMD_TEXT("db", given.db),
    CMD_TEXT("campaign", given.campaign),
    CMD_TEXT("sharing", given.sharing),
    CMD_TEXT("isolated", given.isolated),
    CMD_TEXT("workloads", given.workloads),
    CMD_TEXT("watts", given.watts),
    CMD_FLAG("json", given.is_json),
};

static int check(const struct cmd_call *call)
{
    struct options *o = &given;
    struct err e = { 0 };

    o->kind = call->words[0];
    o->input = call->words[1];
    const bool is_gavel = cmd_is(o->kind, "gavel"), is_csv = cmd_is(o->kind, "csv");

    if (o->kind == NULL)
        return cmd_misuse(call->cmd, "say what to import: " NAMES);
    if (!is_gavel && !is_csv && find_format(o->kind) == NULL)
        return cmd_misuse(call->cmd, "cannot import '%s': want " NAMES, o->kind);
    if (o->input == NULL)
        return cmd_misuse(call->cmd, "say which file or directory to import");
    if (o->db == NULL)
        return cmd_misuse(call->cmd, "say which store to import into: --db DB");
    if (o->campaign != NULL && !text_is_name(slice_of(o->campaign)))
        return cmd_misuse(call->cmd, "--campaign: want a name of 1 to 200 printable bytes");
    if (o->sharing != NULL && o->campaign == NULL)
        return cmd_misuse(call->cmd, "--sharing is for a campaign: add --campaign NAME (of this "
                                     "site's own GPUs 'gputype' lines say it)");
    if (o->sharing != NULL && sharing_read(slice_of(o->sharing), &o->mode, &e) < 0)
        return cmd_misuse(call->cmd, "--%s", e.text);
    if (!is_gavel && (o->isolated != NULL || o->watts != NULL))
        return cmd_misuse(call->cmd, "--isolated and --watts are for 'import gavel'");
    if (!is_gavel && !is_csv && o->workloads != NULL)
        return cmd_misuse(call->cmd, "--workloads is for 'import gavel' and 'import csv'");
    return 0;
}

static int read_input(struct draft *d, const struct options *o, struct progress *p, struct err *e)
{
    if (strcmp(o->kind, "gavel") == 0) {
        struct import_gavel in = { o->input, o->isolated, o->workloads, o->watts };

        return import_gavel_read(d, &in, p, e);
    }
    const struct format *f = find_format(o->kind);
    return f != NULL ? f->read(d, o->input, p, e)
                     : import_csv_read(d, o->input, o->workloads, p, e);
}

static int write_store(struct draft *d, const char *db, struct progress *p,
                       struct import_report *report, struct err *e)
{
    struct clock clock = clock_real();
    struct catalog c;
    struct store *s;
    int rc = store_open(db, STORE_CREATE, &s, e);

    if (rc < 0)
        return rc;
    catalog_init(&c);
    rc = catalog_load(&c, s, e);
    if (rc == 0)
        rc = draft_commit(d, &c, clock_now_s(&clock), p, report, e);
    catalog_release(&c);
    store_close(s);
    return rc;
}

static void print_report(const struct options *o, const struct import_report *r)
{
    if (r->is_known) {
        printf("%s: already known, nothing to add\n", o->input);
        return;
    }
    printf("%s: %" PRId64 " measurement%s of %d workload%s on %d GPU type%s\n", o->input,
           r->n_measurements, r->n_measurements == 1 ? "" : "s", r->n_workloads,
           r->n_workloads == 1 ? "" : "s", r->n_types, r->n_types == 1 ? "" : "s");
    printf("  %7d alone\n  %7d beside a neighbour\n  %7d that do not fit\n", r->n_isolated,
           r->n_pairs, r->n_unfit);
    if (r->n_gangs > 0)
        printf("  %7d of gangs\n", r->n_gangs);
    if (r->n_limited > 0)
        printf("  %7d under a power limit\n", r->n_limited);
    if (r->n_watts > 0)
        printf("  %7d with watts\n", r->n_watts);
    if (r->n_dropped > 0)
        printf("  %7d left out: %s\n", r->n_dropped, r->why_dropped);
    if (r->n_copies > 0)
        printf("  %7d left out: copies for one worker of spread GPUs\n", r->n_copies);
}

static void print_json(const struct import_report *r, const char *const *warnings, int n_warnings)
{
    json_t *list = json_array();

    for (int i = 0; i < n_warnings; i++)
        json_array_append_new(list, json_string(warnings[i]));
    json_print(json_pack("{s:b, s:I, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:o}",
                         "known", r->is_known, "measurements", (json_int_t)r->n_measurements,
                         "workloads", r->n_workloads, "gpu_types", r->n_types, "isolated",
                         r->n_isolated, "pairs", r->n_pairs, "unfit", r->n_unfit, "gangs",
                         r->n_gangs, "limited", r->n_limited, "watts", r->n_watts, "dropped",
                         r->n_dropped, "copies", r->n_copies, "warnings", list),
               0);
}

/* What may be in another unit, in the draft's arena; of what was imported just now. */
static int find_doubts(struct draft *d, const struct import_report *r, const char ***out)
{
    const struct doubts_of of = { d->workloads, d->n_workloads, d->types, d->rows, d->n_rows };

    return r->is_known ? 0 : doubts_find(&d->arena, &of, out);
}

static void print_doubts(const char *const *warnings, int n)
{
    enum { SHOWN = 10 };

    for (int i = 0; i < n && i < SHOWN; i++)
        log_warn("%s: %s", given.input, warnings[i]);
    if (n > SHOWN)
        log_warn("%s: %d more of this kind; --json has all", given.input, n - SHOWN);
}

/* The store is opened, and made where there is none, when nothing can be wrong with the
 * input any more: what fails leaves no store behind, and nobody's is ever deleted.
 */
static int run(const struct cmd_call *call, struct err *e)
{
    struct import_report report = { 0 };
    const char **warnings = NULL;
    struct progress p;
    struct draft d;
    int n = 0;

    (void)call;
    draft_init(&d);
    draft_set_campaign(&d, given.campaign);
    draft_set_sharing(&d, given.mode);
    progress_begin(&p, "importing", false);
    int rc = read_input(&d, &given, &p, e);
    if (rc == 0)
        rc = write_store(&d, given.db, &p, &report, e);
    progress_end(&p);
    if (rc == 0)
        n = find_doubts(&d, &report, &warnings);
    if (rc == 0 && given.is_json)
        print_json(&report, warnings, n);
    else if (rc == 0)
        print_report(&given, &report);
    print_doubts(warnings, n);
    draft_release(&d);
    return rc;
}

const struct cmd cmd_import = {
    .name = "import",
    .synopsis = "import FORMAT FILE|DIR --db DB [--campaign NAME] [options]",
    .summary = "fill a store with measurements",
    .help = help,
    CMD_OPTIONS(options),
    .max_words = 2,
    .check = check,
    .run = run,
};
