#include "base/text/file.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <sha2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "base/text/text.h"

#define NAMES_SHOWN 5    // members named in an error, as the cure

/* One reading in progress. */
struct file_reader {
    const char *path, *member;
    struct archive *archive;
    struct buf content;
    struct buf names;    // of the members passed by
    int n_files;
    bool is_taken;    // content is that of a chosen file
    int too_big;      // -EFBIG once the chosen file met the ceiling
};

/* "./a/b" and "a/b" name the same member. */
static const char *member_name(const char *name)
{
    while (strncmp(name, "./", 2) == 0)
        name += 2;
    return name;
}

static int damaged(const struct file_reader *r, struct err *e)
{
    const char *why = archive_error_string(r->archive);

    return err_set(e, EINVAL, "%s: damaged or cut short (%s); fetch it again", r->path,
                   why != NULL ? why : "no more is known");
}

/* The current entry's data into r->content. */
static int take(struct file_reader *r, struct err *e)
{
    static _Thread_local char chunk[64 << 10];
    la_ssize_t n;

    r->is_taken = true;
    while ((n = archive_read_data(r->archive, chunk, sizeof chunk)) > 0) {
        if (buf_append(&r->content, chunk, (size_t)n) < 0) {
            r->too_big = -EFBIG;
            return 0;
        }
    }
    return n < 0 ? damaged(r, e) : 0;
}

static void note_name(struct file_reader *r, const char *name)
{
    /* The ceiling of 'names' may cut the list short; it is a hint. */
    if (r->n_files < NAMES_SHOWN)
        (void)buf_printf(&r->names, "%s'%.60s'", r->n_files > 0 ? ", " : "", name);
    else if (r->n_files == NAMES_SHOWN)
        (void)buf_puts(&r->names, ", ...");
    r->n_files++;
}

/* Walk the entries until the wanted one is read, or it is clear that there is none. */
static int walk(struct file_reader *r, struct err *e)
{
    struct archive_entry *entry;
    int rc = ARCHIVE_OK, err = 0;

    while (err == 0 && (rc = archive_read_next_header(r->archive, &entry)) == ARCHIVE_OK) {
        const bool is_plain = archive_format(r->archive) == ARCHIVE_FORMAT_RAW;
        const char *name = archive_entry_pathname(entry);

        if (is_plain && r->member != NULL)
            return err_set(e, EINVAL, "%s: not a tar archive; read it without naming '%s' in it",
                           r->path, r->member);
        if (!is_plain && archive_entry_filetype(entry) != AE_IFREG)
            continue;
        name = member_name(name != NULL ? name : "?");
        if (r->member != NULL && strcmp(name, member_name(r->member)) == 0)
            return take(r, e);
        note_name(r, name);
        if (r->member == NULL && !r->is_taken)
            err = take(r, e);
    }
    if (err < 0 || rc == ARCHIVE_EOF)
        return err;
    return damaged(r, e);
}

/* After the walk: is there exactly one thing that was meant? */
static int judge(const struct file_reader *r, struct err *e)
{
    if (r->member == NULL && r->n_files > 1)
        return err_set(e, EINVAL, "%s: holds several files; say which: %s", r->path,
                       buf_text(&r->names));
    if (r->member != NULL && !r->is_taken)
        return err_set(e, EINVAL, "%s: has no member '%.60s'; it has %s", r->path, r->member,
                       r->n_files > 0 ? buf_text(&r->names) : "no files at all");
    if (r->too_big < 0)
        return err_set(e, EFBIG, "%s: more than %zu bytes; split it", r->path, r->content.max);
    if (!r->is_taken && archive_format(r->archive) != ARCHIVE_FORMAT_EMPTY)
        return err_set(e, EINVAL, "%s: an archive without files; give the file itself", r->path);
    return 0;
}

static struct archive *reader_create(void)
{
    struct archive *ar = archive_read_new();

    if (ar == NULL)
        abort();
    archive_read_support_filter_gzip(ar);
    archive_read_support_filter_xz(ar);
    archive_read_support_filter_bzip2(ar);
    archive_read_support_filter_zstd(ar);
    archive_read_support_format_tar(ar);
    archive_read_support_format_raw(ar);
    archive_read_support_format_empty(ar);
    return ar;
}

static int open_for_reading(const char *path, struct err *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;

    if (fd < 0)
        return err_set(e, errno, "%s: cannot read: %s", path, strerror(errno));
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        close(fd);
        return err_set(e, EISDIR, "%s: is a directory; name a file in it", path);
    }
    return fd;
}

int file_read(struct arena *a, const char *path, const char *member, size_t max, const char **text,
              size_t *len, struct err *e)
{
    struct file_reader r = { .path = path, .member = member };
    int fd = open_for_reading(path, e);
    int rc;

    if (fd < 0)
        return fd;
    buf_init(&r.content, max);
    buf_init(&r.names, 400);
    r.archive = reader_create();
    rc = archive_read_open_fd(r.archive, fd, 64 << 10);
    rc = rc == ARCHIVE_OK ? walk(&r, e) : damaged(&r, e);
    if (rc == 0)
        rc = judge(&r, e);
    if (rc == 0) {
        char *copy = arena_alloc(a, r.content.len + 1);

        if (r.content.len > 0)
            memcpy(copy, r.content.data, r.content.len);
        *text = copy;
        *len = r.content.len;
    }
    archive_read_free(r.archive);
    buf_release(&r.content);
    buf_release(&r.names);
    close(fd);
    return rc;
}

