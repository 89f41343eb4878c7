/* import.h - other people's traces as ours: all of a file, or an error.
 *
 * What each file says and what is assumed where it says nothing stands in
 * docs/formats/trace.md. Made for the command line; results live in the caller's arena.
 */
#ifndef SIM_TRACE_IMPORT_H
#define SIM_TRACE_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "base/text/text.h"
#include "sim/trace/trace.h"

struct arena;
struct buf;
struct err;
struct trace_draw;

struct trace_import {
    const char *name;    // of the file, for messages
    const char *text;    // its content
    size_t len;
    struct trace_draw *draw;    // for what the file does not say; NULL (Gavel only): nothing
    int n_jobs;                 // take this many, the earliest; 0: all
    int gang_max;               // larger gangs are cut down to this; 0: none is
    int n_skipped;              // out: rows that ask for no GPU or ran for no time
};

/* Gavel's tab-separated traces, seven columns (msr) or ten (physical_cluster). Jobs get a
 * promise when there is a draw whose truth knows their workload.
 */
int trace_import_gavel(struct arena *a, struct trace_import *in, struct trace *out, struct err *e);

/* Philly, as timestamp,duration,num_gpus,gpu_time,cluster. */
int trace_import_philly(struct arena *a, struct trace_import *in, struct trace *out, struct err *e);

/* Alibaba's openb pod list (cluster-trace-gpu-v2023). */
int trace_import_alibaba(struct arena *a, struct trace_import *in, struct trace *out,
                         struct err *e);

/* Azure's requests to a language model as one service, of which 's' says promise and place. Into
 * 'arrivals' comes the file that its line names. The first n_jobs requests, or all.
 */
int trace_import_azure(struct arena *a, const struct trace_import *in, struct trace_service *s,
                       struct buf *arrivals, struct err *e);

/* Alibaba's openb node list as a cluster file. */
int cluster_import_alibaba(struct arena *a, const char *name, const char *text, size_t len,
                           struct buf *out, struct err *e);

/* ---- what readers of such files take apart ---- */

/* The part before the first 'separator', which goes, with it, from '*rest'. False: there is none
 * left; a list has a part more than it has separators.
 */
bool trace_cut(struct slice *rest, char separator, struct slice *part);

/* "2017-10-09 07:01:55", or a T for the blank, each part within its range; false: it is none.
 * Months are not asked for their days.
 */
bool trace_calendar(struct slice s, struct tm *out);

#endif
