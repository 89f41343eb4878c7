/* fuzz_sacct.c - Slurm's accounting survives any bytes, and every line of it is counted once. */
#include <assert.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "sim/history/sacct.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    struct err e = { 0 };
    struct sacct s;

    arena_init(&a);
    if (sacct_parse(&a, "f", (const char *)data, size, NULL, &s, &e) == 0) {
        assert(s.n_lines == s.n_jobs + s.n_steps + s.n_elsewhere + s.n_unstarted + s.n_cpu +
                                s.n_repeated + s.n_refused);
        for (int i = 0; i < s.n_jobs; i++) {
            assert(s.jobs[i].elapsed_s > 0 && s.jobs[i].ready_s <= s.jobs[i].start_s);
            assert(s.jobs[i].n_gpus + s.jobs[i].n_shards > 0 && s.jobs[i].n_nodes > 0);
        }
    } else {
        assert(e.text[0] != '\0');
    }
    arena_release(&a);
    return 0;
}
