/* output.h - what Slurm's commands print becomes lines of the wire (wire.h).
 *
 * Versions 22.05 to 24.11. Pure: text in, lines into a buffer. Everything that users can write
 * (names, comments, paths) is text of strangers, and may hold any byte but NUL. In listings of jobs
 * and nodes every field is therefore ended by a mark that is random for each call, so that no text
 * can look like the end of a field, or like a line of another job's.
 */
#ifndef ACT_DRIVER_OUTPUT_H
#define ACT_DRIVER_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct buf;
struct owners;
struct wire_message;

/* ---- listings ---- */

#define OUTPUT_MARK_LEN 16    // hex digits

/* The value of SQUEUE_FORMAT2 (in the environment, where other users cannot see the mark), and the
 * argument of sinfo -O.
 */
const char *output_jobs_format(struct arena *a, const char *mark);
const char *output_nodes_format(struct arena *a, const char *mark);

#define OUTPUT_BAD_MAX 64    // names that are kept of what could not be read

/* How a listing went: what could not be read, and may be of use to whoever asked, is left out of
 * the answer. Texts are in the arena.
 */
struct output_bad {
    int n_good;    // lines of the partitions that were asked for
    int n;
    int n_names;    // of those that have one: jobs' ids, nodes' names
    const char *names[OUTPUT_BAD_MAX];
    const char *why;    // of the first one; NULL: none
};

/* What squeue printed, into 'job' and 'other' lines for request 'm', which names the partitions;
 * 'owners' (NULL: nobody wants to know) get all jobs with their users. 'text' is written to.
 */
struct output_bad output_jobs(struct arena *a, char *text, size_t len, const char *mark,
                              const struct wire_message *m, struct owners *owners, struct buf *out);

/* Is a GPU, or a part of one, among these gres ("gpu:1", "gres:shard:v100:1")? NULL has none. */
bool output_has_gpus(const char *gres);

/* Only whose job is which: the format, and what squeue printed. */
const char *output_owners_format(struct arena *a, const char *mark);
void output_owners(char *text, size_t len, const char *mark, struct owners *owners);

/* What sinfo printed, into 'node' lines, each node once. */
struct output_bad output_nodes(struct arena *a, char *text, size_t len, const char *mark,
                               const struct wire_message *m, struct buf *out);

/* The commands for `scontrol -d`, on its standard input, that ask for jobs with a mark before each;
 * and what it printed, into 'device' lines. A job that is not known is not told of.
 */
const char *output_devices_input(struct arena *a, const char *mark, const char *const *ids,
                                 int n_ids);
struct output_bad output_devices(struct arena *a, char *text, const char *mark,
                                 const char *const *ids, int n_ids, uint64_t seq, struct buf *out);

/* What `scontrol show config` printed, into a 'config' line. -1: it has no version. */
int output_config(struct arena *a, const char *text, uint64_t seq, struct buf *out);

/* The first partition that 'm' names and `scontrol show partition` did not print; NULL: all are
 * there.
 */
const char *output_partition_missing(const char *text, const struct wire_message *m);

/* The number that `sbatch --parsable` printed; 0: it did not. */
long output_submitted(const char *text);

/* True when `scontrol ping` says that a controller is there. */
bool output_is_up(const char *text);

/* ---- what went wrong ---- */

enum output_kind {
    OUTPUT_REFUSED,
    OUTPUT_DOWN,     // Slurm was not reached: nothing was carried out
    OUTPUT_DOUBT,    // it was reached, or may have been, and its answer was not
    OUTPUT_GONE,     // no such job
};
enum output_kind output_kind_of(const char *text);    // of an error text
const char *output_kind_word(enum output_kind k);     // as in kind=; of DOUBT, "down"

/* One line of stderr that names a job. */
struct output_trouble {
    const char *id;    // as it was asked for
    enum output_kind kind;
    const char *text;
};

/* What the stderr of a command that was given several jobs says of each, at most one a job, in 'a'.
 * Lines that name none of 'ids' are left out.
 */
int output_troubles(struct arena *a, const char *errors, const char *const *ids, int n_ids,
                    struct output_trouble *out);

/* The first line that names none of 'ids', nor only repeats another; "": each names one. */
const char *output_strange_line(struct arena *a, const char *errors, const char *const *ids,
                                int n_ids);

/* The first line of 'errors' without the program's name in front, or "". */
const char *output_first_line(struct arena *a, const char *errors);

#endif
