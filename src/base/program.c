#include "base/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *program_find(const char *name, const char *variable, const char *libexec,
                         char room[PROGRAM_PATH_SIZE])
{
    const char *told = getenv(variable);
    ssize_t n = readlink("/proc/self/exe", room, PROGRAM_PATH_SIZE - 1);

    if (told)
        return told;
    room[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(room, '/');
    if (slash) {
        snprintf(slash + 1, (size_t)(room + PROGRAM_PATH_SIZE - slash - 1), "%s", name);
        if (access(room, X_OK) == 0)
            return room;
    }
    snprintf(room, PROGRAM_PATH_SIZE, "%s/%s", libexec, name);
    return room;
}
