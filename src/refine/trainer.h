/* trainer.h - learning anew while the cluster runs: one worker thread, one training at a time.
 *
 * The owner's thread offers the catalog now and then. When there is enough news, the trainer takes
 * examples from it (a value; see examples.h) and starts a worker, which makes a new model from
 * them and lets it meet the one in use. The owner takes the result when it is there, and swaps.
 * Nothing is shared with the worker but the champion, which nobody changes: it must live until
 * the result was taken or the trainer destroyed.
 */
#ifndef REFINE_TRAINER_H
#define REFINE_TRAINER_H

#include <stdbool.h>
#include <stdint.h>

struct catalog;
struct model;
struct trainer;

/* What counts as enough news. */
struct trainer_options {
    uint64_t seed;
    double growth;         // measurements, as a part of those at the last training; 0.25
    int n_cells_min;       // cells that must have been measured; 32
    int n_families_min;    // families that must have been measured; 3
};

extern const struct trainer_options trainer_defaults;

/* 'n_measurements': those of the catalog that the model in use has learned from already, so that
 * a restart alone is no news; 0: none.
 */
struct trainer *trainer_create(const struct trainer_options *o, int64_t n_measurements);

/* Waits for a training that is under way, seconds perhaps, and throws it away: a worker cannot be
 * stopped in the middle. NULL is fine.
 */
void trainer_destroy(struct trainer *t);

/* Look at the catalog: is there enough news? Then start. 'champion' (NULL: the roofline) is what
 * is in use. True: a training has started.
 */
bool trainer_offer(struct trainer *t, const struct catalog *c, const struct model *champion);

bool trainer_is_busy(const struct trainer *t);    // a result has yet to be taken

/* The new model, once; NULL: none is ready, or the training failed (which the log tells). It is
 * yours, and its 'comparison' says whether it should replace the champion. trainer_wait waits for
 * one that is under way.
 */
struct model *trainer_take(struct trainer *t);
struct model *trainer_wait(struct trainer *t);

#endif
