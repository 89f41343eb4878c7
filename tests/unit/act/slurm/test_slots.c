/* A node's gres line, and the GPUs that GOGH makes of it. */
#include <errno.h>

#include "act/slurm/view.h"
#include "base/arena.h"
#include "base/err.h"
#include "unit/suite.h"

/* type gres n_shards [sharing], '*' where a place cannot be told */
static const struct {
    const char *name, *gres, *want;
} lines[] = {
    { "no GPUs", "", "" },
    { "none, as Slurm says it", "(null)", "" },
    { "one GPU and its shards", "gpu:v100:1,shard:2", "v100 shard 2 timeslice;" },
    { "the shard may have the GPU's type", "gpu:v100:1(S:0),shard:v100:2(S:0)",
      "v100 shard 2 timeslice;" },
    { "one GPU without shards is had whole", "gpu:k80:1", "k80 gpu 0;" },
    { "one shard cannot be shared", "gpu:k80:1,shard:1", "k80 gpu 0;" },
    { "a gres type for each device",
      "gpu:v100_0:1(S:0),gpu:v100_1:1(S:1),shard:v100_0:2,shard:v100_1:2",
      "v100 shard:v100_0 2 timeslice;v100 shard:v100_1 2 timeslice;" },
    { "without shards, too", "gpu:v100_0:1,gpu:v100_1:1", "v100 gpu:v100_0 0;v100 gpu:v100_1 0;" },
    { "shards that belong to no GPU in particular", "gpu:v100_0:1,gpu:v100_1:1,shard:4",
      "v100 gpu:v100_0 0;v100 gpu:v100_1 0;" },
    { "one GPU each of unlike types", "gpu:k80:1,gpu:a100:1,shard:k80:2,shard:a100:2",
      "k80 shard:k80 2 timeslice;a100 shard:a100 2 timeslice;" },
    { "several alike: Slurm chooses", "gpu:v100:3,shard:6",
      "v100 gpu 0*;v100 gpu 0*;v100 gpu 0*;" },
    { "several alike beside others", "gpu:v100:2,gpu:k80:1",
      "v100 gpu:v100 0*;v100 gpu:v100 0*;k80 gpu:k80 0;" },
    { "GPUs without a type", "gpu:2", "gpu gpu 0*;gpu gpu 0*;" },
    { "one without count or type", "gpu", "gpu gpu 0;" },
    { "a type with a number of its own", "gpu:rtx_2080:1,shard:2", "rtx_2080 shard 2 timeslice;" },
    { "other things of a node", "craynetwork:4,gpu:v100:1,shard:2,mps:100",
      "v100 shard 2 timeslice;" },
    { "MPS without shards", "gpu:v100:1,mps:100", "v100 gpu 0 mps;" },
    { "a slice of a device", "gpu:a100_1g.5gb:2",
      "a100_1g.5gb gpu 0* mig;a100_1g.5gb gpu 0* mig;" },
    { "sockets with a comma", "gpu:v100:1(S:0,1),shard:2(S:0,1)", "v100 shard 2 timeslice;" },
    { "more than one can have", "gpu:v100:65", "?" },
    { "a word too many", "gpu:v100:1:2", "?" },
    { "two types", "gpu:a:b:1", "?" },
};

EACH(slots_are_read, lines)
{
    const struct slurm_slot *slots;
    struct arena a;
    struct err e = { 0 };
    char got[400] = "";
    int n;

    arena_init(&a);
    n = slurm_slots_read(&a, lines[_i].gres, &slots, &e);
    if (n < 0)
        snprintf(got, sizeof got, "?");
    for (int i = 0; i < n; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s %s %d%s%s%s;", slots[i].type,
                 slots[i].gres, slots[i].n_shards, slots[i].exact == SLURM_EXACT ? "" : "*",
                 slots[i].sharing ? " " : "",
                 slots[i].sharing ? sharing_name(slots[i].sharing) : "");
    ck_assert_msg(strcmp(got, lines[_i].want) == 0, "%s: %s %s", lines[_i].name, got, e.text);
    arena_release(&a);
}
