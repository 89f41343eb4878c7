/* data.h - published data as the studies read it: where files lie, and Gavel's truth.
 *
 * docs/formats/study.md#data tells the files and where they come from; the project never contains
 * them.
 * A file that is missing is an error that names it and says how to name another place.
 */
#ifndef STUDY_DATA_H
#define STUDY_DATA_H

#include <stddef.h>

struct arena;
struct cluster;
struct err;
struct ground;

/* What is read of the data directory. */
enum data_file {
    DATA_GAVEL_PAIRS,       // speeds of pairs
    DATA_GAVEL_ISOLATED,    // speeds alone
    DATA_GAVEL_WORKLOADS,
    DATA_GAVEL_WATTS,
    DATA_GAVEL_TRACES,
    DATA_PHILLY,
    DATA_OPENB_NODES,
    DATA_OPENB_PODS,
    DATA_FILES,
};

/* The file's path below 'data'. -ENOENT, with the cure, where it is not there. */
int data_path(struct arena *a, const char *data, enum data_file f, const char **out, struct err *e);

/* Its content ('member': of an archive, else NULL), unpacked, in 'a'. */
int data_read(struct arena *a, const char *data, enum data_file f, const char *member,
              const char **text, size_t *len, struct err *e);

/* Hex SHA-256 of a file as it lies there, packed or not. */
int data_file_digest(const char *path, char hex[65], struct err *e);

/* As scenario_digest, of these files: bits of enum data_file. */
int data_digest(struct arena *a, const char *data, unsigned files, const char **out, struct err *e);

/* Gavel's measurements as ground truth: isolated speeds of the physical cluster, slowdowns of the
 * simulation file, modelled watts; figures of GPU types that are unknown from 'cl'.
 */
int data_ground_gavel(struct ground *g, const char *data, const struct cluster *cl, struct err *e);

#endif
