#include "base/text/json.h"

#include <math.h>
#include <stdio.h>

json_t *json_number_or_null(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

json_t *json_text_or_null(const char *text)
{
    return text ? json_string(text) : json_null();
}

double json_number_of(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);

    return json_is_number(v) ? json_number_value(v) : (double)NAN;
}

const char *json_text_of(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

void json_print(json_t *j, size_t flags)
{
    json_dumpf(j, stdout, flags);
    putchar('\n');
    json_decref(j);
}
