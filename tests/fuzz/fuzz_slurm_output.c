/* fuzz_slurm_output.c - whatever Slurm's commands print, what comes of it are lines of the wire.
 *
 * The first byte says which command it is. In the rest '~' stands for the separator and the mark.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "act/driver/hosts.h"
#include "act/driver/output.h"
#include "act/driver/owners.h"
#include "act/driver/wire.h"
#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"

#define MARK "0123456789abcdef"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_text(struct buf *b, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (data[i] == '~')
            (void)buf_puts(b, "\x1f" MARK);
        else
            (void)buf_append(b, data + i, 1);
    }
    (void)buf_append(b, "", 0);
}

/* Every line can be read. */
static void check_lines(struct arena *a, struct buf *out)
{
    for (char *at = out->data, *end = at; at && at < out->data + out->len; at = end + 1) {
        struct wire_message m;
        struct err e = { 0 };

        end = memchr(at, '\n', out->len - (size_t)(at - out->data));
        assert(end && wire_read(a, at, (size_t)(end - at), &m, &e) == 0 && m.seq == 7);
    }
}

static void check_hosts(struct arena *a, const char *text)
{
    const char *names, *again;
    struct err e = { 0 };

    if (hosts_expand(a, text, &names, &e) < 0)
        return;
    assert(hosts_expand(a, hosts_compress(a, names), &again, &e) == 0);
    assert(strcmp(names, again) == 0);
}

static void check_errors(struct arena *a, const char *text)
{
    static const char *const ids[] = { "1", "12_3" };
    struct output_trouble x[2];

    (void)output_troubles(a, text, ids, 2, x);
    (void)output_first_line(a, text);
    (void)output_kind_of(text);
    (void)output_is_up(text);
    assert(output_submitted(text) >= 0);
}

static void fuzz_jobs(struct arena *a, struct buf *text, const struct wire_message *m,
                      struct buf *out)
{
    struct owners owners = { 0 };

    (void)output_jobs(a, text->data, text->len, MARK, m, &owners, out);
    (void)owners_agree(&owners, "12_3", 1);
    owners_release(&owners);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char request[] = "7 x\tpartition=gogh\tid=1\tid=2";
    struct wire_message m;
    struct err e = { 0 };
    struct buf text, out;
    struct arena a;

    if (size == 0 || size > 65536)
        return 0;
    arena_init(&a);
    buf_init(&text, (size_t)4 << 20);
    buf_init(&out, (size_t)64 << 20);
    assert(wire_read(&a, arena_strdup(&a, request), sizeof request - 1, &m, &e) == 0);
    put_text(&text, data + 1, size - 1);
    if (data[0] == 'j')
        fuzz_jobs(&a, &text, &m, &out);
    else if (data[0] == 'n')
        (void)output_nodes(&a, text.data, text.len, MARK, &m, &out);
    else if (data[0] == 'd')
        (void)output_devices(&a, text.data, MARK, (const char *const[]){ "1", "2" }, 2, 7, &out);
    else if (data[0] == 'c')
        (void)output_config(&a, text.data, 7, &out);
    else if (data[0] == 'h')
        check_hosts(&a, text.data);
    else
        check_errors(&a, text.data);
    check_lines(&a, &out);
    buf_release(&out);
    buf_release(&text);
    arena_release(&a);
    return 0;
}
