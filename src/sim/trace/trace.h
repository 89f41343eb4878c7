/* trace.h - jobs, services and when they arrive, as a person writes them
 * (docs/formats/trace.md).
 *
 *     # one job a line
 *     job a1 at=0    workload="ResNet-18 (batch size 16)" steps=120000 min=3.5
 *     job a2 at=60.5 workload=bert-base batch=32 steps=9000 deadline=7200 gpus=2 max_gpus=4
 *     job s1 at=90   workload=llama-7b batch=8 rate=30 duration=3600 priority=5 owner=ann exclusive
 *     service web at=0 workload=resnet50-infer rate=40 p99=0.2 max_gpus=4 traffic=drawn seed=7
 *
 * Made by trace_parse, by the generator and by the importers; read by the simulator;
 * lives in the caller's arena.
 */
#ifndef SIM_TRACE_TRACE_H
#define SIM_TRACE_TRACE_H

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct buf;
struct err;

struct trace_job {
    int line;    // of the file it stands in; 0: it was drawn
    const char *name;
    const char *owner;       // NULL: none given
    double at_s;             // arrival, from the trace's beginning
    const char *workload;    // full name, with its batch
    bool is_inference;
    double steps;               // training
    double rate, duration_s;    // inference
    double min_throughput;      // 0: none
    double deadline_s;          // after arrival; NaN: none
    int n_gpus, max_gpus;
    int priority;
    double urgency;    // 0: 1, as in catalog/cluster/job.h
    bool is_exclusive;
    int n_nodes;          // as in catalog/cluster/job.h
    const char *types;    // "v100,a100": allowed GPU types; NULL: any
};

/* A service lives from its arrival until its end; requests come as its traffic has it. */
struct trace_service {
    int line;
    const char *name;
    const char *owner;    // NULL: none given
    double at_s;
    double end_s;    // NaN: none
    const char *workload;
    double rate;              // requests/s, mean over a week
    double latency_s;         // 99 of 100 requests within this; a language model has none, but:
    double ttft_s, tpot_s;    // the first token, and each further one on average; 0: it is no such
    int max_batch, max_gpus;
    double load_s;           // from a replica's start until it is ready
    const char *traffic;     // "steady", "diurnal" or "drawn"; NULL: as 'arrivals' has it
    const char *arrivals;    // a file of requests; NULL: drawn
    int seed;                // of what is drawn
};

struct trace {
    const char *name;    // of the file, for messages
    int n_jobs;
    struct trace_job *jobs;    // by arrival
    int n_services;
    struct trace_service *services;    // by arrival
};

int trace_parse(struct arena *a, const char *name, const char *text, size_t len, struct trace *out,
                struct err *e);
int trace_read(struct arena *a, const char *path, struct trace *out, struct err *e);

/* The promised throughput that figures count by, in steps/s: the largest of its minimum, a server's
 * rate, and steps over deadline; 0: none.
 */
double trace_job_promise(const struct trace_job *j);

/* Put jobs and services in order of arrival, equal ones in the order they had. */
void trace_sort(struct arena *a, struct trace *t);

/* Let time begin with the first arrival, of jobs that are in order. */
void trace_begin_at_first(struct trace *t);

/* A time, and which job it is about. Sorted: earlier ones first, of equal ones the lesser job. */
struct trace_moment {
    double at_s;
    int job;
};
void trace_moments_sort(struct trace_moment *m, int n);

/* The same text that trace_parse reads: parse(write(t)) gives t. */
int trace_write(const struct trace *t, struct buf *out);

#endif
