/* replay_main.c - give every file named on the command line to a fuzz harness.
 *
 * What libFuzzer's main does with a corpus, without libFuzzer: directories are
 * expanded, each input is a fresh allocation of its exact size so that a read past
 * the end is seen by the sanitizer.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path, size_t size)
{
    uint8_t *data = malloc(size > 0 ? size : 1);
    FILE *f = fopen(path, "rb");

    if (data == NULL || f == NULL || fread(data, 1, size, f) != size) {
        fprintf(stderr, "%s: cannot read\n", path);
        free(data);
        if (f != NULL)
            fclose(f);
        return 1;
    }
    fclose(f);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 0;
}

static int replay(const char *path);

static int replay_directory(const char *path)
{
    struct dirent **names;
    int n = scandir(path, &names, NULL, alphasort);
    int failed = n <= 2;    // a corpus with nothing in it tests nothing

    for (int i = 0; i < n; i++) {
        char *inner = NULL;

        if (names[i]->d_name[0] != '.' && asprintf(&inner, "%s/%s", path, names[i]->d_name) > 0)
            failed |= replay(inner);
        free(inner);
        free(names[i]);
    }
    if (n >= 0)
        free(names);
    if (n <= 2)
        fprintf(stderr, "%s: no inputs\n", path);
    return failed;
}

static int replay(const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0) {
        fprintf(stderr, "%s: does not exist\n", path);
        return 1;
    }
    return S_ISDIR(st.st_mode) ? replay_directory(path) : replay_file(path, (size_t)st.st_size);
}

int main(int argc, char **argv)
{
    int failed = argc < 2;

    for (int i = 1; i < argc; i++)
        failed |= replay(argv[i]);
    return failed;
}
