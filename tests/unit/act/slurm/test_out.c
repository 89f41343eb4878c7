/* Patterns of output files become the files that they are. */
#include "act/slurm/view.h"
#include "base/arena.h"
#include "unit/suite.h"

static const struct slurm_job alone = {
    .id = 7, .array = -1, .task = -1, .name = "train.sh", .nodes = "v100-1", .cwd = "/home/ann"
};
static const struct slurm_job task = {
    .id = 21, .array = 17, .task = 13, .name = "sweep", .nodes = "a.site,b.site", .cwd = "/home/ann"
};
static const struct slurm_job waiting = {
    .id = 8, .array = -1, .task = -1, .name = "w", .nodes = "", .cwd = ""
};

static const struct {
    const struct slurm_job *job;
    const char *pattern, *path;
} cases[] = {
    { &alone, "", "" },
    { &alone, "/home/ann/slurm-7.out", "/home/ann/slurm-7.out" },
    { &alone, "/home/%u/train-%j.out", "/home/ann/train-7.out" },
    { &alone, "/o/%x.%J.%A", "/o/train.sh.7.7" },
    { &alone, "/o/%a", "/o/4294967294" },
    { &alone, "/o/%5j", "/o/00007" },
    { &alone, "/o/%99j", "/o/0000000007" },
    { &alone, "/o/%n-%t-%s-%N", "/o/0-0-batch-v100-1" },
    { &alone, "/o/100%%-%j", "/o/100%-7" },
    { &alone, "/o/%q-%", "/o/%q-%" },
    { &alone, "/o/%%j", "/o/%j" },
    { &alone, "/o/\\%j", "/o/%j" },
    { &alone, "out/%j", "/home/ann/out/7" },
    { &task, "/o/%A_%a", "/o/17_13" },
    { &task, "/o/%j.%b.%3a", "/o/21.3.013" },
    { &task, "/o/%N", "/o/a" },
    { &waiting, "/o/%N-%j", "/o/%N-8" },
    { &waiting, "out-%j", "out-8" },
};

EACH(a_pattern_becomes_the_file_that_slurm_writes, cases)
{
    struct slurm_job j = *cases[_i].job;
    struct arena a;

    j.out = cases[_i].pattern;
    arena_init(&a);
    ck_assert_str_eq(slurm_out_path(&a, &j, "ann"), cases[_i].path);
    arena_release(&a);
}
