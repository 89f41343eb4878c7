/* azure.h - Azure's LLM inference traces (2023): times and lengths of requests.
 *
 * CSV with TIMESTAMP,ContextTokens,GeneratedTokens, in order of time. Read by a bench and by
 * `gogh trace import azure`; lives in the caller's arena.
 */
#ifndef SERVE_AZURE_H
#define SERVE_AZURE_H

#include <stddef.h>

#include "serve/continuous.h"

struct arena;
struct err;

struct azure_trace {
    struct llm_request *requests;    // (n) from 0 s on, in order
    int n;
    double span_s;
};

/* 'name' is for messages. -EINVAL names the line. */
int azure_read(struct arena *a, const char *name, const char *text, size_t len,
               struct azure_trace *out, struct err *e);

#endif
