/* The benchmarks that ship: what their program does is what their descriptors say. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "catalog/burn.h"
#include "catalog/workload.h"
#include "unit/suite.h"

static struct arena arena;

static void setup(void)
{
    arena_init(&arena);
}

static void teardown(void)
{
    arena_release(&arena);
}

FIXTURE(setup, teardown)

/* Counted here by what a step does, at a batch that is not the usual one. */
static void count(const struct burn *b, double batch, struct workload_step *out)
{
    const double side = b->side, elements = b->elements * batch, tiny = BURN_TINY * batch;

    *out = (struct workload_step){ .host_s = b->host_ms / 1e3 };
    for (int i = 0; i < b->layers; i++) {
        out->flop += 2 * batch * side * side;
        out->bytes += 4 * (batch * side + side * side + batch * side);    // in, weights, out
        out->kernels++;
    }
    if (b->elements > 0) {
        out->flop += 2 * elements;
        out->bytes += 4 * 3 * elements;    // two read, one written
        out->kernels++;
    }
    for (int i = 0; i < b->tiny; i++) {
        out->flop += 2 * tiny;
        out->bytes += 4 * 2 * tiny;
        out->kernels++;
    }
}

TEST(a_descriptor_says_what_a_step_does_at_any_batch)
{
    static const double batches[] = { NAN, 1, 7, 4096 };
    int n;
    const struct burn *all = burn_all(&n);

    ck_assert_int_ge(n, 6);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < (int)N_ROWS(batches); k++) {
            struct workload w;
            struct workload_step want, got;

            ck_assert_int_eq(workload_builtin(&arena, all[i].name, batches[k], &w, NULL), 0);
            ck_assert_double_eq(w.batch, isnan(batches[k]) ? all[i].batch : batches[k]);
            ck_assert(w.is_inference && w.precision == PRECISION_FP32);
            got = workload_step(&w);
            count(&all[i], w.batch, &want);
            ck_assert_double_eq_tol(got.flop, want.flop, 1e-9 * want.flop);
            ck_assert_double_eq_tol(got.bytes, want.bytes, 1e-9 * want.bytes);
            ck_assert_double_eq(got.kernels, want.kernels);
            ck_assert_double_eq_tol(got.host_s, want.host_s, 1e-12);
        }
    }
}

TEST(rows_are_such_as_the_kernels_can_do)
{
    int n;
    const struct burn *all = burn_all(&n);

    for (int i = 0; i < n; i++) {
        ck_assert_int_eq(all[i].side % 64, 0);
        ck_assert_int_eq(all[i].layers > 0, all[i].side > 0);
        ck_assert_int_ge(BURN_KERNELS(all[i].layers, all[i].elements, all[i].tiny), 1);
    }
}

static const struct {
    const char *said, *want;    // NULL: nothing
} names[] = {
    { "burn-gemm-512", "burn-gemm-512" },
    { "gemm-2048", "burn-gemm-2048" },
    { "Burn Stream", "burn-stream" },
    { "host", "burn-host" },
    { "gemm", NULL },
    { "", NULL },
    { "resnet50", NULL },
};

EACH(benchmarks_are_found_with_and_without_their_first_word, names)
{
    const struct burn *b = burn_find(names[_i].said);

    ck_assert_int_eq(b != NULL, names[_i].want != NULL);
    if (b)
        ck_assert_str_eq(b->name, names[_i].want);
}
