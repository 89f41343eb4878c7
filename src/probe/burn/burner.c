#include "probe/burn/burner.h"

#include <errno.h>
#include <math.h>
#include <time.h>

#include "base/err.h"
#include "catalog/burn.h"
#include "probe/burn/device.h"
#include "probe/burn/kernels.h"

#define TRIAD_FACTOR 3.0f

/* Buffers hold i modulo these at first; z begins as one that is all 0. */
static const uint32_t moduli[BURNER_BUFFERS] = { 5, 7, 1, 1, 11, 13, 1 };

static int fail(int code, const char *what, struct err *e)
{
    const int is_memory = code == OPENCL_ALLOCATION || code == OPENCL_BUFFER_SIZE;

    return err_set(e, is_memory ? ENOMEM : EIO, "OpenCL: %s: %s", what, opencl_words(code));
}

/* ---- memory ---- */

static void count_numbers(struct burner *b)
{
    const struct burn *w = b->burn;
    const size_t side = (size_t)w->side;

    if (w->layers > 0) {
        b->n[BURNER_X] = b->n[BURNER_Y] = b->batch * side;
        b->n[BURNER_W] = (size_t)w->layers * side * side;
    }
    b->n[BURNER_A] = b->n[BURNER_B] = b->n[BURNER_C] = (size_t)w->elements * b->batch;
    b->n[BURNER_Z] = w->tiny > 0 ? BURN_TINY * b->batch : 0;
}

/* Before anything is taken: some drivers promise memory that is not there, and fail later. Of a
 * device that does not tell its sizes only taking shows what fits.
 */
static int check_fit(const struct burner *b, struct err *e)
{
    double sum = 0, most = 0;

    for (int i = 0; i < BURNER_BUFFERS; i++) {
        sum += 4.0 * (double)b->n[i];
        most = fmax(most, 4.0 * (double)b->n[i]);
    }
    const bool is_over = b->device->mem_bytes > 0 && sum > b->device->mem_bytes;
    if (!is_over && !(b->device->alloc_max_bytes > 0 && most > b->device->alloc_max_bytes))
        return 0;
    return err_set(e, ENOMEM,
                   "out of memory: %s of size %zu takes %.2f GB%s, and %s has %.2f GB; take a "
                   "smaller --size",
                   b->burn->name, b->batch, (is_over ? sum : most) / 1e9,
                   is_over ? "" : " in one piece", b->device->name,
                   (is_over ? b->device->mem_bytes : b->device->alloc_max_bytes) / 1e9);
}

static int run(struct burner *b, opencl_handle kernel, size_t n, struct err *e)
{
    const size_t group = (size_t)KERNEL_GROUP * KERNEL_GROUP;
    const size_t global = (n + group - 1) / group * group;
    const int code = b->cl->run(b->queue, kernel, 1, NULL, &global, &group, 0, NULL, NULL);

    return code == OPENCL_OK ? 0 : fail(code, "a kernel cannot start", e);
}

/* A number, or a handle, as argument 'i' of a kernel. None of ours can be refused. */
#define ARGUMENT(b, kernel, i, value) \
    ((void)(b)->cl->argument((b)->kernel, (i), sizeof(value), &(value)))

static int take_buffer(struct burner *b, int i, struct err *e)
{
    const uint64_t n = b->n[i];
    int code;

    if (n == 0)
        return 0;
    b->buffers[i] = b->cl->buffer(b->context, OPENCL_READ_WRITE, n * sizeof(float), NULL, &code);
    if (code != OPENCL_OK)
        return fail(code, "cannot have memory", e);
    ARGUMENT(b, fill, 0, b->buffers[i]);
    ARGUMENT(b, fill, 1, n);
    ARGUMENT(b, fill, 2, moduli[i]);
    return run(b, b->fill, n, e);
}

/* Memory is often taken only when it is first written to, and what is missing then goes by the name
 * of resources.
 */
static int take_memory(struct burner *b, struct err *e)
{
    int rc = check_fit(b, e), code = OPENCL_OK;

    for (int i = 0; rc == 0 && i < BURNER_BUFFERS; i++)
        rc = take_buffer(b, i, e);
    if (rc < 0)
        return rc;
    code = b->cl->finish(b->queue);
    if (code == OPENCL_RESOURCES)
        return err_set(e, ENOMEM, "OpenCL: memory cannot be written: %s", opencl_words(code));
    return code == OPENCL_OK ? 0 : fail(code, "memory cannot be written", e);
}

