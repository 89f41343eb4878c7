/* cmd.h - a command of `gogh`: its name, its help, its options, and what it does.
 *
 * Each command's file defines one; main.c lists and dispatches them. Exit statuses are the same
 * for all: 0 done, 1 the answer is no, 2 misuse, 3 the daemon is not there.
 */
#ifndef CLI_CMD_H
#define CLI_CMD_H

#include <stdbool.h>

#include "base/text/text.h"

struct arena;
struct client;
struct err;

enum { EXIT_DONE = 0, EXIT_NO = 1, EXIT_MISUSE = 2, EXIT_NO_DAEMON = 3 };

/* What a list holds, from every time that its option was given: words with commas between
 * (OPTION_LIST), or whole texts (OPTION_EACH).
 */
#define CMD_LIST_MAX 64
struct cmd_list {
    int n;
    struct slice words[CMD_LIST_MAX];    // never empty
};

/* One option of a command, and where its value goes. */
struct cmd_option {
    const char *name;    // without the dashes
    enum { OPTION_FLAG, OPTION_TEXT, OPTION_WHOLE, OPTION_NUMBER, OPTION_LIST, OPTION_EACH } kind;
    void *out;           // bool *, const char **, long *, double * or struct cmd_list *
    double low, high;    // of OPTION_WHOLE and OPTION_NUMBER
};

// clang-format off
#define CMD_FLAG(name, to) { name, OPTION_FLAG, &(to), 0, 0 }
#define CMD_TEXT(name, to) { name, OPTION_TEXT, &(to), 0, 0 }
#define CMD_WHOLE(name, to, low, high) { name, OPTION_WHOLE, &(to), low, high }
#define CMD_NUMBER(name, to, low, high) { name, OPTION_NUMBER, &(to), low, high }
#define CMD_WORDS(name, to) { name, OPTION_LIST, &(to), 0, 0 }
#define CMD_EACH(name, to) { name, OPTION_EACH, &(to), 0, 0 }
// clang-format on

#define CMD_SEED_MAX 1e15    // whole numbers that a double holds exactly, with room to spare

#define CMD_COUNT(table) ((int)(sizeof(table) / sizeof *(table)))
#define CMD_OPTIONS(table) .options = (table), .n_options = CMD_COUNT(table)

/* A command as it was given; its options are where their table says. */
struct cmd_call {
    const struct cmd *cmd;
    struct arena *arena;    // ends with the command
    const char **words;     // (max_words + 1) what is no option, then NULL
    bool *is_given;         // (n_options) whose value was
    char **argv;            // of the process
};

/* 'check' and 'run' return 0, the exit status of what they have told, or -Exxx, which is told then.
 */
struct cmd {
    const char *name;        // "import"
    const char *synopsis;    // "import gavel|zeus|csv ... --db DB"
    const char *summary;     // one line for the list of commands
    const char *help;        // several lines, ending with examples
    const struct cmd_option *options;
    int n_options;
    int max_words;
    bool takes_command;                           // its words are what stands behind "--"
    int (*check)(const struct cmd_call *call);    // what is wrong with the line; may be NULL
    int (*run)(const struct cmd_call *call, struct err *e);
    int (*ask)(struct client *c, const struct cmd_call *call, struct err *e);    // of client_run
};

extern const struct cmd cmd_import, cmd_catalog, cmd_predict, cmd_trace, cmd_simulate, cmd_replay;
extern const struct cmd cmd_demo, cmd_bench, cmd_eval, cmd_train, cmd_optimize, cmd_study;
extern const struct cmd cmd_advise, cmd_whatif;

/* Those that ask a daemon, but for config and token. */
extern const struct cmd cmd_submit, cmd_jobs, cmd_show, cmd_logs, cmd_cancel, cmd_hold, cmd_release;
extern const struct cmd cmd_nodes, cmd_top, cmd_plan, cmd_explain, cmd_report, cmd_shadow;
extern const struct cmd cmd_config, cmd_token, cmd_commission, cmd_services, cmd_scale;

extern const struct cmd cmd_tick;    // inside a job

/* Read the process's line, of which the first two words are the program and the command, and do
 * what it says; gives the exit status.
 */
int cmd_run(const struct cmd *c, int argc, char **argv);

/* Say "gogh: text" on stderr; gives the exit status of that failure. */
int cmd_fail(const struct err *e);

/* cluster_read, which also says what the file says in vain. */
struct cluster;
int cmd_cluster(struct arena *a, const char *path, struct cluster *out, struct err *e);

/* Say what is wrong and how the command is used, on stderr; gives EXIT_MISUSE. */
int cmd_misuse(const struct cmd *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Is it this word? NULL is none. */
bool cmd_is(const char *word, const char *is);

/* Print synopsis and help to stdout. */
int cmd_help(const struct cmd *c);

/* Flush stdout; EXIT_DONE, or EXIT_NO when not everything could be written. */
int cmd_done(void);

/* Text to standard output, or into the file 'path' (NULL: none), unless making it has failed with
 * 'rc'; and its end.
 */
struct buf;
int cmd_write(const char *path, struct buf *text, int rc, struct err *e);

#endif
