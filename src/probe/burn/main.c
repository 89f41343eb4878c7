/* gogh-burn BENCHMARK - a small benchmark on one GPU, by OpenCL, that reports as any job does.
 *
 * What a step of it does is in catalog/burn.h. Runs until it has done its steps or its time, or
 * until it is asked to end, which is no error.
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gogh.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "catalog/burn.h"
#include "catalog/workload.h"
#include "probe/burn/burner.h"
#include "probe/burn/device.h"
#include "probe/burn/opencl.h"

enum { EXIT_USAGE = 2 };

static const char usage[] =
    "usage: gogh-burn BENCHMARK [--size K] [--steps N | --seconds S] [--any-device] [--json]\n"
    "       gogh-burn --list [--json]\n"
    "\n"
    "Runs a small benchmark on the GPU that CUDA_VISIBLE_DEVICES or ROCR_VISIBLE_DEVICES leave\n"
    "visible, and reports its steps to GOGH. Without --steps and --seconds it runs until SIGTERM.\n"
    "\n"
    "  --list         the benchmarks: built-in models, whose descriptors GOGH has\n"
    "  --size K       samples a step, the batch size\n"
    "  --steps N      end after N steps, counted since the job's first start\n"
    "  --seconds S    end after S seconds\n"
    "  --any-device   a CPU will do where there is no GPU\n"
    "  --json         say in JSON what was done, and on which device\n";

struct burn_options {
    const struct burn *burn;
    long size;
    double steps, seconds;    // INFINITY: no end
    bool is_list, is_json, may_any;
};

static volatile sig_atomic_t is_stopped;

static void on_signal(int signo)
{
    (void)signo;
    is_stopped = 1;
}

static int complain(const struct err *e)
{
    fprintf(stderr, "gogh-burn: %s\n", e->text);
    return EXIT_FAILURE;
}

/* ---- options ---- */

static int read_number(const char *name, const char *text, double low, double high, double *out)
{
    if (text_to_double(slice_of(text), out) == 0 && *out >= low && *out <= high)
        return 0;
    fprintf(stderr, "gogh-burn: --%s %s: want a number from %g to %g\n", name, text, low, high);
    return -1;
}

static int read_size(const char *text, long *out)
{
    if (text_to_long(slice_of(text), 1, WORKLOAD_BATCH_MAX, out) == 0)
        return 0;
    fprintf(stderr, "gogh-burn: --size %s: want a whole number from 1 to %d\n", text,
            WORKLOAD_BATCH_MAX);
    return -1;
}

static int read_benchmark(const char *name, struct burn_options *o)
{
    o->burn = name ? burn_find(name) : NULL;
    if (o->burn || o->is_list)
        return 0;
    if (name)
        fprintf(stderr, "gogh-burn: no benchmark '%.60s'; gogh-burn --list has them\n", name);
    else
        fputs(usage, stderr);
    return -1;
}

