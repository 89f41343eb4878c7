/* sites.h - how well a site is predicted that nobody has seen: campaigns held out whole.
 *
 * What other campaigns taught is all that is known in the beginning. Some cells of the site's other
 * families are revealed, then a newcomer's own, and the rest of the newcomer is scored; one family
 * after another. docs/formats/outputs.md has the protocol. Made for `gogh eval --split campaign`
 * and `--split site`; the result is released by eval_release.
 */
#ifndef SIM_EVAL_SITES_H
#define SIM_EVAL_SITES_H

#include "sim/eval/eval.h"

struct catalog;
struct err;

/* EVAL_CAMPAIGN holds out each campaign in turn, EVAL_SITE the one that 'o' names. Either learns
 * from the others that are not measurements of the same jobs again, and starts with hyper_start
 * where there are none. The same options but n_threads give the same result. Rows of each campaign,
 * then with EVAL_CAMPAIGN the means over campaigns. Predictions' sequences are numbered on from one
 * campaign to the next, n_sequences of each. -ENODATA: nothing to hold out; -EDOM: a fit failed.
 */
int eval_sites_run(const struct catalog *c, const struct eval_options *o, struct eval_result *out,
                   struct err *e);

/* Have two campaigns the same name up to the first '-'? Then they are of the same jobs. */
bool eval_sites_are_kin(const char *a, const char *b);

#endif
