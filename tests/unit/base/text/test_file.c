/* Whole files, plain and packed. */
#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text/buf.h"
#include "base/text/file.h"
#include "unit/suite.h"

static struct arena arena;
static char *folder;

static const char *path_of(const char *name)
{
    return arena_printf(&arena, "%s/%s", folder, name);
}

static void setup(void)
{
    const char *tmp = getenv("TMPDIR");

    arena_init(&arena);
    folder = arena_printf(&arena, "%s/gogh-file-XXXXXX", tmp != NULL ? tmp : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void teardown(void)
{
    DIR *d = opendir(folder);
    struct dirent *entry;

    ck_assert_ptr_nonnull(d);
    while ((entry = readdir(d)) != NULL) {
        if (entry->d_name[0] != '.')
            unlink(path_of(entry->d_name));
    }
    closedir(d);
    ck_assert_int_eq(rmdir(folder), 0);
    arena_release(&arena);
}

FIXTURE(setup, teardown)

/* Bytes as they are, without the code under test. */
static const char *put(const char *name, const char *bytes, size_t len)
{
    const char *path = path_of(name);
    FILE *f = fopen(path, "wb");

    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, len, f), len);
    fclose(f);
    return path;
}

enum packing { PACK_GZIP, PACK_XZ, PACK_BZIP2, PACK_ZSTD, PACK_NONE };

static void add_filter(struct archive *w, enum packing packing)
{
    switch (packing) {
    case PACK_GZIP:
        archive_write_add_filter_gzip(w);
        break;
    case PACK_XZ:
        archive_write_add_filter_xz(w);
        break;
    case PACK_BZIP2:
        archive_write_add_filter_bzip2(w);
        break;
    case PACK_ZSTD:
        archive_write_add_filter_zstd(w);
        break;
    case PACK_NONE:
        archive_write_add_filter_none(w);
        break;
    }
}

