/* models.h - what published data sets call models, as built-in ones.
 *
 * Read by the importers while they name workloads, so that the same model has the same name and the
 * same descriptor in every campaign. Plain values.
 */
#ifndef CATALOG_IMPORT_MODELS_H
#define CATALOG_IMPORT_MODELS_H

#include <stdbool.h>

#include "catalog/precision.h"

struct draft;

/* What a row was measured of. */
struct model_use {
    const char *model;     // a built-in one
    const char *family;    // what it is counted among; NULL: the model's own name
    double batch;
    bool is_synthetic;    // its input is made up: no host time for samples
    enum precision precision;
};

/* The workload of 'u' in the draft, added where absent, with its descriptor: "resnet101 (batch size
 * 12)", with "-synthetic" and the precision ("-fp16") behind the model's name where they apply, so
 * that a site's own workload is never described by what others ran. Bytes are those of the
 * precision: training is built in with FP32, inference with FP16.
 */
int model_workload(struct draft *d, const struct model_use *u);

/* What 'said' is called here, among 'n' pairs of names; NULL: not among them. */
struct model_name {
    const char *said, *model;
};
const char *model_named(const struct model_name *names, int n, const char *said);

/* "resnet" of "resnet101", "vgg-bn" of "vgg16_bn", with "-infer" where it answers: networks that
 * differ in depth and width only.
 */
const char *model_family(struct draft *d, const char *network, bool is_inference);

/* The type of a MIG slice of 'n' sevenths of an A100 with 40 GB, "a100-mig-2g"; 1, 2, 3, 4 or 7. */
int model_slice(struct draft *d, int n);

#endif
