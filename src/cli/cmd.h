/* cmd.h - a command of `gogh`: its name, its help, and what it does.
 *
 * Each cmd_<name>.c defines one; main.c lists and dispatches them. Exit statuses are
 * the same for all: 0 done, 1 the answer is no, 2 misuse, 3 the daemon is not there.
 */
#ifndef CLI_CMD_H
#define CLI_CMD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text/text.h"

struct err;

enum { EXIT_DONE = 0, EXIT_NO = 1, EXIT_MISUSE = 2, EXIT_NO_DAEMON = 3 };

struct cmd {
    const char *name;                     // "import"
    const char *synopsis;                 // "import gavel|zeus|csv ... --db DB"
    const char *summary;                  // one line for the list of commands
    const char *help;                     // several lines, ending with examples
    int (*run)(int argc, char **argv);    // argv[0] is the command's name; gives the exit status
};

extern const struct cmd cmd_import, cmd_catalog, cmd_predict, cmd_trace, cmd_simulate, cmd_replay;
extern const struct cmd cmd_demo, cmd_bench, cmd_eval, cmd_train, cmd_optimize, cmd_study;
extern const struct cmd cmd_advise;

/* Those that ask a daemon, but for config and token. */
extern const struct cmd cmd_submit, cmd_jobs, cmd_show, cmd_logs, cmd_cancel, cmd_hold, cmd_release;
extern const struct cmd cmd_nodes, cmd_top, cmd_plan, cmd_explain, cmd_report, cmd_shadow;
extern const struct cmd cmd_config, cmd_token;

extern const struct cmd cmd_tick;    // inside a job

/* Say "gogh: text" on stderr; gives EXIT_NO. */
int cmd_fail(const struct err *e);

/* Say what is wrong and how the command is used, on stderr; gives EXIT_MISUSE. */
int cmd_misuse(const struct cmd *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

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

#define CMD_SEED_MAX 1e15    // whole numbers that a double holds exactly, with room to spare

/* Read a command's line: options into their places, the words that are left into 'words' (at
 * most 'max_words'; the rest stay NULL). Gives CMD_GO_ON, or the exit status: of a misuse,
 * which has been told, or of --help, which has been shown.
 */
enum { CMD_GO_ON = -1 };
int cmd_parse(const struct cmd *c, int argc, char **argv, const struct cmd_option *options,
              int n_options, const char **words, int max_words);

#define CMD_COUNT(table) ((int)(sizeof(table) / sizeof *(table)))

/* Print synopsis and help to stdout. */
int cmd_help(const struct cmd *c);

/* Flush stdout; EXIT_DONE, or EXIT_NO when not everything could be written. */
int cmd_done(void);

#endif
