/* fuzz_slurm_view.c - any line becomes a job, a node, a note and slots, or is refused with a sentence. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "act/slurm/view.h"
#include "act/driver/wire.h"
#include "base/arena.h"
#include "base/err.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_texts(struct arena *a, const char *text)
{
    const struct slurm_slot *slots;
    struct slurm_note note;
    struct err e = { 0 };
    const int n = slurm_slots_read(a, text, &slots, &e);

    assert(n >= 0 || e.text[0]);
    for (int i = 0; i < n; i++)
        assert(*slots[i].type && *slots[i].gres && slots[i].n_shards != 1);
    slurm_note_read(a, text, text, &note);
    assert(note.at && note.gres && (note.is_ours || !*note.token));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *line = malloc(size + 1);
    struct wire_message m;
    struct slurm_node node;
    struct slurm_job job;
    struct err e = { 0 };
    struct arena a;

    if (!line)
        abort();
    arena_init(&a);
    if (size)
        memcpy(line, data, size);
    line[size] = '\0';
    read_texts(&a, line);
    if (wire_read(&a, line, size, &m, NULL) == 0) {
        assert(slurm_job_read(&a, &m, &job, &e) == 0 || e.text[0]);
        assert(slurm_node_read(&a, &m, &node, &e) == 0 || e.text[0]);
        for (int i = 0; i < m.n_pairs; i++)
            read_texts(&a, m.pairs[i].value);
    }
    arena_release(&a);
    free(line);
    return 0;
}