static void add_entry(struct archive *w, const char *name, const char *text)
{
    const bool is_folder = name[strlen(name) - 1] == '/';
    struct archive_entry *entry = archive_entry_new();

    archive_entry_set_pathname(entry, name);
    archive_entry_set_size(entry, (la_int64_t)strlen(text));
    archive_entry_set_filetype(entry, is_folder ? AE_IFDIR : AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    ck_assert_int_eq(archive_write_header(w, entry), ARCHIVE_OK);
    if (text[0] != '\0')
        ck_assert_int_eq(archive_write_data(w, text, strlen(text)), (la_ssize_t)strlen(text));
    archive_entry_free(entry);
}

/* One text, compressed. */
static const char *put_packed(const char *name, enum packing packing, const char *text)
{
    const char *path = path_of(name);
    struct archive *w = archive_write_new();

    add_filter(w, packing);
    archive_write_set_format_raw(w);
    ck_assert_int_eq(archive_write_open_filename(w, path), ARCHIVE_OK);
    add_entry(w, "text", text);
    archive_write_free(w);
    return path;
}

/* A tar of pairs (name, text), ended by NULL. */
static const char *put_tar(const char *name, enum packing packing, const char *const *pairs)
{
    const char *path = path_of(name);
    struct archive *w = archive_write_new();

    add_filter(w, packing);
    archive_write_set_format_pax_restricted(w);
    ck_assert_int_eq(archive_write_open_filename(w, path), ARCHIVE_OK);
    for (; pairs[0] != NULL; pairs += 2)
        add_entry(w, pairs[0], pairs[1]);
    archive_write_free(w);
    return path;
}

static void expect_read(const char *path, const char *member, const char *want)
{
    const char *text = NULL;
    struct err e = { 0 };
    size_t len = 0;
    int rc = file_read(&arena, path, member, 1 << 20, &text, &len, &e);

    ck_assert_msg(rc == 0, "%s", e.text);
    ck_assert_str_eq(text, want);
    ck_assert_uint_eq(len, strlen(want));
}

/* Fails with 'code', and the sentence ends in 'want' after the path. */
static void expect_failure(const char *path, const char *member, size_t max, int code,
                           const char *want)
{
    const char *text = NULL;
    struct err e = { 0 };
    size_t len = 0;

    ck_assert_int_eq(file_read(&arena, path, member, max, &text, &len, &e), -code);
    ck_assert_int_eq(e.code, code);
    ck_assert_int_eq(strncmp(e.text, path, strlen(path)), 0);
    ck_assert_str_eq(e.text + strlen(path), want);
}

TEST(plain_and_compressed_files_read_alike)
{
    expect_read(put("plain", "hello\n", 6), NULL, "hello\n");
    expect_read(put("empty", "", 0), NULL, "");
    expect_read(put("one", "x", 1), NULL, "x");
    expect_read(put_packed("a.gz", PACK_GZIP, "hello\n"), NULL, "hello\n");
    expect_read(put_packed("a.xz", PACK_XZ, "hello\n"), NULL, "hello\n");
    expect_read(put_packed("a.bz2", PACK_BZIP2, "hello\n"), NULL, "hello\n");
    expect_read(put_packed("a.zst", PACK_ZSTD, "hello\n"), NULL, "hello\n");
}

static int note_member(void *self, const char *name, const char *text, size_t len, struct err *e)
{
    struct buf *seen = self;

    (void)e;
    ck_assert_int_eq(strlen(text), len);
    buf_printf(seen, "%s=%s ", name, text);
    return strcmp(text, "stop") == 0 ? -ECANCELED : 0;
}

TEST(each_file_of_a_tar_is_handed_over_in_its_order)
{
    static const char *const all[] = { "./a/x", "one", "folder/", "", "b", "two", NULL };
    static const char *const stops[] = { "a", "stop", "b", "two", NULL };
    struct err e = { 0 };
    struct buf seen;

    buf_init(&seen, 1000);
    ck_assert_int_eq(file_each(put_tar("all.tar.gz", PACK_GZIP, all), 6, note_member, &seen, &e),
                     0);
    ck_assert_str_eq(buf_text(&seen), "a/x=one b=two ");
    ck_assert_int_eq(file_each(put_tar("all.tar", PACK_NONE, all), 5, note_member, &seen, &e),
                     -EFBIG);
    ck_assert_int_eq(file_each(put_tar("s.tar", PACK_NONE, stops), 99, note_member, &seen, &e),
                     -ECANCELED);
    ck_assert_int_eq(file_each("none.tar", 99, note_member, &seen, &e), -ENOENT);
    ck_assert_int_eq(file_each(put_packed("plain.gz", PACK_GZIP, "x"), 99, note_member, &seen, &e),
                     -EINVAL);
    ck_assert_ptr_nonnull(strstr(e.text, "not a tar archive"));
    buf_release(&seen);
}

TEST(a_tar_gives_the_member_asked_for)
{
    static const char *const many[] = {
        "d/", "", "./d/a", "first", "d/b", "second", "c", "", NULL
    };
    static const char *const single[] = { "d/", "", "d/only", "alone", NULL };

    for (enum packing p = PACK_GZIP; p <= PACK_NONE; p++) {
        const char *path = put_tar("many.tar", p, many);

        expect_read(path, "d/a", "first");
        expect_read(path, "./d/b", "second");
        expect_read(path, "c", "");
        expect_read(put_tar("single.tar", p, single), NULL, "alone");
    }
}

TEST(an_unclear_or_absent_member_is_named_with_a_cure)
{
    static const char *const many[] = { "a", "1", "b", "2", "c", "3", "d", "4",
                                        "e", "5", "f", "6", "g", "7", NULL };
    static const char *const none[] = { "d/", "", NULL };
    const char *path = put_tar("many.tar", PACK_GZIP, many);

    expect_failure(path, NULL, 100, EINVAL,
                   ": holds several files; say which: 'a', 'b', 'c', 'd', 'e', ...");
    expect_failure(path, NULL, 0, EINVAL,
                   ": holds several files; say which: 'a', 'b', 'c', 'd', 'e', ...");
    expect_failure(path, "z", 100, EINVAL,
                   ": has no member 'z'; it has 'a', 'b', 'c', 'd', 'e', ...");
    path = put_tar("none.tar", PACK_NONE, none);
    expect_failure(path, NULL, 100, EINVAL, ": an archive without files; give the file itself");
    expect_failure(path, "a", 100, EINVAL, ": has no member 'a'; it has no files at all");
    expect_failure(put("plain", "x", 1), "a", 100, EINVAL,
                   ": not a tar archive; read it without naming 'a' in it");
}

TEST(the_ceiling_counts_bytes_after_decompression)
{
    static const char *const pairs[] = { "a", "123456", NULL };
    char *zeros = arena_printf(&arena, "%01000000d", 0);
    const char *path = put_packed("bomb.gz", PACK_GZIP, zeros);
    struct err e;
    const char *text;
    size_t len;

    ck_assert_int_eq(file_read(&arena, path, NULL, 1000000, &text, &len, &e), 0);
    ck_assert_uint_eq(len, 1000000);
    expect_failure(path, NULL, 999999, EFBIG, ": more than 999999 bytes; split it");
    expect_failure(put("six", "123456", 6), NULL, 5, EFBIG, ": more than 5 bytes; split it");
    path = put_tar("six.tar", PACK_NONE, pairs);
    expect_failure(path, "a", 5, EFBIG, ": more than 5 bytes; split it");
    expect_failure(path, NULL, 5, EFBIG, ": more than 5 bytes; split it");
}

TEST(what_cannot_be_read_says_why)
{
    const char *path = put_packed("cut.gz", PACK_GZIP, arena_printf(&arena, "%0100000d", 7));
    const char *text;
    struct err e;
    size_t len;

    expect_failure(path_of("absent"), NULL, 10, ENOENT, ": cannot read: No such file or directory");
    expect_failure(folder, NULL, 10, EISDIR, ": is a directory; name a file in it");
    ck_assert_int_eq(truncate(path, 60), 0);
    ck_assert_int_eq(file_read(&arena, path, NULL, 1 << 20, &text, &len, &e), -EINVAL);
    ck_assert_ptr_nonnull(strstr(e.text, "damaged or cut short"));
}

TEST(text_is_utf8_without_its_mark)
{
    static const struct {
        const char *name, *given;
        size_t len;
        const char *want;    // NULL: refused
        const char *place;
    } cases[] = {
        { "ASCII", "abc", 3, "abc", NULL },
        { "a byte-order mark is dropped",
          "\xef\xbb\xbf"
          "abc",
          6, "abc", NULL },
        { "nothing but the mark", "\xef\xbb\xbf", 3, "", NULL },
        { "Latin-1 is refused by line", "a\nb\ncaf\xe9\n", 9, NULL, ":3: not UTF-8" },
        { "a NUL is refused", "a\n\0", 3, NULL, ":2: not UTF-8" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *path = put("t", cases[i].given, cases[i].len), *text = NULL;
        struct err e = { 0 };
        size_t len = 0;
        int rc = file_read_text(&arena, path, NULL, 100, &text, &len, &e);

        if (cases[i].want == NULL) {
            ck_assert_msg(rc == -EILSEQ, "%s", cases[i].name);
            ck_assert_ptr_nonnull(strstr(e.text, cases[i].place));
        } else {
            ck_assert_msg(rc == 0 && strcmp(text, cases[i].want) == 0, "%s", cases[i].name);
            ck_assert_uint_eq(len, strlen(cases[i].want));
        }
    }
    ck_assert_int_eq(file_read_text(&arena, path_of("absent"), NULL, 1, &(const char *){ NULL },
                                    &(size_t){ 0 }, NULL),
                     -ENOENT);
}

TEST(writing_replaces_the_file_whole_and_leaves_nothing_beside_it)
{
    const char *path = path_of("out"), *link = path_of("link");
    struct stat st;
    struct err e;

    ck_assert_int_eq(file_write(path, "one", 3, &e), 0);
    expect_read(path, NULL, "one");
    ck_assert_int_eq(chmod(path, 0640), 0);
    ck_assert_int_eq(symlink(path, link), 0);
    ck_assert_int_eq(file_write(link, "", 0, &e), 0);
    expect_read(path, NULL, "");
    ck_assert_int_eq(lstat(link, &st), 0);
    ck_assert(S_ISLNK(st.st_mode));
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0640);
    ck_assert_int_eq(unlink(link), 0);
    ck_assert_int_eq(unlink(path), 0);    // teardown's rmdir sees the rest
}

TEST(writing_where_nothing_can_be_written_says_so)
{
    const char *path = path_of("no/such/folder");
    struct err e;

    ck_assert_int_eq(file_write(path, "x", 1, &e), -ENOENT);
    ck_assert_str_eq(e.text + strlen(path), ": cannot write: No such file or directory");
    ck_assert_int_eq(file_write(folder, "x", 1, &e), -EISDIR);
}

TEST(a_pipe_is_written_to_and_not_replaced)
{
    const char *path = path_of("pipe");
    char got[4] = "";
    struct stat st;
    struct err e;
    int fd;

    ck_assert_int_eq(mkfifo(path, 0600), 0);
    fd = open(path, O_RDONLY | O_NONBLOCK);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(file_write(path, "abc", 3, &e), 0);
    ck_assert_int_eq(read(fd, got, 3), 3);
    ck_assert_str_eq(got, "abc");
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert(S_ISFIFO(st.st_mode));
    close(fd);
}

TEST(a_digest_is_sha256)
{
    char out[65];

    file_digest("abc", 3, out);
    ck_assert_str_eq(out, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    file_digest("", 0, out);
    ck_assert_str_eq(out, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}
