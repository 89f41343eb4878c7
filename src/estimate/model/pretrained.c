/* pretrained.c - the model that ships with the program: data/pretrained.weights, inside it. */
#include <errno.h>

#include "base/embed.h"
#include "base/err.h"
#include "estimate/model/model.h"
#include "estimate/model/pretrained_file.h"    // by the build: where the file is, its digest

EMBED(pretrained, PRETRAINED_FILE);

int model_pretrained(struct model **out, struct err *e)
{
    // cppcheck-suppress comparePointers ; both are of the one file above
    size_t len = (size_t)(gogh_pretrained_end - gogh_pretrained_begin);

    *out = NULL;
    if (len == 0)
        return err_set(e, ENOENT, "this build has no pretrained model");
    int rc = model_decode(gogh_pretrained_begin, len, out, e);
    if (rc < 0 && e)
        err_prefix(e, "the pretrained model");
    return rc;
}
