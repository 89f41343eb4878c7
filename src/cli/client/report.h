/* report.h - parts of `gogh report`. report_services.c has them. */
#ifndef CLI_CLIENT_REPORT_H
#define CLI_CLIENT_REPORT_H

#include <jansson.h>

struct arena;

/* A row a service, of what GET /v1/report says: as a table (nothing where there
 * is none), as CSV.
 */
void report_services(struct arena *a, const json_t *report);
void report_services_csv(struct arena *a, const json_t *report);

#endif