/* ---- kernels ---- */

static int build_program(struct burner *b, opencl_handle *out, struct err *e)
{
    const char *text = burn_kernels;
    char log[300] = "";
    int code;

    *out = b->cl->program(b->context, 1, &text, NULL, &code);
    if (code != OPENCL_OK)
        return fail(code, "cannot take the kernels", e);
    code = b->cl->build(*out, 1, &b->device->id, "", NULL, NULL);
    if (code == OPENCL_OK)
        return 0;
    (void)b->cl->build_info(*out, b->device->id, OPENCL_BUILD_LOG, sizeof log - 1, log, NULL);
    return err_set(e, EIO, "OpenCL: the driver of %s cannot build the kernels: %s: %s",
                   b->device->name, opencl_words(code), log);
}

static int make_kernels(struct burner *b, struct err *e)
{
    struct {
        const char *name;
        opencl_handle *to;
    } const all[] = { { "fill", &b->fill },
                      { "product", &b->product },
                      { "triad", &b->triad },
                      { "tiny", &b->tiny } };
    opencl_handle program;
    size_t most = 0;
    int rc = build_program(b, &program, e), code;

    for (size_t i = 0; rc == 0 && i < sizeof all / sizeof *all; i++) {
        *all[i].to = b->cl->kernel(program, all[i].name, &code);
        if (code != OPENCL_OK)
            rc = fail(code, all[i].name, e);
    }
    if (rc < 0)
        return rc;
    code =
        b->cl->kernel_info(b->product, b->device->id, OPENCL_GROUP_SIZE, sizeof most, &most, NULL);
    if (code == OPENCL_OK && most < (size_t)KERNEL_GROUP * KERNEL_GROUP)
        return err_set(e, EIO, "%s takes groups of %zu at most, and %d are needed", b->device->name,
                       most, KERNEL_GROUP * KERNEL_GROUP);
    return 0;
}

static void set_arguments(struct burner *b)
{
    const uint32_t rows = (uint32_t)b->batch, side = (uint32_t)b->burn->side;
    const uint64_t n_triad = b->n[BURNER_A], n_tiny = b->n[BURNER_Z];
    const float factor = TRIAD_FACTOR;

    for (unsigned i = 0; i < 3; i++) {
        ARGUMENT(b, product, i, b->buffers[BURNER_X + i]);
        ARGUMENT(b, triad, i, b->buffers[BURNER_A + i]);
    }
    ARGUMENT(b, product, 3, rows);
    ARGUMENT(b, product, 4, side);
    ARGUMENT(b, triad, 3, n_triad);
    ARGUMENT(b, triad, 4, factor);
    ARGUMENT(b, tiny, 0, b->buffers[BURNER_Z]);
    ARGUMENT(b, tiny, 1, n_tiny);
}

int burner_open(struct burner *b, const struct opencl *cl, const struct opencl_device *device,
                const struct burn *burn, long batch, struct err *e)
{
    int code, rc;

    *b = (struct burner){ .cl = cl, .device = device, .burn = burn, .batch = (size_t)batch };
    count_numbers(b);
    b->context = cl->context(NULL, 1, &device->id, NULL, NULL, &code);
    if (code != OPENCL_OK)
        return fail(code, "cannot use the device", e);
    b->queue = cl->queue(b->context, device->id, 0, &code);
    if (code != OPENCL_OK)
        return fail(code, "cannot make a queue", e);
    rc = make_kernels(b, e);
    if (rc == 0)
        rc = take_memory(b, e);
    if (rc == 0)
        set_arguments(b);
    return rc;
}

/* ---- a step ---- */

static void did(struct burner *b, double flop, double bytes)
{
    b->kernels++;
    b->flop += flop;
    b->bytes += bytes;
}

