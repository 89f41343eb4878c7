/* api.h - the handlers of routes.c, and what they share.
 *
 * One file of them by subject, api_*.c. A handler looks at the service, asks it for changes and
 * answers, at once or when a worker or child is done. None holds the loop: what is long comes in
 * pages (PAGE_MAX), what takes long is done elsewhere.
 */
#ifndef DAEMON_API_API_H
#define DAEMON_API_API_H

#include "catalog/cluster/event.h"
#include "daemon/http/json_text.h"
#include "daemon/http/http.h"

struct job;
struct service;

/* jobs.c */
void api_list_jobs(struct request *r);
void api_submit_job(struct request *r);
void api_show_job(struct request *r);
void api_cancel_job(struct request *r);
void api_hold_job(struct request *r);
void api_release_job(struct request *r);

/* services.c */
void api_list_services(struct request *r);
void api_show_service(struct request *r);
void api_list_endpoints(struct request *r);
void api_scale_service(struct request *r);

/* plan.c */
void api_explain_job(struct request *r);
void api_plan(struct request *r);

/* nodes.c */
void api_list_nodes(struct request *r);
void api_drain_node(struct request *r);
void api_resume_node(struct request *r);
void api_list_gpus(struct request *r);

/* catalog.c */
void api_list_workloads(struct request *r);
void api_add_workload(struct request *r);
void api_list_measurements(struct request *r);
void api_add_measurements(struct request *r);
void api_list_estimates(struct request *r);

/* commission.c */
void api_commission(struct request *r);

/* report.c */
void api_report(struct request *r);
void api_shadow(struct request *r);

/* daemon.c */
void api_status(struct request *r);
void api_events(struct request *r);
void api_health(struct request *r);
void api_ready(struct request *r);
void api_openapi(struct request *r);
void api_metrics(struct request *r);

/* ---- shared ---- */

struct service *api_service(const struct request *r);
double api_now_s(const struct request *r);

/* The job that is asked about by id or name in the argument 'name'; NULL: there is none, and the
 * answer is given.
 */
const struct job *api_find_job(struct request *r, const char *name);

/* The engine's jobs are looked at and nothing else; true: that is said. */
bool api_only_watches(struct request *r);

/* May the caller change the job, and does job.h draw the arrow? Where not, the answer is given; it
 * ends with 'what'.
 */
bool api_may_change(struct request *r, const struct job *j, enum event_kind kind, const char *what);

/* The end of a page of a list, and of the answer: 'next' is what the following one is after; -1:
 * that was all.
 */
void api_end_page(struct api_text *t, long total, long next);

/* Answer with the text of 't', which is released. */
void api_reply(struct request *r, int status, struct api_text *t);

#endif
