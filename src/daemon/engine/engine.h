/* engine.h - the engines that a daemon can be opened with: this box, or a Slurm cluster.
 *
 * Each function opens one for a service that has its loop, configuration and store, and fills in
 * the executor's door (act/executor.h); from then on the service knows only that. Nodes and types
 * come into the state by service_install, jobs by service_submit. 'program' is what it starts: the
 * keeper of runs (act/local/local.h), or the driver of Slurm's commands (act/slurm/slurm.h).
 */
#ifndef DAEMON_ENGINE_ENGINE_H
#define DAEMON_ENGINE_ENGINE_H

#include <stdbool.h>

#include "catalog/sharing.h"

struct cluster;
struct device;
struct err;
struct executor;
struct gpu_type;
struct service;

int engine_open_local(struct service *s, const char *program, struct executor *out, struct err *e);
int engine_open_slurm(struct service *s, const char *program, struct executor *out, struct err *e);

/* The type that a driver's title or a gres type means: as the configuration describes it, else a
 * built-in one: that of the longest run of its words that names one, those further in front first
 * ("NVIDIA Tesla V100-SXM2-16GB" is "v100"). NULL: none.
 */
const struct gpu_type *engine_gpu_type(const struct cluster *declared, const char *title,
                                       bool *is_described);

/* Does MPS serve the jobs of this box? Only where all of them are the daemon's own user's, as it
 * serves one user at a time (act/local/env.c).
 */
enum mps_state { MPS_OFF, MPS_AWAITED, MPS_UP };

/* What slices come to, here and with Slurm: nobody shares. Jobs are given GPUs, or a slice as if it
 * were one, and two would find themselves in one slice. Other modes are as they are.
 */
enum sharing engine_slices(enum sharing s);

/* How jobs share a device of this box. Unknown: the driver does not say, or MPS is awaited. */
enum sharing engine_sharing(const struct device *d, enum mps_state mps);

#endif