static int multiply(struct burner *b, uint32_t layer, struct err *e)
{
    const double side = b->burn->side, rows = (double)b->batch;
    const size_t local[2] = { KERNEL_GROUP, KERNEL_GROUP };
    const size_t global[2] = { (size_t)b->burn->side / KERNEL_TILE * KERNEL_GROUP,
                               (b->batch + KERNEL_TILE - 1) / KERNEL_TILE * KERNEL_GROUP };
    int code;

    ARGUMENT(b, product, 5, layer);
    code = b->cl->run(b->queue, b->product, 2, NULL, global, local, 0, NULL, NULL);
    did(b, 2 * rows * side * side, 4 * (2 * rows * side + side * side));
    return code == OPENCL_OK ? 0 : fail(code, "a product cannot start", e);
}

/* Time of this thread on a CPU: a machine whose CPUs are all busy makes it last longer. */
static double thread_s(void)
{
    struct timespec t = { 0 };

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void compute_on_host(struct burner *b)
{
    const double until_s = thread_s() + b->burn->host_ms / 1e3;

    while (b->burn->host_ms > 0 && thread_s() < until_s)
        continue;
    b->host_s += b->burn->host_ms / 1e3;
}

int burner_step(struct burner *b, struct err *e)
{
    const double n_triad = (double)b->n[BURNER_A], n_tiny = (double)b->n[BURNER_Z];
    int rc = 0, code;

    for (int i = 0; rc == 0 && i < b->burn->layers; i++)
        rc = multiply(b, (uint32_t)i, e);
    if (rc == 0 && n_triad > 0) {
        rc = run(b, b->triad, b->n[BURNER_A], e);
        did(b, 2 * n_triad, 12 * n_triad);
    }
    for (int i = 0; rc == 0 && i < b->burn->tiny; i++) {
        rc = run(b, b->tiny, b->n[BURNER_Z], e);
        did(b, 2 * n_tiny, 8 * n_tiny);
    }
    if (rc < 0)
        return rc;
    code = b->cl->finish(b->queue);
    if (code != OPENCL_OK)
        return fail(code, "a step does not end", e);
    compute_on_host(b);
    b->steps++;
    return 0;
}

/* ---- are the results right? ---- */

static float filled(const struct burner *b, int i, size_t at)
{
    (void)b;
    return (float)((int)(at % moduli[i]) - (int)(moduli[i] / 2));
}

static float wanted(const struct burner *b, int i, size_t at)
{
    const size_t side = (size_t)b->burn->side;
    float v = 0;

    if (i == BURNER_A)
        return filled(b, BURNER_B, at) + TRIAD_FACTOR * filled(b, BURNER_C, at);
    if (i == BURNER_Y)    // of the last layer
        for (size_t k = 0; k < side; k++)
            v += filled(b, BURNER_X, at / side * side + k) *
                 filled(b, BURNER_W,
                        ((size_t)b->burn->layers - 1) * side * side + k * side + at % side);
    /* Converges: 2 in single precision after some 25. */
    for (int n = (int)fmin(b->steps * b->burn->tiny, 100); i == BURNER_Z && n > 0; n--)
        v = v * 0.5F + 1.0F;
    return v;
}

/* Some numbers from all over a result, the first and the last among them. */
static int check_result(struct burner *b, int i, const char *name, struct err *e)
{
    enum { LOOKS = 97 };
    const size_t last = b->n[i] - 1;

    for (size_t k = 0; b->n[i] > 0 && k < LOOKS; k++) {
        const size_t at = k + 1 == LOOKS ? last : last / (LOOKS - 1) * k;
        float got = NAN;
        const int code = b->cl->read(b->queue, b->buffers[i], 1, at * sizeof got, sizeof got, &got,
                                     0, NULL, NULL);

        if (code != OPENCL_OK)
            return fail(code, "cannot read a result", e);
        if (got != wanted(b, i, at))
            return err_set(e, EILSEQ,
                           "%s computes wrongly: number %zu of the %s is %g and should be %g; look "
                           "at its memory and its driver before trusting it",
                           b->device->name, at, name, (double)got, (double)wanted(b, i, at));
    }
    return 0;
}

int burner_check(struct burner *b, struct err *e)
{
    int rc = check_result(b, BURNER_Y, "product", e);

    if (rc == 0)
        rc = check_result(b, BURNER_A, "triad", e);
    return rc == 0 ? check_result(b, BURNER_Z, "tiny kernels", e) : rc;
}
