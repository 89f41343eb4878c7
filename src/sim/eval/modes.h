/* modes.h - what it is worth to be told how a site shares its GPUs.
 *
 * Campaigns with pairs are all of MPS, so what is believed of other ways to share cannot be held
 * against them. Synthetic sites know how their jobs contend (estimate/network/worlds.h): of each
 * one GPU type is taken that shares so, a few of its pairs are read, and others are foreseen twice,
 * with the mode told and not told. Pure: the same arguments give the same figures.
 */
#ifndef SIM_EVAL_MODES_H
#define SIM_EVAL_MODES_H

#include <stdint.h>

#include "estimate/hierarchical/fit.h"

/* Of slowdowns: mean |foreseen - true|, and how many lie within intervals of 90 %. */
struct modes_score {
    double error, coverage;
};

struct modes_result {
    struct modes_score told, untold;
    double none;    // the error of "nobody slows anybody"
};

struct modes_options {
    enum sharing mode;    // that sites have: SHARING_TIMESLICE, SHARING_MPS or SHARING_MIG
    enum sharing told;    // what they are said to have
    int n_known;          // pairs of each that were read
    int n_sites;
    uint64_t seed;
};

/* 'h' and 'scale': as campaigns taught them. Where jobs share by turns, the generator's worlds with
 * turns are taken; for MPS those with kernels side by side; in slices it has none: there slowdowns
 * are a few percent by chance. -EDOM: numbers that no covariance can take.
 */
int modes_eval(const struct hyper *h, struct hyper_scale scale, const struct modes_options *o,
               struct modes_result *out, struct err *e);

#endif
