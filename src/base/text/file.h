/* file.h - whole files in, whole files out.
 *
 * Reading looks through compression and archives (libarchive): a plain file, a
 * .gz or .xz, or one member of a tar. Writing is atomic: a reader sees the old
 * file or the new one.
 */
#ifndef BASE_TEXT_FILE_H
#define BASE_TEXT_FILE_H

#include <stddef.h>

struct arena;
struct err;

/* The content of 'path' (plain, gzip, xz, bzip2, zstd), or of 'member' inside it
 * where it is a tar archive. With a tar of several files and member NULL, or with no
 * such member: -EINVAL, naming a few members as the cure. More than 'max' bytes
 * after decompression: -EFBIG. The text is in 'a', NUL-terminated.
 */
int file_read(struct arena *a, const char *path, const char *member, size_t max, const char **text,
              size_t *len, struct err *e);

/* Each regular file of the tar archive 'path' (perhaps compressed) in its order, of at most 'max'
 * bytes together; what 'f' is given is borrowed for the call, and what it returns other than 0 ends
 * the walk and is returned. Of a plain file: -EINVAL.
 */
typedef int file_member_f(void *self, const char *name, const char *text, size_t len,
                          struct err *e);
int file_each(const char *path, size_t max, file_member_f *f, void *self, struct err *e);

/* Like file_read, and the content must be UTF-8 (a leading byte-order mark is
 * dropped): -EILSEQ names the line otherwise.
 */
int file_read_text(struct arena *a, const char *path, const char *member, size_t max,
                   const char **text, size_t *len, struct err *e);

/* Write 'len' bytes to 'path' through a temporary file beside it, fsync, rename. An
 * existing file keeps its mode, a link stays a link, a pipe is written to as it is.
 */
int file_write(const char *path, const char *bytes, size_t len, struct err *e);

/* All of it to a descriptor; 0 or a negative errno. */
int file_write_all(int fd, const char *bytes, size_t len);

/* Hex SHA-256 of some bytes, 64 digits, in 'out' (65 bytes). */
void file_digest(const void *bytes, size_t len, char out[65]);

#endif
