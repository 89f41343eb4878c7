/* fuzz_command.c - commands and launches survive any bytes; what is accepted can be run and written. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "act/local/command.h"
#include "base/arena.h"
#include "base/err.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct command *c)
{
    assert(c->n_argv > 0 && c->argv[0][0] && !c->argv[c->n_argv] && !c->env[c->n_env]);
    for (int i = 0; i < c->n_env; i++)
        assert(strchr(c->env[i], '=') && c->env[i][0] != '=');
    assert(!c->cwd || c->cwd[0] == '/');
    assert(c->timeout_s >= 0 && c->retries >= 0 && c->uid >= -1 && c->gid >= -1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct launch o, again;
    struct command c;
    struct arena a;
    struct err e = { 0 };

    arena_init(&a);
    if (command_parse(&a, arena_strndup(&a, (const char *)data, size), &c, &e) == 0)
        check(&c);
    else
        assert(e.code > 0 && e.text[0]);
    e = (struct err){ 0 };
    if (launch_decode(&a, (const char *)data, size, &o, &e) == 0) {
        check(&o.command);
        const char *text = launch_encode(&a, &o);
        int rc = launch_decode(&a, text, strlen(text), &again, &e);
        assert(rc == 0 && strcmp(launch_encode(&a, &again), text) == 0);
    } else {
        assert(e.code > 0 && e.text[0]);
    }
    arena_release(&a);
    return 0;
}
