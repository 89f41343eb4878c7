#include "probe/pair/result.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/buf.h"
#include "base/text/file.h"
#include "base/text/json.h"

static const struct phase_rate no_rate = { NAN, NAN, false };

void result_init(struct pair_result *r, int n_programs)
{
    *r = (struct pair_result){ .n_programs = n_programs };
    for (int i = 0; i < PHASE_PROGRAMS; i++) {
        r->alone[i] = (struct pair_alone){ no_rate, NAN, NAN, NAN, NAN, true };
        r->together.rates[i] = no_rate;
    }
    r->together.watts = NAN;
    r->together.fits = true;
}

static json_t *say_alone(const struct pair_alone *a)
{
    json_t *o = json_object();

    json_object_set_new(o, "steps_s", json_number_or_null(a->rate.steps_s));
    json_object_set_new(o, "noise", json_number_or_null(a->rate.noise));
    json_object_set_new(o, "watts", json_number_or_null(a->watts));
    json_object_set_new(o, "gpu_activity", json_number_or_null(a->gpu));
    json_object_set_new(o, "mem_activity", json_number_or_null(a->mem));
    json_object_set_new(o, "mem_used_bytes", json_number_or_null(a->mem_bytes));
    json_object_set_new(o, "fits", json_boolean(a->fits));
    json_object_set_new(o, "steady", a->fits ? json_boolean(a->rate.is_steady) : json_null());
    return o;
}

static json_t *say_together(const struct pair_together *t)
{
    json_t *speeds = json_array(), *noises = json_array(), *steady = json_array();
    json_t *o = json_object();

    for (int i = 0; i < PHASE_PROGRAMS; i++) {
        json_array_append_new(speeds, json_number_or_null(t->rates[i].steps_s));
        json_array_append_new(noises, json_number_or_null(t->rates[i].noise));
        json_array_append_new(steady, t->fits ? json_boolean(t->rates[i].is_steady) : json_null());
    }
    json_object_set_new(o, "steps_s", speeds);
    json_object_set_new(o, "noise", noises);
    json_object_set_new(o, "watts", json_number_or_null(t->watts));
    json_object_set_new(o, "fits", json_boolean(t->fits));
    json_object_set_new(o, "steady", steady);
    return o;
}

int result_write(const struct pair_result *r, const char *path, struct err *e)
{
    json_t *o = json_object(), *alone = json_array();
    struct buf text;
    char *json;
    int rc;

    for (int i = 0; i < r->n_programs; i++)
        json_array_append_new(alone, say_alone(&r->alone[i]));
    json_object_set_new(o, "gpu_type", json_text_or_null(r->gpu_type));
    json_object_set_new(o, "host", json_text_or_null(r->host));
    json_object_set_new(o, "seconds", json_number_or_null(r->seconds));
    json_object_set_new(o, "alone", alone);
    json_object_set_new(o, "together",
                        r->n_programs > 1 ? say_together(&r->together) : json_null());
    json = json_dumps(o, JSON_INDENT(2));
    assert(json);    // all texts are UTF-8; or out of memory: stop
    buf_init(&text, strlen(json) + 2);
    (void)buf_puts(&text, json);
    (void)buf_puts(&text, "\n");
    rc = file_write(path, buf_text(&text), text.len, e);
    buf_release(&text);
    free(json);
    json_decref(o);
    return rc;
}
