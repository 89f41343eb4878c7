/* job_json.h - a job as the API shows it (docs/api.md, "A job").
 *
 * Read from the state and from whoever watches the job: parts of the service that are not there
 * (in tests, or a daemon that is only starting) leave their keys null.
 */
#ifndef DAEMON_SERVICE_JOB_JSON_H
#define DAEMON_SERVICE_JOB_JSON_H

#include <stdbool.h>

struct api_text;
struct job;
struct service;

/* One object of a list; 'key' as in api_put_open. */
void job_put(struct api_text *t, const char *key, const struct service *s, const struct job *j,
             double now_s);

/* With what is told of a single job: its command, its run, its reports. */
void job_put_whole(struct api_text *t, const char *key, const struct service *s,
                   const struct job *j, double now_s);

/* "box/0": a GPU by its node and slot, into 'out'. */
enum { GPU_NAME_MAX = 224 };
void api_gpu_name(const struct service *s, int gpu, char out[GPU_NAME_MAX]);

/* Slower than asked by less than this is the noise of a measurement, and kept. */
#define PROMISE_SLACK 0.02

/* "none", "kept", "short" or "unknown", for a job that runs at 'speed' (NaN: unknown). One that
 * waits is short of a throughput, and of a deadline once that has passed (until then unknown); one
 * that has ended is judged by the whole of its time.
 */
const char *job_promise(const struct job *j, double speed, double now_s);

#endif
