/* model.h - everything that was learned, as one value: what cells have in common.
 *
 * Variances of effects and means of slopes, of speeds and of watts (hierarchical/effects.h): over
 * campaigns, and as estimated again at one site. Made by model_train from examples, by model_decode
 * from bytes (a file, a row of the store, the one that ships with the program). Never changed
 * afterwards: a worker thread makes a new one and its owner swaps the pointer.
 */
#ifndef ESTIMATE_MODEL_MODEL_H
#define ESTIMATE_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "estimate/model/examples.h"

struct buf;
struct err;
struct store;

/* How a new model did against the one in use: what both were wrong by about families of the site
 * that they had not seen (see model_train).
 */
struct comparison {
    double champion, challenger;    // NaN: there was nobody to beat, or nothing to be wrong about
    bool is_won;                    // by the challenger
};

/* How hierarchical model and network did about a campaign that neither had seen, with so many of
 * its cells known: mean |ln| of speeds alone, mean errors of slowdowns. NaN: it has none.
 */
enum contestant { CONTEST_HIERARCHICAL, CONTEST_NETWORK, CONTESTANTS };
struct contest {
    const char *campaign;    // CONTEST_ALL: the mean over all of them
    int n_cells;
    double alone[CONTESTANTS], slowdown[CONTESTANTS];
};
#define CONTEST_ALL "all"

struct model {
    struct arena arena;              // of the texts and contests
    struct hyper around[LEARNED];    // over campaigns
    struct hyper hyper[LEARNED];     // at this site; the same where it has none
    struct hyper_scale scale[LEARNED];
    const char *about;                // where it is from: "gavel, zeus; seed 1"
    const char *blas;                 // whose arithmetic: OpenBLAS's name of a kind of CPU
    int n_campaigns;                  // it learned from
    int n_alone, n_pairs, n_watts;    // readings it learned from
    int n_workloads, n_families;      // and whose they were
    int64_t n_measurements;           // of the site's catalog then; 0: it is of no site
    struct comparison comparison;
    const struct contest *contests;    // (n_contests) where campaigns taught it
    int n_contests;
};

/* Before anything was learned: what ships where there is no file. */
struct model *model_untaught(void);

/* Fewer campaigns besides the site's own are no measure of how campaigns differ. */
#define MODEL_CAMPAIGNS_MIN 3

/* Learn from 'x': over its campaigns where there are enough of them, else from 'champion' (NULL: an
 * untaught one) on; then again for the site's own readings. Its 'comparison' says how it did
 * against the champion, about each half of the site's families: by what the rest taught, where the
 * champion has not seen them either. It has the champion's contests. The same arguments give the
 * same bytes, where OpenBLAS does the same arithmetic. -EDOM: numbers that no covariance can take.
 */
int model_train(const struct examples *x, const struct model *champion, uint64_t seed,
                const char *about, struct model **out, struct err *e);
void model_destroy(struct model *m);    // NULL is fine

/* The bytes: docs/formats/weights.md. Errors as weights_encode and weights_decode. */
int model_encode(const struct model *m, struct buf *out, struct err *e);
int model_decode(const void *bytes, size_t len, struct model **out, struct err *e);

/* The one that ships with the program, made by `gogh train` as docs/experiments.md says.
 * -ENOENT: this build has none.
 */
int model_pretrained(struct model **out, struct err *e);

/* The one that 'which' names: "pretrained", "none" (NULL: nothing was learned), "site" (of the
 * store 's', which may be NULL: there is none), or a file. NULL for 'which': the site's where it
 * has one, else the pretrained one, else none. Yours to destroy.
 */
int model_open(const char *which, struct store *s, struct model **out, struct err *e);

int model_read(const char *path, struct model **out, struct err *e);
int model_write(const struct model *m, const char *path, struct err *e);

/* As a row of the store: MODEL_CHAMPION is what this site uses, MODEL_CHALLENGER the last one
 * that lost. Keeping is a transaction of its own. -ENOENT: there is none yet.
 */
#define MODEL_CHAMPION "model"
#define MODEL_CHALLENGER "challenger"

int model_keep(const struct model *m, struct store *s, const char *name, double time_s,
               struct err *e);
int model_fetch(struct store *s, const char *name, struct model **out, struct err *e);

/* How wrong it was about families of the site that it had not seen: mean |ln| of speeds alone and
 * of slowdowns, and of both the mean. NaN: of nothing.
 */
double model_error(const struct model *m);

#endif
