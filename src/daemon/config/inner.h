/* inner.h - the table of settings, which reading, printing and comparing share. For
 * config*.c alone.
 */
#ifndef DAEMON_CONFIG_INNER_H
#define DAEMON_CONFIG_INNER_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/config/config.h"

enum setting_kind {     // texts first, up to SETTING_TEXT
    SETTING_PATH,       // const char *, absolute
    SETTING_SOCKET,     // the same, of a Unix socket; NULL: none
    SETTING_ADDRESS,    // const char *, HOST:PORT
    SETTING_TEXT,       // const char *
    SETTING_FLAG,       // bool: no or yes
    SETTING_CHOICE,     // an enum: its place among the words
    SETTING_NUMBER,     // double within low..high
    SETTING_WHOLE,      // long within low..high
    SETTING_OWN,        // a line of its own shape
};

struct setting {
    const char *name;
    enum setting_kind kind;
    size_t offset;
    double low, high;
    const char *const *words;    // up to NULL
    bool may_reload;             // takes effect in a running daemon
};

extern const struct setting config_settings[];
extern const int config_n_settings;

#endif
