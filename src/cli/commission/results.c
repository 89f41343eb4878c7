#include "cli/commission/results.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "base/text/json.h"

/* Where speeds within a phase contradict each other, their mean is at best so sure. */
#define UNSTEADY_NOISE 0.2

/* A file being read. */
struct result_reading {
    const char *name;
    const struct result_of *of;
    double seconds;
    json_t *measurements, *profiles;
};

static int blame(const struct result_reading *r, const char *what, struct err *e)
{
    return err_set(e, EINVAL, "%s: %s is missing or wrong; measure it again", r->name, what);
}

static void put_number(json_t *o, const char *key, double v, double high)
{
    if (v >= 0 && v <= high)
        json_object_set_new(o, key, json_real(v));
}

/* One measurement: its speed, or that it did not fit; with watts. */
static void put(struct result_reading *r, const char *workload, const char *beside, double steps_s,
                double noise, double watts)
{
    json_t *o =
        json_pack("{s:s, s:s, s:s?}", "workload", workload, "gpu", r->of->gpu, "beside", beside);

    if (isnan(steps_s)) {
        json_object_set_new(o, "unfit", json_true());
    } else {
        json_object_set_new(o, "throughput", json_real(steps_s));
        put_number(o, "noise", noise, 10);
        if (watts > 0)
            put_number(o, "watts", watts, 1e6);
        put_number(o, "duration_s", r->seconds, 1e10);
    }
    json_array_append_new(r->measurements, o);
}

static bool is_speed(double v)
{
    return v >= 1e-12 && v <= 1e12;
}

static double noise_of(double noise, const json_t *steady)
{
    return json_is_false(steady) ? fmax(noise, UNSTEADY_NOISE) : noise;
}

static void put_profile(struct result_reading *r, const char *workload, const json_t *phase)
{
    static const char *const keys[][2] = { { "gpu_activity", "gpu_activity" },
                                           { "mem_activity", "mem_activity" },
                                           { "watts", "solo_watts" },
                                           { "mem_used_bytes", "mem_used_bytes" } };
    json_t *o = json_object();

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (json_number_of(phase, keys[i][0]) > 0)
            put_number(o, keys[i][1], json_number_of(phase, keys[i][0]), i < 2 ? 1 : 1e15);
    if (json_object_size(o) > 0)
        json_object_set(r->profiles, workload, o);
    json_decref(o);
}

static int read_alone(struct result_reading *r, const json_t *phase, const char *workload,
                      struct err *e)
{
    double steps_s = json_number_of(phase, "steps_s");

    if (!json_is_object(phase))
        return blame(r, "alone", e);
    if (json_is_false(json_object_get(phase, "fits"))) {
        put(r, workload, NULL, NAN, NAN, NAN);
        return 0;
    }
    if (!is_speed(steps_s))
        return blame(r, "alone: steps_s", e);
    put(r, workload, NULL, steps_s,
        noise_of(json_number_of(phase, "noise"), json_object_get(phase, "steady")),
        json_number_of(phase, "watts"));
    put_profile(r, workload, phase);
    return 0;
}

/* The i-th of a list of numbers; NaN: it has none. */
static double item(const json_t *o, const char *key, size_t i)
{
    const json_t *v = json_array_get(json_object_get(o, key), i);

    return json_is_number(v) ? json_number_value(v) : (double)NAN;
}

static int read_together(struct result_reading *r, const json_t *phase, struct err *e)
{
    const char *workloads[2] = { r->of->a, r->of->b };
    bool fits = !json_is_false(json_object_get(phase, "fits"));

    if (!json_is_object(phase))
        return blame(r, "together", e);
    for (size_t i = 0; i < 2; i++) {
        double steps_s = fits ? item(phase, "steps_s", i) : (double)NAN;

        if (fits && !is_speed(steps_s))
            return blame(r, "together: steps_s", e);
        put(r, workloads[i], workloads[1 - i], steps_s,
            noise_of(item(phase, "noise", i), json_array_get(json_object_get(phase, "steady"), i)),
            json_number_of(phase, "watts"));
    }
    return 0;
}

static int read_phases(struct result_reading *r, const json_t *o, struct err *e)
{
    const json_t *alone = json_object_get(o, "alone");
    const char *gpu = json_text_of(o, "gpu_type");
    int rc = 0;

    if (gpu != NULL && strcmp(gpu, r->of->gpu) != 0)
        return err_set(e, EINVAL, "%s: it was measured on '%.60s', not on '%.60s'", r->name, gpu,
                       r->of->gpu);
    r->seconds = json_number_of(o, "seconds");
    rc = read_alone(r, json_array_get(alone, 0), r->of->a, e);
    if (rc == 0 && r->of->b != NULL)
        rc = read_alone(r, json_array_get(alone, 1), r->of->b, e);
    return rc == 0 && r->of->b != NULL ? read_together(r, json_object_get(o, "together"), e) : rc;
}

int results_parse(const char *name, const char *text, size_t len, const struct result_of *of,
                  json_t **measurements, json_t **profiles, struct err *e)
{
    struct result_reading r = {
        .name = name, .of = of, .measurements = json_array(), .profiles = json_object()
    };
    json_error_t wrong;
    json_t *o = json_loadb(text, len, JSON_REJECT_DUPLICATES, &wrong);
    int rc = json_is_object(o) ? read_phases(&r, o, e)
                               : err_set(e, EINVAL, "%s: this is no result of gogh-pair", name);

    json_decref(o);
    *measurements = r.measurements;
    *profiles = r.profiles;
    if (rc < 0) {
        json_decref(r.measurements);
        json_decref(r.profiles);
        *measurements = *profiles = NULL;
    }
    return rc;
}
