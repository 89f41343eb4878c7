/* What Slurm's commands say when something is wrong. */
#include <string.h>

#include "act/driver/output.h"
#include "base/arena.h"
#include "base/text/text.h"

/* The first that is found counts; everything else was refused. Seen on 22.05.8, with slurmctld dead
 * (kill -9) and hung (SIGSTOP), are those in tests/data/slurm/22.05/errors.txt; the others are
 * texts of its libraries, or the system's, that say the same. With munged dead or hung its commands
 * say nothing for more than 25 s, and are killed before.
 *
 * "Unexpected message received" is what `scontrol update` and `release` of 22.05 say when slurmctld
 * cannot be reached and when it does not answer: whether they were carried out is not known.
 */
static const struct {
    const char *text;
    enum output_kind kind;
} known[] = {
    { "Unable to contact slurm controller", OUTPUT_DOWN },
    { "Slurm backup controller in standby mode", OUTPUT_DOWN },
    { "Unable to resolve", OUTPUT_DOWN },
    { "Connection refused", OUTPUT_DOWN },
    { "No route to host", OUTPUT_DOWN },
    { "Network is unreachable", OUTPUT_DOWN },
    { "Munge encode failed", OUTPUT_DOWN },
    { "Munge decode failed", OUTPUT_DOWN },
    { "If munged is up", OUTPUT_DOWN },
    { "Protocol authentication error", OUTPUT_DOWN },
    { "Invalid authentication credential", OUTPUT_DOWN },
    { "cannot stat file", OUTPUT_DOWN },
    { "Unable to process configuration file", OUTPUT_DOWN },
    { "establish a configuration source", OUTPUT_DOWN },
    { "Socket timed out on send/recv operation", OUTPUT_DOUBT },
    { "Unexpected message received", OUTPUT_DOUBT },
    { "Unexpected missing socket error", OUTPUT_DOUBT },
    { "Zero Bytes were transmitted or received", OUTPUT_DOUBT },
    { "Message receive failure", OUTPUT_DOUBT },
    { "Message send failure", OUTPUT_DOUBT },
    { "Communication connection failure", OUTPUT_DOWN },
    { "Communication shutdown failure", OUTPUT_DOUBT },
    { "Header lengths are longer than data received", OUTPUT_DOUBT },
    { "Insane message length", OUTPUT_DOUBT },
    { "Connection reset by peer", OUTPUT_DOUBT },
    { "Broken pipe", OUTPUT_DOUBT },
    { "Invalid job id specified", OUTPUT_GONE },
};

enum output_kind output_kind_of(const char *text)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strstr(text, known[i].text))
            return known[i].kind;
    return OUTPUT_REFUSED;
}

const char *output_kind_word(enum output_kind k)
{
    static const char *const words[] = { [OUTPUT_REFUSED] = "refused",
                                         [OUTPUT_DOWN] = "down",
                                         [OUTPUT_DOUBT] = "down",
                                         [OUTPUT_GONE] = "gone" };

    return words[k];
}

/* "scancel: error: ..." and "slurm_update error: ..." without what is in front. */
static struct slice without_program(struct slice s)
{
    static const char *const words[] = { "scontrol: ", "scancel: ", "squeue: ", "sinfo: ",
                                         "sbatch: ",   "error: ",   "fatal: " };

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t n = strlen(words[i]);

        if (s.len > n && strncmp(s.at, words[i], n) == 0)
            s = (struct slice){ s.at + n, s.len - n };
    }
    return s;
}

/* The next line of 'errors', without what is in front of its text. */
static bool next_line(const char **errors, struct slice *line)
{
    const bool is_any = slice_next(errors, '\n', line);

    *line = slice_trim(without_program(*line));
    return is_any;
}

static const char *keep(struct arena *a, struct slice line)
{
    return arena_strndup(a, line.at, line.len < 400 ? line.len : 400);
}

const char *output_first_line(struct arena *a, const char *errors)
{
    for (struct slice s; next_line(&errors, &s);)
        if (s.len > 0)
            return keep(a, s);
    return "";
}

/* Whether 'id' stands at the end of "... for job 12" or in "Kill job error on job id 12: ..." or at
 * the beginning of "12_3: ...".
 */
static bool names_job(struct slice s, const char *id)
{
    static const char *const before[] = { " for job ", "on job id ", "job_id " };
    const size_t len = strlen(id);

    if (s.len > len + 1 && strncmp(s.at, id, len) == 0 && s.at[len] == ':')
        return true;
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        const size_t n = strlen(before[i]);
        const char *found = memmem(s.at, s.len, before[i], n);
        const size_t left = found ? s.len - (size_t)(found - s.at) - n : 0;

        if (found && left >= len && strncmp(found + n, id, len) == 0 &&
            (left == len || strchr(": ,", found[n + len])))
            return true;
    }
    return false;
}

const char *output_strange_line(struct arena *a, const char *errors, const char *const *ids,
                                int n_ids)
{
    static const char echo[] = "slurm_suspend error";    // of release, behind the line that counts

    for (struct slice s; next_line(&errors, &s);) {
        bool is_known = s.len == 0 || strncmp(s.at, echo, sizeof echo - 1) == 0;

        for (int i = 0; i < n_ids && !is_known; i++)
            is_known = names_job(s, ids[i]);
        if (!is_known)
            return keep(a, s);
    }
    return "";
}

int output_troubles(struct arena *a, const char *errors, const char *const *ids, int n_ids,
                    struct output_trouble *out)
{
    int n_found = 0;

    for (int i = 0; i < n_ids; i++) {
        const char *at = errors;
        bool is_found = false;

        for (struct slice s; !is_found && next_line(&at, &s);) {
            is_found = names_job(s, ids[i]);
            if (is_found) {
                const char *text = keep(a, s);

                out[n_found++] = (struct output_trouble){ ids[i], output_kind_of(text), text };
            }
        }
    }
    return n_found;
}
