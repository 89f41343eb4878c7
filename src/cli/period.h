/* period.h - commands about a period: --from and --to, and what they share. */
#ifndef CLI_PERIOD_H
#define CLI_PERIOD_H

#include <jansson.h>

struct arena;
struct buf;
struct client;
struct err;

struct period {
    const char *from, *to;    // as given; NULL: the daemon's default
};

#define PERIOD_OPTIONS(p)                                      \
    { .name = "from", .kind = OPTION_TEXT, .out = &(p).from }, \
    {                                                          \
        .name = "to", .kind = OPTION_TEXT, .out = &(p).to      \
    }

#define PERIOD_HELP                                                                              \
    "  --from TIME      begin (30 days before the end): \"2026-11-16 18:00\", 2026-11-16, -7d\n" \
    "  --to TIME        end (now)\n"

/* 'path' with the period behind it. */
int period_path(const struct period *p, struct client *c, const char *path, const char **out,
                struct err *e);

/* What a look back found (cmd_shadow.c). */
void shadow_put(struct arena *a, const json_t *s, struct buf *out);

#endif
