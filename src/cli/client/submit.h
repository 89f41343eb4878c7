/* submit.h - what commands that hand jobs over have in common: `gogh submit` and `gogh commission`.
 */
#ifndef CLI_CLIENT_SUBMIT_H
#define CLI_CLIENT_SUBMIT_H

#include <jansson.h>
#include <stdbool.h>

struct cmd_list;
struct err;

/* The environment that goes along with a job into the body, and what 'also' (may be NULL) names. */
int submit_environment(json_t *body, const struct cmd_list *also, struct err *e);

/* Has a job, as the daemon shows it, ended for good? */
bool submit_has_ended(const json_t *job);

/* Wait so many seconds; a signal ends it early. */
void submit_rest(double s);

#endif
