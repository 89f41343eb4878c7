/* adam.h - Adam with decoupled weight decay (Loshchilov and Hutter, 2019).
 *
 * One per network in training. Owns heap memory; release when done. The switches are
 * plain fields to set between adam_init and the first step.
 */
#ifndef NN_ADAM_H
#define NN_ADAM_H

struct params;

struct adam {
    int n;
    long n_steps;    // done so far
    float *m, *v;    // (n): running means of gradients and of their squares
    float decay;     // 0.01: of all weights, times the rate, per step
    float clip;      // gradients are shortened to this norm; 0: never
};

/* For a line of 'n' numbers. */
void adam_init(struct adam *a, int n);
void adam_release(struct adam *a);

/* Move p->w along p->grad (which stays as it is). Returns the gradients' norm before
 * clipping; where that is not finite, nothing else happens: the batch is skipped.
 */
double adam_step(struct adam *a, struct params *p, double rate);

/* The rate of 'step' (0 .. n_steps - 1): rising in a line over the first 'n_warm' steps
 * to 'peak', then falling along half a cosine to 'last'.
 */
double adam_cosine(long step, long n_steps, long n_warm, double peak, double last);

#endif
