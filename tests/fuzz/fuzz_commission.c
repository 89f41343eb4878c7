/* Any bytes as what `gogh commission` reads: a file of programs, what gogh-burn lists, what gogh-pair
 * has measured. What is taken of a result is a body that the daemon would look at.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "cli/commission/programs.h"
#include "cli/commission/results.h"
#include "daemon/http/shapes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take_result(const char *text, size_t len, const struct result_of *of)
{
    json_t *measurements, *profiles;
    struct err e = { 0 };

    if (results_parse("file", text, len, of, &measurements, &profiles, &e) < 0)
        return;
    json_t *body = json_pack("{s:o}", "measurements", measurements);
    assert(schema_check(&schema_observations, body, &e) == 0);
    json_decref(body);
    json_decref(profiles);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct programs programs;
    struct err e = { 0 };
    struct arena a;

    arena_init(&a);
    if (programs_parse(&a, "file", text, size, &programs, &e) == 0) {
        assert(programs.n > 0 && programs.n <= PROGRAMS_MAX && programs.list[0].n_argv > 0);
        json_decref(programs_json(&programs));
    }
    if (programs_parse_list(&a, "gogh-burn", text, size, &programs, &e) == 0)
        json_decref(programs_json(&programs));
    take_result(text, size, &(struct result_of){ .gpu = "v100", .a = "one", .b = "two" });
    take_result(text, size, &(struct result_of){ .gpu = "v100", .a = "one" });
    arena_release(&a);
    return 0;
}
