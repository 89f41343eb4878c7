/* Any bytes are a problem, which is written and read again as the same, or an error. And as a plan
 * for a small problem: something to judge, or an error.
 */
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "optimize/model/plan.h"
#include "optimize/files/plan_file.h"
#include "optimize/model/problem.h"
#include "optimize/files/problem_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_or_stop(const struct problem *p, struct buf *out)
{
    struct err e = { 0 };

    buf_init(out, PROBLEM_BYTES_MAX);
    if (problem_write(p, out, &e) < 0)
        abort();
}

/* Writing is a fixed point after one reading: the first may drop what has no effect. */
static void again(struct arena *a, const struct problem *p)
{
    struct err e = { 0 };
    struct buf one, two;
    struct problem q;

    write_or_stop(p, &one);
    if (problem_parse(a, "g", one.data, one.len, &q, &e) < 0)
        abort();
    write_or_stop(&q, &two);
    assert(one.len == two.len && memcmp(one.data, two.data, one.len) == 0);
    buf_release(&one);
    buf_release(&two);
}

static const char small[] =
    "{\"types\": [{\"name\": \"v\", \"idle_w\": 30, \"cap_w\": 300, \"mem_gib\": 16, \"count\": 4,"
    "\"speed\": [10], \"watts\": [200], \"slowdown\": 0.6,"
    "\"limits\": [{\"limit_w\": 150, \"speed\": [0.8, 0.8], \"watts\": [30, 150]}]}],"
    "\"kinds\": [{\"name\": \"a\"}], \"jobs\": [{\"name\": \"x\", \"kind\": 0},"
    "{\"name\": \"s\", \"kind\": 0, \"form\": \"spread\", \"n_max\": 2},"
    "{\"name\": \"g\", \"kind\": 0, \"n_min\": 2, \"n_max\": 4, \"present\": [0, 1]}]}";

static void as_plan(struct arena *a, const uint8_t *data, size_t size)
{
    struct plan_claims c;
    struct err e = { 0 };
    struct problem p;
    struct plan x;

    if (problem_parse(a, "small", small, sizeof small - 1, &p, &e) < 0)
        abort();
    if (plan_parse(a, &p, "f", (const char *)data, size, &x, &c, &e) < 0)
        assert(e.text[0] != '\0');
    else
        (void)plan_check(a, &p, &x, &e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = { 0 };
    struct problem p;
    struct arena a;

    arena_init(&a);
    if (problem_parse(&a, "f", (const char *)data, size, &p, &e) < 0) {
        assert(e.code > 0 && e.text[0] != '\0');
    } else {
        struct err bad = { 0 };
        assert(problem_check(&p, &bad) == 0);
        if (p.z > 0)
            again(&a, &p);
    }
    as_plan(&a, data, size);
    arena_release(&a);
    return 0;
}
