/* pretrained.c - the model that ships with the program: data/pretrained.weights, inside it. */
#include <errno.h>

#include "base/err.h"
#include "estimate/model/model.h"
#include "estimate/model/pretrained_file.h"    // by the build: where the file is, its digest

/* The assembler reads the file, which gcc and clang both leave to it, and faster than any
 * array of numbers could be compiled.
 */
__asm__(".pushsection .rodata\n"
        "gogh_pretrained_begin:\n"
        ".incbin \"" PRETRAINED_FILE "\"\n"
        "gogh_pretrained_end:\n"
        ".byte 0\n"
        ".popsection\n");

extern const char gogh_pretrained_begin[], gogh_pretrained_end[];

int model_pretrained(struct model **out, struct err *e)
{
    // cppcheck-suppress comparePointers ; both are in the one section above
    size_t len = (size_t)(gogh_pretrained_end - gogh_pretrained_begin);

    *out = NULL;
    if (len == 0)
        return err_set(e, ENOENT, "this build has no pretrained model");
    int rc = model_decode(gogh_pretrained_begin, len, out, e);
    if (rc < 0 && e)
        err_prefix(e, "the pretrained model");
    return rc;
}
