/* model.h - everything that was learned: P1 and P2 together, as one value.
 *
 * Made by model_train from examples, by model_decode from bytes (a file, a row of the store, the
 * one that ships with the program). Never changed afterwards: a worker thread makes a new one and
 * its owner swaps the pointer.
 */
#ifndef REFINE_MODEL_H
#define REFINE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "estimate/p1/examples.h"

struct buf;
struct err;
struct p1;
struct p1_options;
struct p2;
struct store;

/* How a new P1 did against the one in use, on this site's examples (see model_compare). */
struct comparison {
    double champion, challenger;    // NaN: there was nobody to beat, or nothing to be wrong about
    bool is_won;                    // by the challenger
};

struct model {
    struct arena arena;    // of the texts
    struct p1 *p1;
    struct p2 *p2;
    const char *about;                // where it is from: "gavel, zeus; seed 1"
    const char *blas;                 // whose arithmetic: OpenBLAS's name of a kind of CPU
    int n_alone, n_pairs, n_watts;    // examples it learned from
    int n_workloads, n_families;      // and whose they were
    int64_t n_measurements;           // of the site's catalog then; 0: it is of no site
    struct comparison comparison;     // set by the trainer, as is the line above
};

/* Learn from what 'v' (NULL: everything) shows of 'x'. The same arguments give the same bytes,
 * where OpenBLAS does the same arithmetic. -EDOM as p1_train.
 */
int model_train(const struct examples *x, const struct holdout *v, const struct p1_options *o,
                const char *about, struct model **out, struct err *e);
void model_destroy(struct model *m);    // NULL is fine

/* The bytes: docs/formats/weights.md. Errors as weights_encode and weights_decode. */
int model_encode(const struct model *m, struct buf *out, struct err *e);
int model_decode(const void *bytes, size_t len, struct model **out, struct err *e);

/* The one that ships with the program, made by `gogh train` as docs/experiments.md says.
 * -ENOENT: this build has none.
 */
int model_pretrained(struct model **out, struct err *e);

/* The one that 'which' names: "pretrained", "none" (NULL, the roofline), "site" (of the store
 * 's', which may be NULL: there is none), or a file. NULL for 'which': the site's where it has
 * one, else the pretrained one, else none. Yours to destroy.
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

/* How wrong P1 was about workloads that its own training held out: root mean square of ln speed
 * alone, and of ln r, and of both the mean; of strangers where nobody has kin. NaN: of nothing.
 */
double model_error(const struct model *m);

/* Who is wrong by less about workloads that it has not learned from: 'champion' (NULL: there is
 * nobody to beat) about those of 'x' that it does not know, 'challenger', just trained on 'x', as
 * it held out the same ones. Where the champion knows everybody the challenger has seen more.
 */
struct comparison model_compare(const struct model *champion, const struct model *challenger,
                                const struct examples *x);

#endif
