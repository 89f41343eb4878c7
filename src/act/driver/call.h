/* call.h - one run of one command: bounded in time, output and rights.
 *
 * Made and driven by gogh-slurm-driver's loop, one at a time. The command is a process group of its
 * own; past its limit the whole group gets SIGTERM, half a second later SIGKILL, and what even that
 * does not end (a process that hangs in the kernel) is left behind 0.4 s after. So every call is
 * over within its limit and a second. No shell is involved, and nothing of ours is inherited: not
 * descriptors, environment, signal masks. Who a user is, is looked up in the child, where a
 * directory that hangs (LDAP, sssd) holds nobody up.
 */
#ifndef ACT_DRIVER_CALL_H
#define ACT_DRIVER_CALL_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct slurm_call;
struct err;

#define CALL_TERM_S 0.5    // from SIGTERM to SIGKILL
#define CALL_KILL_S 0.4    // from SIGKILL to leaving it behind
#define CALL_FDS 5         // at most, to poll

struct call_order {
    const char *program;    // a path; looked for in the directories of 'path' if it has no '/'
    const char *path;       // directories parted by ':'; NULL: none
    char *const *argv, *const *env;
    const char *input;    // for its standard input, kept until it is over; NULL: that is empty
    size_t input_len;
    const char *extra;    // what it may read from descriptor 3; NULL: that is closed
    size_t extra_len;
    bool as_user;    // become uid and gid with that user's groups, and lose all capabilities
    uid_t uid;
    gid_t gid;
    bool has_login;    // 'extra' is an environment: add what a login gives and it does not have
    const char *home_option;    // the last argument is this and the user's home; NULL: none such
    const char *const *last_words;    // it is killed once its stderr has one of these; NULL: none
    double limit_s;
    size_t output_max;    // bytes of stdout; of stderr the first CALL_ERRORS_MAX are kept
};

#define CALL_ERRORS_MAX ((size_t)256 * 1024)

enum call_end {
    CALL_EXITED,       // 'status' is its exit status
    CALL_KILLED,       // by a signal that was not ours: 'status' is its number
    CALL_LATE,         // took longer than its limit and was killed
    CALL_HOPELESS,     // said one of its 'last_words' and was killed
    CALL_FLOODED,      // wrote more than output_max and was killed
    CALL_NOT_BEGUN,    // could not be started, or not within its limit: the text says why
};

struct call_result {
    enum call_end end;
    int status;
    char *out;    // terminated; borrowed until call_destroy; may be written to
    size_t out_len;
    const char *errors;    // its stderr; of CALL_NOT_BEGUN why
    double took_s;
};

/* Begin. 'now_s' is any clock that never goes back; the same in all calls. What goes wrong in the
 * child is said by its end, CALL_NOT_BEGUN; -EMFILE, -EAGAIN, ...: there is no child.
 */
int call_begin(const struct call_order *o, double now_s, struct slurm_call **out, struct err *e);

/* Fill up to CALL_FDS descriptors to wait for, and until when to wait at most. */
int call_fds(const struct slurm_call *c, struct pollfd *fds);
double call_wake_s(const struct slurm_call *c);

/* Do whatever can be done without waiting. True: it is over, and 'out' says how. */
bool call_go_on(struct slurm_call *c, double now_s, struct call_result *out);

/* Kills what still runs, without waiting for it to end; NULL is fine. */
void call_destroy(struct slurm_call *c);

#endif
