/* pretraining.h - what a policy begins a run with: others' measurements, and what was learned from
 * them.
 *
 * Made by scenario_open; handed to the simulator by the run, which also makes its own measurements;
 * released with the inputs.
 */
#ifndef STUDY_PRETRAINING_H
#define STUDY_PRETRAINING_H

struct catalog;
struct err;
struct model;

struct pretraining {
    const char *family;         // that was held out; NULL: none
    struct catalog *catalog;    // NULL: nothing was measured
    struct model *model;        // NULL: the roofline
};

/* All of 'truth' but one of its families, and a model learned from that, which takes some seconds.
 * Seeds in a row hold out one family after the other. The model's last digits depend on the CPU
 * (model.h), and so may what is decided with it.
 */
int pretraining_of_others(struct pretraining *k, const struct catalog *truth, int seed,
                          struct err *e);

void pretraining_release(struct pretraining *k);

/* The family that a seed holds out; NULL: no workload has one. Borrowed from 'c'. */
const char *pretraining_family(const struct catalog *c, int seed);

#endif
