/* stop.h - early stopping: the best weights seen, and when to give up.
 *
 * Give it the held-out loss after each epoch. Owns heap memory; release when done.
 */
#ifndef NN_STOP_H
#define NN_STOP_H

#include <stdbool.h>

struct stop {
    int n, patience;    // patience: losses in a row without a better one
    int n_taken;        // losses seen
    int best_at;        // which of them was best, from 0; -1: none yet
    double best;        // infinite: none yet
    float *w;           // (n): the weights that gave it
};

void stop_init(struct stop *s, int n, int patience);
void stop_release(struct stop *s);

/* Remember 'w' if 'loss' is lower than all before (one that is not finite never is).
 * True: patience is out.
 */
bool stop_take(struct stop *s, double loss, const float *w);

/* Write the best weights to 'w'; false, and 'w' as it was, if there are none yet. */
bool stop_best(const struct stop *s, float *w);

#endif
