#!/usr/bin/env bash
# What base/banned.h bans is a compile error; its neighbours are not.
set -euo pipefail
read -ra cc <<<"$CC"
read -ra flags <<<"$CFLAGS"
failed=0

# compiles BODY - as that of a function with a string and a list of arguments at hand
compiles() {
    echo "int f(char *s, va_list v);
        int f(char *s, va_list v) { (void)s; (void)v; $1 return 0; }" |
        "${cc[@]}" "${flags[@]}" -I"$SRC/src" -x c -fsyntax-only - 2>/dev/null
}

while read -r body; do
    if compiles "$body"; then
        echo "compiles, and should not: $body"
        failed=1
    fi
done <<'BAD'
strcpy(s, "x");
stpcpy(s, "x");
strcat(s, "x");
sprintf(s, "x");
vsprintf(s, "x", v);
strtok(s, "x");
gets(s);
return atoi(s);
return (int)atol(s);
return (int)atoll(s);
return (int)atof(s);
return rand();
srand(1);
{ unsigned u = 1; return rand_r(&u); }
return (int)random();
srandom(1);
return (int)drand48();
return (int)lrand48();
return (int)mrand48();
return (int)time(NULL);
{ time_t (*p)(time_t *) = time; return p == NULL; }
{ time_t t = 0; return gmtime(&t)->tm_sec; }
{ time_t t = 0; return localtime(&t)->tm_sec; }
{ time_t t = 0; return ctime(&t)[0]; }
{ struct tm t = { 0 }; return asctime(&t)[0]; }
BAD

while read -r body; do
    if ! compiles "$body"; then
        echo "does not compile, and should: $body"
        failed=1
    fi
done <<'GOOD'
snprintf(s, 2, "x");
memcpy(s, "x", 2);
{ struct { int time; } x = { 1 }; return x.time; }
{ struct tm t; time_t at = 0; return gmtime_r(&at, &t) == NULL; }
GOOD
exit $failed
