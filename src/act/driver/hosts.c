#include "act/driver/hosts.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "base/text/text.h"

#define TEXT_MAX ((size_t)900 * 1024)    // of a list in full: it must fit into one line of the wire
#define NAME_LEN_MAX 250                 // a host's name in DNS, and then some
#define DIGITS_MAX 9

struct host_names {
    struct buf text;
    int n;
};

static bool is_name_byte(char c)
{
    return isalnum((unsigned char)c) || c == '.' || c == '_' || c == '-';
}

static int names_add(struct host_names *x, const char *name, struct err *e)
{
    if (!*name || strlen(name) > NAME_LEN_MAX)
        return err_set(e, EINVAL, "a list of nodes has a name of %zu bytes", strlen(name));
    if (x->n == HOSTS_MAX || buf_printf(&x->text, "%s%s", x->n ? "," : "", name) < 0)
        return err_set(e, EINVAL, "a list of nodes has more than %d names", HOSTS_MAX);
    x->n++;
    return 0;
}

/* "1-3" or "07" of a bracket; '*at' is left behind it. The width is that of the first number. */
static int read_range(const char **at, long *low, long *high, int *width)
{
    const size_t n = strspn(*at, "0123456789");
    size_t m = 0;

    if (n == 0 || n > DIGITS_MAX || text_to_long((struct slice){ *at, n }, 0, 999999999, low) < 0)
        return -EINVAL;
    *high = *low;
    *width = (int)n;
    *at += n;
    if (**at != '-')
        return 0;
    m = strspn(*at + 1, "0123456789");
    if (m == 0 || m > DIGITS_MAX ||
        text_to_long((struct slice){ *at + 1, m }, *low, 999999999, high) < 0)
        return -EINVAL;
    *at += 1 + m;
    return 0;
}

/* Every name that 'head' and the rest of one item ("[1-2]n[3-4]") make. */
static int expand_item(struct host_names *x, const char *head, struct slice rest, struct err *e);

static int expand_bracket(struct host_names *x, const char *head, struct slice in,
                          struct slice rest, struct err *e)
{
    const char *at = in.at;

    while (at < in.at + in.len) {
        long low = 0, high = 0;
        int width = 0;

        if (read_range(&at, &low, &high, &width) < 0 || (*at != ',' && *at != ']'))
            return err_set(e, EINVAL, "a list of nodes has '[%.*s]'",
                           (int)(in.len < 40 ? in.len : 40), in.at);
        at++;
        for (long k = low; k <= high; k++) {
            char name[NAME_LEN_MAX + 64];
            int rc;

            snprintf(name, sizeof name, "%.*s%0*ld", NAME_LEN_MAX, head, width, k);
            rc = expand_item(x, name, rest, e);
            if (rc < 0)
                return rc;
        }
    }
    return 0;
}

static int expand_item(struct host_names *x, const char *head, struct slice rest, struct err *e)
{
    char name[NAME_LEN_MAX + 64];
    size_t n = 0;
    const char *close;

    while (n < rest.len && is_name_byte(rest.at[n]))
        n++;
    if (strlen(head) + n > NAME_LEN_MAX)
        return err_set(e, EINVAL, "a list of nodes has a name of more than %d bytes", NAME_LEN_MAX);
    snprintf(name, sizeof name, "%s%.*s", head, (int)n, rest.at);
    if (n == rest.len)
        return names_add(x, name, e);
    close = rest.at[n] == '[' ? memchr(rest.at + n, ']', rest.len - n) : NULL;
    if (!close || close == rest.at + n + 1)
        return err_set(e, EINVAL, "a list of nodes has '%.*s'",
                       (int)(rest.len < 40 ? rest.len : 40), rest.at);
    return expand_bracket(x, name,
                          (struct slice){ rest.at + n + 1, (size_t)(close - rest.at) - n - 1 },
                          (struct slice){ close + 1, (size_t)(rest.at + rest.len - close) - 1 }, e);
}

size_t hosts_item_len(const char *list, char open, char close)
{
    bool is_inside = false;
    size_t n = 0;

    for (; list[n] && (list[n] != ',' || is_inside); n++)
        is_inside = list[n] == open || (is_inside && list[n] != close);
    return n;
}

int hosts_expand(struct arena *a, const char *list, const char **out, struct err *e)
{
    struct host_names x = { .n = 0 };
    int rc = 0;

    *out = "";
    buf_init(&x.text, TEXT_MAX);
    while (*list && rc == 0) {
        const size_t n = hosts_item_len(list, '[', ']');

        rc = expand_item(&x, "", (struct slice){ list, n }, e);
        list += n;
        if (*list == ',' && *++list == '\0')
            rc = err_set(e, EINVAL, "a list of nodes ends with a comma");
    }
    if (rc == 0)
        *out = arena_strdup(a, buf_text(&x.text));
    buf_release(&x.text);
    return rc;
}

/* ---- the other way ---- */

/* A name as what stands before its last number, and that number. */
struct split {
    struct slice head;
    int width;    // of the number; 0: it ends with none
    long number;
};

static struct split split_name(const char *at, size_t len)
{
    struct split s = { .head = { at, len } };
    size_t n = 0;

    while (n < len && n < DIGITS_MAX && isdigit((unsigned char)at[len - n - 1]))
        n++;
    if (n == 0 || text_to_long((struct slice){ at + len - n, n }, 0, 999999999, &s.number) < 0)
        return s;
    s.head.len = len - n;
    s.width = (int)n;
    return s;
}

/* Written with the same width, or without zeros in front: "9" and "10" do, "09" and "10" do. */
static bool follows(const struct split *before, const struct split *s)
{
    const bool has_zeros = before->width > 1 && before->head.at[before->head.len] == '0';

    return before->width > 0 && s->width > 0 && s->number == before->number + 1 &&
           s->head.len == before->head.len &&
           memcmp(s->head.at, before->head.at, s->head.len) == 0 &&
           (s->width == before->width || (!has_zeros && s->head.at[s->head.len] != '0'));
}

static void put_run(struct buf *b, const struct split *first, const struct split *last)
{
    (void)buf_printf(b, "%s%.*s", b->len ? "," : "", (int)first->head.len, first->head.at);
    if (first->number != last->number)
        (void)buf_printf(b, "[%0*ld-%0*ld]", first->width, first->number, last->width,
                         last->number);
    else if (first->width > 0)
        (void)buf_printf(b, "%0*ld", first->width, first->number);
}

const char *hosts_compress(struct arena *a, const char *names)
{
    struct split first = { .width = 0 }, last = first;
    bool has_run = false;
    struct buf b;

    buf_init(&b, strlen(names) * 2 + 16);
    for (struct slice name; slice_next(&names, ',', &name);) {
        const struct split s = split_name(name.at, name.len);

        if (!has_run || !follows(&last, &s)) {
            if (has_run)
                put_run(&b, &first, &last);
            first = s;
        }
        last = s;
        has_run = true;
    }
    if (has_run)
        put_run(&b, &first, &last);
    return buf_keep(&b, a);
}

bool hosts_are_plain(const char *names)
{
    const char *from = names;

    for (; *names; names++) {
        if (*names == ',' && (names == from || !is_name_byte(names[1])))
            return false;
        if (*names != ',' && !is_name_byte(*names))
            return false;
    }
    return names != from && *from != '-';
}
