/* Secrets of reports: what a job of sbatch brought, or made from the store's own key. */
#include <string.h>

#include <jansson.h>

#include "act/slurm/inner.h"
#include "base/text/file.h"
#include "catalog/cluster/state.h"

/* A job that came by sbatch brought its own, which its command keeps. */
static bool brought_secret(const struct job_spec *spec, char out[RUN_SECRET_BYTES + 1])
{
    json_t *command = spec->command ? json_loads(spec->command, 0, NULL) : NULL;
    json_t *env = json_object_get(command, "env");
    const char *text = json_string_value(json_object_get(env, "GOGH_SECRET"));
    const bool is_there = text && strlen(text) == RUN_SECRET_BYTES;

    if (is_there)
        memcpy(out, text, RUN_SECRET_BYTES + 1);
    json_decref(command);
    return is_there;
}

const char *slurm_secret(struct slurm *x, int job)
{
    const struct job_spec *spec = &x->setup.state->jobs[job]->spec;
    char digest[65];

    if (!x->setup.key)
        return NULL;
    if (slurm_is_users(spec))
        return brought_secret(spec, x->secret) ? x->secret : NULL;
    struct {
        unsigned char key[16];
        double submit_s;
        int64_t job;
    } from = { .submit_s = spec->submit_s, .job = job };
    memcpy(from.key, x->setup.key, sizeof from.key);
    file_digest(&from, sizeof from, digest);
    memcpy(x->secret, digest, RUN_SECRET_BYTES);
    x->secret[RUN_SECRET_BYTES] = '\0';
    return x->secret;
}