static int read_options(int argc, char **argv, struct burn_options *o)
{
    static const struct option longs[] = {
        { "list", no_argument, NULL, 'l' },          { "json", no_argument, NULL, 'j' },
        { "any-device", no_argument, NULL, 'a' },    { "size", required_argument, NULL, 'k' },
        { "seconds", required_argument, NULL, 's' }, { "steps", required_argument, NULL, 'n' },
        { "help", no_argument, NULL, 'h' },          { NULL, 0, NULL, 0 },
    };
    int option, rc = 0;

    while (rc == 0 && (option = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
        if (option == 'l')
            o->is_list = true;
        else if (option == 'j')
            o->is_json = true;
        else if (option == 'a')
            o->may_any = true;
        else if (option == 'k')
            rc = read_size(optarg, &o->size);
        else if (option == 's')
            rc = read_number("seconds", optarg, 0.001, 1e9, &o->seconds);
        else if (option == 'n')
            rc = read_number("steps", optarg, 1, 1e15, &o->steps);
        else if (option == 'h')
            exit(fputs(usage, stdout) < 0);
        else
            return -1;
    }
    if (rc == 0 && optind + 1 < argc) {
        fprintf(stderr, "gogh-burn: one benchmark at a time: '%.60s' is too much\n",
                argv[optind + 1]);
        return -1;
    }
    if (rc == 0 && isfinite(o->steps) && isfinite(o->seconds)) {
        fputs("gogh-burn: --steps and --seconds: which of them ends it? Give one\n", stderr);
        return -1;
    }
    return rc == 0 ? read_benchmark(optind < argc ? argv[optind] : NULL, o) : rc;
}

/* ---- what it says ---- */

/* What a step of it does, of what there is. */
static void tell_parts(const struct burn *b)
{
    const char *sep = "  ";

    if (b->layers > 0) {
        printf("%s%d product%s with %d x %d weights", sep, b->layers, b->layers == 1 ? "" : "s",
               b->side, b->side);
        sep = ", ";
    }
    if (b->elements > 0) {
        printf("%s%.3g MB of memory traffic", sep, 12e-6 * b->elements * b->batch);
        sep = ", ";
    }
    if (b->tiny > 0) {
        printf("%s%d tiny kernels", sep, b->tiny);
        sep = ", ";
    }
    if (b->host_ms > 0)
        printf("%s%g ms on the CPU", sep, b->host_ms);
    putchar('\n');
}

static void tell_list(bool is_json)
{
    json_t *list = json_array();
    int n;
    const struct burn *all = burn_all(&n);

    for (int i = 0; i < n; i++) {
        if (is_json) {
            json_array_append_new(
                list, json_pack("{s:s, s:i}", "name", all[i].name, "batch", all[i].batch));
            continue;
        }
        printf("%-16s --size %-4d", all[i].name, all[i].batch);
        tell_parts(&all[i]);
    }
    if (is_json)
        json_print(list, JSON_INDENT(2));
    else
        json_decref(list);
}

static void tell_end(const struct burner *b, double took_s, bool is_json)
{
    const struct opencl_device *d = b->device;
    const double rate = b->steps / took_s;
    json_t *o;

    if (!is_json) {
        printf("%s (batch size %zu) on %s: %.0f step%s in %.2f s, %.4g steps/s, %.4g GFLOP/s, "
               "%.4g GB/s\n",
               b->burn->name, b->batch, d->name, b->steps, b->steps == 1 ? "" : "s", took_s, rate,
               b->flop / took_s / 1e9, b->bytes / took_s / 1e9);
        return;
    }
    o = json_pack("{s:s, s:I, s:s, s:s, s:b, s:o, s:f, s:f, s:f}", "workload", b->burn->name,
                  "batch", (json_int_t)b->batch, "device", d->name, "platform", d->platform, "gpu",
                  d->is_gpu, "uuid", json_text_or_null(*d->uuid ? d->uuid : NULL), "steps",
                  b->steps, "seconds", took_s, "steps_s", rate);
    json_object_set_new(o, "flop_per_step", json_real(b->flop / b->steps));
    json_object_set_new(o, "bytes_per_step", json_real(b->bytes / b->steps));
    json_object_set_new(o, "kernels_per_step", json_real(b->kernels / b->steps));
    json_object_set_new(o, "host_s_per_step", json_real(b->host_s / b->steps));
    json_print(o, JSON_INDENT(2));
}

/* ---- running ---- */

static int find_device(const struct opencl *cl, bool may_any, struct opencl_device *out,
                       struct err *e)
{
    static struct opencl_device all[DEVICES_MAX];
    const int n = device_list(cl, all, e);
    const int i = n > 0 ? device_choose(all, n, getenv("CUDA_VISIBLE_DEVICES"),
                                        getenv("ROCR_VISIBLE_DEVICES"), may_any)
                        : DEVICE_NONE;

    if (n < 0)
        return n;
    if (i == DEVICE_UNCERTAIN)
        return err_set(e, ENODEV,
                       "OpenCL shows more AMD GPUs than ROCR_VISIBLE_DEVICES (%.60s) names, so its "
                       "driver does not heed that, and another job's GPU might be measured: use "
                       "AMD's own OpenCL driver, of ROCm, or hide the other GPUs from the job",
                       getenv("ROCR_VISIBLE_DEVICES"));
    if (i < 0)
        return err_set(e, ENODEV,
                       "OpenCL shows no GPU for this job (%d other device%s): install the part of "
                       "the GPU's driver that speaks OpenCL (Debian: nvidia-opencl-icd; "
                       "mesa-opencl-icd for AMD), look at CUDA_VISIBLE_DEVICES and "
                       "ROCR_VISIBLE_DEVICES, or use a CPU with --any-device",
                       n, n == 1 ? "" : "s");
    *out = all[i];
    return 0;
}

/* Steps until the end. The first is checked, and its time (caches, clocks, first launches) counts
 * no less than that of others: whoever measures warms up.
 */
static int burn_on(struct burner *b, const struct burn_options *o, struct gogh *g, struct err *e)
{
    const double until_s = clock_stopwatch_s() + o->seconds;
    int rc = 0;

    while (rc == 0 && !is_stopped && g->steps < o->steps && clock_stopwatch_s() < until_s) {
        rc = burner_step(b, e);
        if (rc == 0 && b->steps == 1)
            rc = burner_check(b, e);
        if (rc == 0)
            gogh_step(g, 1);
    }
    return rc;
}

static int burn(const struct burn_options *o)
{
    static struct opencl cl;
    static struct opencl_device device;
    static struct burner b;
    struct gogh g = gogh_open();
    struct err e = { 0 };
    double began_s;
    int rc = opencl_open(&cl, &e);

    if (rc == 0)
        rc = find_device(&cl, o->may_any, &device, &e);
    if (rc == 0)
        rc = burner_open(&b, &cl, &device, o->burn, o->size ? o->size : o->burn->batch, &e);
    began_s = clock_stopwatch_s();
    if (rc == 0)
        rc = burn_on(&b, o, &g, &e);
    if (rc == -ENOMEM)
        gogh_unfit(&g);
    gogh_close(&g);
    if (rc < 0)
        return complain(&e);
    if (b.steps > 0)
        tell_end(&b, clock_stopwatch_s() - began_s, o->is_json);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    struct burn_options o = { .steps = (double)INFINITY, .seconds = (double)INFINITY };
    struct sigaction stop = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    int status;

    if (read_options(argc, argv, &o) < 0)
        return EXIT_USAGE;
    if (o.is_list) {
        tell_list(o.is_json);
        return EXIT_SUCCESS;
    }
    (void)sigaction(SIGTERM, &stop, NULL);
    (void)sigaction(SIGINT, &stop, NULL);
    status = burn(&o);
    (void)fflush(stdout);
    _exit(status);    // drivers have threads, which need not agree to an orderly end
}
