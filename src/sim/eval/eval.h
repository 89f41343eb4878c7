/* eval.h - how well newcomers are predicted: hold out, train, reveal, score.
 *
 * Every workload (or family, or GPU type) of a catalog plays the newcomer once. P1 and P2 are
 * trained without it, a few of its measurements are revealed, and all others are predicted and
 * compared with what was measured; docs/formats/outputs.md has the protocol and the figures.
 * Made by eval_run, and where a whole campaign is held out by sites.h; read by `gogh eval`. Nothing
 * of a held-out part reaches the training, but the descriptors of workloads and types are always
 * known.
 */
#ifndef SIM_EVAL_EVAL_H
#define SIM_EVAL_EVAL_H

#include <stdbool.h>
#include <stdint.h>

struct catalog;
struct err;

/* A part of the site's own campaign, or from EVAL_PARTS on a campaign: each, or one. */
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
    enum eval_split split;
    enum eval_choice choice;
    int n_k;
    const int *k;       // (n_k) how many measurements, ascending, each at most EVAL_K_MAX
    int n_n;            // of a campaign held out:
    const int *n;       // (n_n) how many of the site's cells, ascending, each at most EVAL_N_MAX
    int campaign;       // the one that EVAL_SITE holds out
    int n_sequences;    // of measurements, for each workload
    uint64_t seed;
    int n_threads;
    int n_nets;                // networks of each kind in P1; 0: its default
    bool keeps_predictions;    // for a dump
    void (*fold_f)(void *self, int done, int total);    // told after each training; may be NULL
    void *self;
};

/* One scored prediction. */
struct eval_prediction {
    int workload, sequence, n, k;    // n -1: no campaign is held out
    const char *method;
    int type, neighbour;    // neighbour -1: alone
    enum eval_quantity quantity;
    double truth, mean;    // in natural units
    double sd;             // of the logarithm; NaN: the method has none
};

/* Means over all (workload, sequence) that have such a cell; NaN: none has. */
struct eval_row {
    int campaign, n;    // -1: none is held out. With 'n' but no campaign: the campaigns' mean
    int k;
    const char *method;
    double figure[EVAL_FIGURES];
};

/* Owns heap memory. */
struct eval_result {
    int n_folds, n_workloads;    // trainings; workloads that were scored
    int n_rows, n_predictions;
    struct eval_row *rows;                  // by campaign, n and k, then in the order of methods
    struct eval_prediction *predictions;    // by fold, workload, sequence, k, method
};

/* The same options but n_threads give the same result. -ENODATA: too little was measured for
 * the split; -EDOM: a training failed.
 */
int eval_run(const struct catalog *c, const struct eval_options *o, struct eval_result *out,
             struct err *e);
void eval_release(struct eval_result *r);

#endif
