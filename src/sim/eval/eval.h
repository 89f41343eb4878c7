/* eval.h - how well newcomers are predicted: hold out, learn, reveal, score.
 *
 * A campaign is the site. Every workload (or family, or GPU type) of it is held out once, the model
 * learns from the rest of the site and from other campaigns of the store, a few measurements of the
 * newcomer are revealed, and all others are predicted and compared with what was measured. All of
 * the site is known but for the part that is held out; or it is a site that nobody has seen, and
 * only some of its cells are revealed. docs/formats/outputs.md has the protocol and the figures.
 * Made by eval_run, read by `gogh eval`. Nothing of a held-out part is learned from, but the
 * descriptors of workloads and types are always known.
 */
#ifndef SIM_EVAL_EVAL_H
#define SIM_EVAL_EVAL_H

#include <stdbool.h>
#include <stdint.h>

struct catalog;
struct model;
struct err;

/* A part of a campaign; or from EVAL_PARTS on families of one of which little else is known: of
 * each, or of one.
 */
enum eval_split {
    EVAL_JOB,
    EVAL_FAMILY,
    EVAL_GPU,
    EVAL_PARTS,
    EVAL_CAMPAIGN = EVAL_PARTS,
    EVAL_SITE,
    EVAL_SPLITS
};
extern const char *const eval_split_names[EVAL_SPLITS];

/* Which cells of a newcomer are measured: drawn, or the most informative ones. */
enum eval_choice { EVAL_RANDOM, EVAL_ACTIVE, EVAL_CHOICES };
extern const char *const eval_choice_names[EVAL_CHOICES];

/* Who predicts. */
enum eval_method {
    EVAL_ROOFLINE,
    EVAL_NONE,    // nobody slows anybody
    EVAL_MEAN,    // see rivals.h
    EVAL_RIDGE,
    EVAL_NEAREST,    // as on the nearest type: with EVAL_GPU only
    EVAL_HIERARCHICAL,
    EVAL_NETWORK,
    EVAL_GOGH,    // what the daemon uses: the former, of slowdowns together with the latter
    EVAL_METHODS
};
extern const char *const eval_method_names[EVAL_METHODS];

enum eval_quantity {
    EVAL_ISOLATED,    // steps/s alone
    EVAL_PAIR,        // steps/s beside a neighbour
    EVAL_SLOWDOWN,    // of it beside the neighbour: speed over the one alone
    EVAL_PARTNER,     // of the neighbour beside it
    EVAL_WATTS,       // alone
    EVAL_QUANTITIES
};
extern const char *const eval_quantity_names[EVAL_QUANTITIES];

enum eval_figure {
    EVAL_ISOLATED_MAPE,
    EVAL_ISOLATED_ABS_LN,
    EVAL_PAIR_MAPE,
    EVAL_SLOWDOWN_MAE,
    EVAL_PARTNER_MAE,
    EVAL_SPEARMAN,
    EVAL_ORDER,
    EVAL_COVERAGE90,
    EVAL_COVERAGE90_ISOLATED,
    EVAL_COVERAGE90_SLOWDOWN,
    EVAL_FIT_AUC,
    EVAL_WATTS_MAPE,
    EVAL_JOULES_MAPE,
    EVAL_FIGURES
};
extern const char *const eval_figure_names[EVAL_FIGURES];

/* Most measurements of one newcomer: more than anybody would wait for. */
#define EVAL_K_MAX 100

/* Most cells of a site: with two readings of each measurement they fit into one posterior. */
#define EVAL_N_MAX 800

struct eval_options {
    const struct model *model;    // over campaigns; NULL: of the store's others, see eval_run
    enum eval_split split;
    enum eval_choice choice;
    int n_k;
    const int *k;        // (n_k) how many measurements, ascending, each at most EVAL_K_MAX
    int n_n;             // from EVAL_PARTS on:
    const int *n;        // (n_n) how many of the site's cells, ascending, each at most EVAL_N_MAX
    int campaign;        // that is the site; not of EVAL_CAMPAIGN
    unsigned methods;    // that have rows, 1 << each of them; 0: all
    int n_sequences;     // of measurements, for each workload
    uint64_t seed;
    int n_threads;
    bool keeps_predictions;                             // for a dump
    void (*fold_f)(void *self, int done, int total);    // told after each fit and fold; may be NULL
    void *self;
};

/* One scored prediction. */
struct eval_prediction {
    int workload, sequence, n, k;    // n -1: all of the site
    const char *method;
    int type, neighbour;    // neighbour -1: alone
    enum eval_quantity quantity;
    double truth, mean;    // in natural units
    double sd;             // of the logarithm; NaN: the method has none
};

/* Means over all (workload, sequence) that have such a cell; NaN: none has. */
struct eval_row {
    int campaign;    // -1: the mean over campaigns
    int n;           // -1: all of the site
    int k;
    const char *method;
    double figure[EVAL_FIGURES];
};

/* Owns heap memory. */
struct eval_result {
    int n_folds, n_workloads;    // workloads that were scored, in each campaign
    int n_rows, n_predictions;
    struct eval_row *rows;                  // by campaign, n and k, then in the order of methods
    struct eval_prediction *predictions;    // by fold, sequence, n, workload, k, method
};

/* Without a model a site learns from campaigns that are not measurements of the same jobs again,
 * and starts with hyper_start where there are none. The same options but n_threads give the same
 * result. Rows of each campaign, then with EVAL_CAMPAIGN the means over them. Sequences of
 * predictions are numbered on from one campaign to the next, n_sequences of each. -ENODATA: too
 * little was measured for the split; -EDOM: a fit failed.
 */
int eval_run(const struct catalog *c, const struct eval_options *o, struct eval_result *out,
             struct err *e);
void eval_release(struct eval_result *r);

/* Are campaigns of these names of the same jobs: is what stands before the first '-' the same? */
bool eval_are_kin(const char *a, const char *b);

#endif
