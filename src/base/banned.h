/* banned.h - included before everything else (by -include): what we do not call.
 *
 * Each of these has a better neighbour; using one, even by address, is a compile
 * error that names the neighbour. They are redeclared as deprecated rather than
 * poisoned, so that system headers and fields of the same name stay usable, and
 * before the headers that define some of them inline.
 */
#ifndef BASE_BANNED_H
#define BASE_BANNED_H

#include <stdarg.h>
#include <sys/types.h>

#pragma GCC diagnostic error "-Wdeprecated-declarations"

struct tm;

#define BANNED(neighbour) __attribute__((deprecated("banned: use " neighbour)))

/* Unbounded or stateful writing. */
BANNED("snprintf or arena_strdup") char *strcpy(char *to, const char *from);
BANNED("snprintf or arena_strdup") char *stpcpy(char *to, const char *from);
BANNED("buf_puts or arena_printf") char *strcat(char *to, const char *from);
BANNED("snprintf or arena_printf") int sprintf(char *to, const char *format, ...);
BANNED("vsnprintf or buf_printf") int vsprintf(char *to, const char *format, va_list args);
BANNED("struct slice") char *strtok(char *s, const char *delimiters);
BANNED("fgets or getline") char *gets(char *to);

/* Numbers that cannot say that they are none. */
BANNED("text_to_long") int atoi(const char *s);
BANNED("text_to_long") long atol(const char *s);
BANNED("text_to_long") long long atoll(const char *s);
BANNED("text_to_double") double atof(const char *s);

/* Chance that does not repeat. */
BANNED("struct rng") int rand(void);
BANNED("struct rng") void srand(unsigned seed);
BANNED("struct rng") int rand_r(unsigned *seed);
BANNED("struct rng") long random(void);
BANNED("struct rng") void srandom(unsigned seed);
BANNED("struct rng") double drand48(void);
BANNED("struct rng") long lrand48(void);
BANNED("struct rng") long mrand48(void);

/* Time that the simulator cannot move, and shared static results. */
BANNED("struct clock") time_t time(time_t *t);
BANNED("gmtime_r") struct tm *gmtime(const time_t *t);
BANNED("localtime_r") struct tm *localtime(const time_t *t);
BANNED("strftime") char *ctime(const time_t *t);
BANNED("strftime") char *asctime(const struct tm *tm);

#undef BANNED

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#undef sprintf    // macros in some fortified builds
#undef vsprintf

#endif
