/* err.h - one failure of the world: a code to branch on and a sentence to act on.
 *
 * Made by whoever meets the failure, read by whoever can tell a person. The text
 * names the place (file, line, JSON path) and the cure. Functions that can fail
 * return 0 or -Exxx and fill a caller's 'struct err'.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

struct err {
    int code;          // a positive errno value, 0 for none
    char text[512];    // one sentence without a full stop or newline
};

/* Fill 'e' (which may be NULL) and give -code, so that a caller can
 * `return err_set(e, EINVAL, "line %d: want a number", n);`
 * A macro, so that compilers see that the answer is negative; errno is left alone.
 */
#define err_set(e, code, ...) (err_fill((e), (code), __VA_ARGS__), err_negative(code))
void err_fill(struct err *e, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static inline int err_negative(int code)
{
    return -code;
}

/* Put context in front of an error that is being passed on, as "context: text";
 * returns -e->code; 'e' must be there. A long text loses its tail, never the context.
 */
int err_prefix(struct err *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
