/*
 * The system calls that are made for every file that is read or written; called through JNI, which takes less time
 * for a call than JNA. They return what the call returns, and its error number, negated, when it fails: the JVM makes calls of its own
 * before Java could ask for errno.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/uio.h>
#include <unistd.h>

#include "entry.h"

#define OR_ERROR(result) ((result) < 0 ? -errno : (result))

ENTRY(int32_t, libc_OwnLibrary, open, const char *path, int32_t flags, int32_t mode) {
  int fd = open(path, flags, mode);
  return OR_ERROR(fd);
}

ENTRY(int32_t, libc_OwnLibrary, close, int32_t fd) {
  int result = close(fd);
  return OR_ERROR(result);
}

ENTRY(int64_t, libc_OwnLibrary, lseek, int32_t fd, int64_t offset, int32_t whence) {
  off_t position = lseek(fd, offset, whence);
  return OR_ERROR(position);
}

ENTRY(int64_t, libc_OwnLibrary, preadv, int32_t fd, const struct iovec *segments, int32_t count, int64_t offset) {
  ssize_t bytes = preadv(fd, segments, count, offset);
  return OR_ERROR(bytes);
}

ENTRY(int64_t, libc_OwnLibrary, pwritev, int32_t fd, const struct iovec *segments, int32_t count, int64_t offset) {
  ssize_t bytes = pwritev(fd, segments, count, offset);
  return OR_ERROR(bytes);
}
