/* sharing.h - how jobs that are on one GPU at a time share it.
 *
 * Plain values: a GPU type has one as the site has set it up (gpu_type.h), and so has a campaign of
 * what it measured (catalog.h). What neighbours cost depends on it, and no descriptor tells it.
 */
#ifndef CATALOG_SHARING_H
#define CATALOG_SHARING_H

#include <stdbool.h>

#include "base/text/text.h"

struct err;

/* The numbers are the store's. To say nothing and to say that it is unknown are two things: the
 * first changes nothing of what is known, the second takes it back. Only what is said of a type or
 * a campaign can be SHARING_TAKEN_BACK; what a catalog has of one is SHARING_UNKNOWN then.
 */
enum sharing {
    SHARING_TAKEN_BACK = -1,    // said to be unknown
    SHARING_UNKNOWN,            // or nothing is said
    SHARING_EXCLUSIVE,          // nobody shares
    SHARING_TIMESLICE,          // the driver gives each process the device in turn
    SHARING_MPS,                // kernels of several processes side by side, through NVIDIA's MPS
    SHARING_MIG,                // each has a slice of the device and of its memory to itself
    SHARINGS,
};

/* "exclusive", "timeslice", "mps", "mig"; "unknown" where it is taken back, NULL where nothing is
 * said or known.
 */
const char *sharing_name(enum sharing s);

/* The reverse, by text_alike. -EINVAL lists the names. */
int sharing_read(struct slice text, enum sharing *out, struct err *e);

/* What is known once 'said' was said of what 'was' known. */
enum sharing sharing_after(enum sharing was, enum sharing said);

/* The store's number; one that is none, of a later version, is unknown. */
enum sharing sharing_of_number(int number);

/* Is a GPU of this name a slice of one, as drivers and Slurm call them: "a100_1g.5gb", "MIG
 * 3g.20gb"?
 */
bool sharing_is_slice(const char *name);

#endif
