/* log.h - lines for the person who runs this, on stderr, with a level.
 *
 * The only process-wide state in base: the level, set once at start.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* Lines above 'level' are dropped; the default is LOG_WARN. */
void log_set_level(enum log_level level);

/* Write "gogh: <level>: text\n" in one write(2), so that lines never interleave. */
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) log_line(LOG_WARN, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)

#endif
