/* tags.h - is a text well-formed: does every tag that opens close, in order? For tests of pages
 * and charts that we write ourselves; no comments, no CDATA.
 */
#ifndef TESTS_UNIT_STUDY_TAGS_H
#define TESTS_UNIT_STUDY_TAGS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define TAGS_DEEP 64

/* HTML elements that have no end. */
static inline bool tag_is_void(const char *name, size_t len)
{
    static const char *const names[] = { "meta", "br", "!DOCTYPE" };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strlen(names[i]) == len && strncmp(names[i], name, len) == 0)
            return true;
    return false;
}

/* An ampersand that begins no reference of ours. */
static inline bool is_bare_ampersand(const char *s)
{
    static const char *const known[] = { "&amp;", "&lt;", "&gt;", "&quot;", "&#39;", "&nbsp;" };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strncmp(s, known[i], strlen(known[i])) == 0)
            return false;
    return true;
}

/* The end of the tag at '<', quotes minded; NULL: there is none, or a '<' is inside. */
static inline const char *tag_end(const char *s)
{
    bool is_quoted = false;

    for (s++; *s != '\0'; s++) {
        if (*s == '"')
            is_quoted = !is_quoted;
        else if (*s == '<')
            return NULL;
        else if (*s == '>' && !is_quoted)
            return s;
    }
    return NULL;
}

/* NULL, or where it goes wrong. */
static inline const char *tags_wrong(const char *text)
{
    const char *names[TAGS_DEEP];
    size_t lens[TAGS_DEEP];
    int deep = 0;

    for (const char *s = text; *s != '\0'; s++) {
        if (*s == '&' && is_bare_ampersand(s))
            return s;
        if (*s == '>')
            return s;
        if (*s != '<')
            continue;
        const bool is_end = s[1] == '/';
        const char *name = s + 1 + is_end, *end = tag_end(s);
        const size_t len = strcspn(name, " >/");

        if (end == NULL)
            return s;
        if (is_end) {
            if (deep == 0 || lens[deep - 1] != len || strncmp(names[deep - 1], name, len) != 0)
                return s;
            deep--;
        } else if (end[-1] != '/' && !tag_is_void(name, len)) {
            if (deep == TAGS_DEEP)
                return s;
            names[deep] = name;
            lens[deep++] = len;
        }
        s = end;
    }
    return deep == 0 ? NULL : names[deep - 1];
}

/* How often 'part' occurs. */
static inline int count_of(const char *text, const char *part)
{
    int n = 0;

    for (const char *s = text; (s = strstr(s, part)) != NULL; s += strlen(part))
        n++;
    return n;
}

#endif
