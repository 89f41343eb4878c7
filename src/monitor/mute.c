#include "monitor/mute.h"

#include <assert.h>
#include <stdint.h>

/* Four bytes as the filter loads them: the first is the highest. */
static uint32_t word_at(const char *s)
{
    const unsigned char *b = (const unsigned char *)s;

    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* What is too short, or differs anywhere, jumps behind it; the rest is dropped. */
static int mute_one(const struct muted *m, size_t header, struct sock_filter *out)
{
    const uint32_t at = (uint32_t)(m->at + header);
    int n = 0;

    out[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0);
    out[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, at + REPORT_SECRET_BYTES, 0,
                                            MUTE_EACH - 2);
    for (uint32_t i = 0; i < REPORT_SECRET_BYTES; i += 4) {
        out[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at + i);
        const unsigned char behind = (unsigned char)(MUTE_EACH - n - 1);
        out[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, word_at(m->secret + i),
                                                0, behind);
    }
    out[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
    assert(n == MUTE_EACH);
    return n;
}

int mute_program(const struct muted *list, int n, size_t header,
                 struct sock_filter out[MUTE_PROGRAM_MAX])
{
    int at = 0;

    assert(n <= MUTED_MAX);
    for (int i = 0; i < n; i++)
        at += mute_one(&list[i], header, out + at);
    out[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, UINT32_MAX);
    return at;
}
