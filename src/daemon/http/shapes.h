/* shapes.h - the shapes of everything that is asked and answered (docs/api.md).
 *
 * Tables for routes.c: what is checked, what /openapi.json prints, what tests hold answers against.
 */
#ifndef DAEMON_HTTP_SHAPES_H
#define DAEMON_HTTP_SHAPES_H

#include "daemon/http/schema.h"

/* The most of one list in one answer, and what is given where nobody says: 10,000 jobs take about
 * 25 ms to write, and nothing may hold the loop for 100.
 */
enum { PAGE_MAX = 10000, PAGE_DEFAULT = 1000 };

/* Measurements in one request: each is a row of the store and a surprise to take in. */
enum { MEASUREMENTS_MAX = 1000 };

/* Programs that a site may be measured with: pairs of more are not all tried. */
enum { PROGRAMS_MAX = 64 };

/* Cells that are asked about for that: the answer's are 288. */
enum { TARGETS_MAX = 1000 };

/* Parameters of paths and queries. */
extern const struct schema schema_job_query;
extern const struct schema schema_job_ref;
extern const struct schema schema_explain_query;
extern const struct schema schema_service_query;
extern const struct schema schema_node_ref;
extern const struct schema schema_page_query;
extern const struct schema schema_measurement_query;
extern const struct schema schema_estimate_query;
extern const struct schema schema_report_query;
extern const struct schema schema_period_query;
extern const struct schema schema_event_query;

/* Bodies. */
extern const struct schema schema_submit;
extern const struct schema schema_descriptor;
extern const struct schema schema_scale;
extern const struct schema schema_observations;
extern const struct schema schema_commission_ask;

/* Answers. */
extern const struct schema schema_job;
extern const struct schema schema_job_whole;
extern const struct schema schema_jobs;
extern const struct schema schema_explain;
extern const struct schema schema_services;
extern const struct schema schema_service_whole;
extern const struct schema schema_endpoints;
extern const struct schema schema_plan;
extern const struct schema schema_node;
extern const struct schema schema_nodes;
extern const struct schema schema_gpus;
extern const struct schema schema_workload;
extern const struct schema schema_workloads;
extern const struct schema schema_cells;
extern const struct schema schema_taken;
extern const struct schema schema_estimates;
extern const struct schema schema_commission;
extern const struct schema schema_report;
extern const struct schema schema_shadow;
extern const struct schema schema_status;
extern const struct schema schema_health;
extern const struct schema schema_ready;

#endif