/* Hand the current entry to 'f'; 'left' is what all that follow may still have. */
static int hand_over(struct file_reader *r, const char *name, size_t *left, file_member_f *f,
                     void *self, struct err *e)
{
    buf_init(&r->content, *left);
    int rc = take(r, e);
    if (rc == 0 && r->too_big < 0)
        rc = err_set(e, EFBIG, "%s: too much in it; split it", r->path);
    if (rc == 0) {
        *left -= r->content.len;
        rc = f(self, member_name(name), buf_text(&r->content), r->content.len, e);
    }
    buf_release(&r->content);
    return rc;
}

static int walk_all(struct file_reader *r, size_t left, file_member_f *f, void *self, struct err *e)
{
    struct archive_entry *entry;
    int rc = ARCHIVE_OK, err = 0;

    while (err == 0 && (rc = archive_read_next_header(r->archive, &entry)) == ARCHIVE_OK) {
        const char *name = archive_entry_pathname(entry);

        if (archive_format(r->archive) == ARCHIVE_FORMAT_RAW)
            return err_set(e, EINVAL, "%s: not a tar archive; give the archive as published",
                           r->path);
        if (archive_entry_filetype(entry) == AE_IFREG)
            err = hand_over(r, name != NULL ? name : "?", &left, f, self, e);
    }
    return err != 0 || rc == ARCHIVE_EOF ? err : damaged(r, e);
}

int file_each(const char *path, size_t max, file_member_f *f, void *self, struct err *e)
{
    struct file_reader r = { .path = path };
    int fd = open_for_reading(path, e);
    int rc;

    if (fd < 0)
        return fd;
    r.archive = reader_create();
    rc = archive_read_open_fd(r.archive, fd, 64 << 10);
    rc = rc == ARCHIVE_OK ? walk_all(&r, max, f, self, e) : damaged(&r, e);
    archive_read_free(r.archive);
    close(fd);
    return rc;
}

int file_read_text(struct arena *a, const char *path, const char *member, size_t max,
                   const char **text, size_t *len, struct err *e)
{
    size_t bad, line = 1;
    int rc = file_read(a, path, member, max, text, len, e);

    if (rc < 0)
        return rc;
    if (*len >= 3 && memcmp(*text, "\xef\xbb\xbf", 3) == 0) {
        *text += 3;
        *len -= 3;
    }
    if (text_is_utf8(*text, *len, &bad))
        return 0;
    for (size_t i = 0; i < bad; i++)
        line += (*text)[i] == '\n';
    return err_set(e, EILSEQ,
                   "%s:%zu: not UTF-8 text; convert it, or check that it is the file meant", path,
                   line);
}

int file_write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, bytes, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        bytes += n;
        len -= (size_t)n;
    }
    return 0;
}

/* Make the name itself durable. Some file systems cannot; the content is safe. */
static void sync_directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash == NULL ? strdup(".") : strndup(path, (size_t)(slash - path) + 1);
    int fd = folder == NULL ? -1 : open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
    free(folder);
}

/* Write all of it and close; 'must_last': on disk before that. */
static int fill(int fd, const char *bytes, size_t len, bool must_last)
{
    int rc = file_write_all(fd, bytes, len);

    if (rc == 0 && must_last && fsync(fd) != 0)
        rc = -errno;
    if (close(fd) != 0 && rc == 0)
        rc = -errno;
    return rc;
}

/* A new file beside 'path' with a name nobody has, which is the caller's to free.
 * Returns its descriptor, or -Exxx and no name.
 */
static int create_beside(const char *path, mode_t mode, char **name)
{
    for (int i = 0; i < 100; i++) {
        int fd;

        if (asprintf(name, "%s.%ld-%d.tmp", path, (long)getpid(), i) < 0)
            abort();
        fd = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd >= 0)
            return fd;
        free(*name);
        *name = NULL;
        if (errno != EEXIST)
            return -errno;
    }
    return -EEXIST;
}

static int replace(const char *path, mode_t mode, const char *bytes, size_t len)
{
    char *name = NULL;
    int fd = create_beside(path, mode, &name);
    int rc;

    if (name == NULL)
        return fd;
    rc = fill(fd, bytes, len, true);
    if (rc == 0 && rename(name, path) != 0)
        rc = -errno;
    if (rc < 0)
        unlink(name);
    else
        sync_directory_of(path);
    free(name);
    return rc;
}

/* A pipe or a terminal cannot be replaced, only written to. */
static int write_through(const char *path, const char *bytes, size_t len)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    return fd < 0 ? -errno : fill(fd, bytes, len, false);
}

int file_write(const char *path, const char *bytes, size_t len, struct err *e)
{
    char *target = realpath(path, NULL);    // a link stays a link
    const char *to = target != NULL ? target : path;
    struct stat st;
    int rc;

    if (stat(to, &st) != 0)
        rc = replace(to, 0666, bytes, len);
    else if (S_ISREG(st.st_mode))
        rc = replace(to, st.st_mode & 0777, bytes, len);
    else
        rc = write_through(to, bytes, len);
    free(target);
    if (rc < 0)
        return err_set(e, -rc, "%s: cannot write: %s", path, strerror(-rc));
    return 0;
}

void file_digest(const void *bytes, size_t len, char out[65])
{
    SHA2_CTX ctx;
    uint8_t digest[SHA256_DIGEST_LENGTH];

    SHA256Init(&ctx);
    SHA256Update(&ctx, bytes, len);
    SHA256Final(digest, &ctx);
    for (int i = 0; i < SHA256_DIGEST_LENGTH; i++)
        snprintf(out + 2 * i, 3, "%02x", digest[i]);
}
