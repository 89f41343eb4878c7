/* owners.h - whose job is which, as Slurm said last.
 *
 * Slurm gives a number out again after a crash: before a job is changed by its number, the driver
 * makes sure that it is still the same user's. Filled by each listing, read by the tasks that
 * change jobs; lives as long as the driver.
 */
#ifndef ACT_DRIVER_OWNERS_H
#define ACT_DRIVER_OWNERS_H

#include <stdbool.h>

/* What is older than this is asked for again; a view and the orders that follow from it are closer
 * together.
 */
#define OWNERS_AGE_S 2.0

struct owner {
    long id, array, task;    // task -1: not of an array
    long uid;
};

/* Nothing is known while all is zero; 'is_known' may be taken back. */
struct owners {
    struct owner *list;    // (n) in the order of the listing
    int n, cap;
    bool is_known;
    double asked_s;    // when the listing was asked for
};

void owners_release(struct owners *o);

/* A new listing, asked for at 'asked_s', and a job of it. */
void owners_begin(struct owners *o, double asked_s);
void owners_add(struct owners *o, const struct owner *one);

bool owners_are_fresh(const struct owners *o, double now_s);

/* Is 'id' ("12", or "12_3" for task 3 of array 12) there, and a job of 'uid'? */
bool owners_agree(const struct owners *o, const char *id, long uid);

#endif
