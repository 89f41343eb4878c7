/* eval_serving.h - `gogh eval --split serving`: step times of servers, and their neighbours. */
#ifndef CLI_OFFLINE_EVAL_SERVING_H
#define CLI_OFFLINE_EVAL_SERVING_H

#include <stdbool.h>

struct catalog;
struct err;
struct serving_eval_options;

/* Run it and print what came of it. 'model' is its name. */
int eval_serving(const struct catalog *c, const struct serving_eval_options *o, const char *model,
                 bool is_json, struct err *e);

#endif
