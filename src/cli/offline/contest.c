#include "cli/offline/contest.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "catalog/catalog.h"
#include "estimate/model/model.h"
#include "sim/eval/eval.h"

static const int cells[] = { 0, 10, 40 };
enum { N_CELLS = sizeof cells / sizeof *cells };

static void take_row(const struct eval_row *r, enum contestant who, struct contest *out)
{
    out->alone[who] = r->figure[EVAL_ISOLATED_ABS_LN];
    out->slowdown[who] = r->figure[EVAL_SLOWDOWN_MAE];
}

/* Rows of both stand side by side. */
static void take_rows(const struct catalog *c, const struct eval_result *r, struct model *m)
{
    struct contest *list = ARENA_ARRAY(&m->arena, struct contest, (size_t)r->n_rows / CONTESTANTS);

    m->n_contests = 0;
    for (int i = 0; i + 1 < r->n_rows; i += CONTESTANTS) {
        const struct eval_row *row = &r->rows[i];
        struct contest *out = &list[m->n_contests++];
        out->campaign =
            arena_strdup(&m->arena, row->campaign < 0 ? CONTEST_ALL : c->campaigns[row->campaign]);
        out->n_cells = row->n;
        take_row(row, CONTEST_HIERARCHICAL, out);
        take_row(row + 1, CONTEST_NETWORK, out);
    }
    m->contests = list;
}

int contest_hold(const struct catalog *c, uint64_t seed, struct model *m, struct err *e)
{
    static const int k[] = { 0 };
    const struct eval_options o = { .split = EVAL_CAMPAIGN,
                                    .n_k = 1,
                                    .k = k,
                                    .n_n = N_CELLS,
                                    .n = cells,
                                    .methods = 1U << EVAL_HIERARCHICAL | 1U << EVAL_NETWORK,
                                    .n_sequences = 1,
                                    .seed = seed,
                                    .n_threads = 2 };
    struct eval_result r;
    int rc = eval_run(c, &o, &r, e);

    if (rc == -ENOENT)    // there is no network
        return 0;
    if (rc == 0)
        take_rows(c, &r, m);
    eval_release(&r);
    return rc;
}
