/*
 * A FUSE file system for tests: it passes every call on to a directory, and fails, stalls, delays or
 * shortens calls on demand. It can also log what is written to its files, as a disk would see it.
 *
 *   sick_fs DIRECTORY MOUNT_POINT [LOG]
 *
 * Nothing is cached in the kernel, so that each call of a program arrives here.
 *
 * Commands, one a line on standard input; each is answered by "done" on standard output:
 *
 *   ok                   pass calls on
 *   fail ERRNO [CALLS]   let them fail
 *   stall [CALLS]        hold them until the next command, under whose rule they then come
 *   delay MS [CALLS]     let them take longer
 *   short                move at most a part of what is to be read or written
 *   mark NUMBER          note a number in the log
 *
 * CALLS are names of CALL_NAMES below, separated by commas; without them all calls are meant. Says
 * "mounted" once it is, and "stalled CALL" for each call that it holds. The end of the input unmounts.
 *
 * The log has a record for each write (WRITE, offset, length, bytes), each fsync (FLUSH, 0, 0) and each
 * mark (MARK, number, 0), all numbers of 64 bits in the machine's order; the order is that in which the
 * calls had their effect.
 */
#define FUSE_USE_VERSION 312
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum call { LOOKUP, OPEN, CREATE, READ, WRITE, SYNC, CLOSE, RENAME, UNLINK, MKDIR, LIST, CALLS };

static const char *const CALL_NAMES[CALLS] = {"lookup", "open",   "create", "read",  "write", "sync",
                                              "close",  "rename", "unlink", "mkdir", "list"};

enum mode { OK, FAIL, STALL, DELAY, SHORT };
enum record { RECORD_WRITE = 1, RECORD_FLUSH = 2, RECORD_MARK = 3 };

static int root;
static FILE *log_file;
static struct fuse *fuse;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned generation;
static enum mode mode = OK;
static unsigned calls;
static int argument;

/* Keeps the log in the order of the effects. */
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

static void say(const char *event, const char *more) {
  printf("%s%s\n", event, more);
  fflush(stdout);
}

/* What is to happen to a call: 0, or the negative number of an error; holds it as long as told. */
static int ail(enum call call) {
  int result = 0;
  pthread_mutex_lock(&lock);
  while (mode == STALL && (calls & 1u << call) != 0) {
    unsigned now = generation;
    say("stalled ", CALL_NAMES[call]);
    while (now == generation) {
      pthread_cond_wait(&changed, &lock);
    }
  }
  int delay_ms = 0;
  if ((calls & 1u << call) != 0) {
    result = mode == FAIL ? -argument : 0;
    delay_ms = mode == DELAY ? argument : 0;
  }
  pthread_mutex_unlock(&lock);
  if (delay_ms > 0) {
    usleep(1000u * (unsigned)delay_ms);
  }
  return result;
}

static size_t shortened(size_t size) {
  pthread_mutex_lock(&lock);
  int cut = mode == SHORT && size > 1;
  pthread_mutex_unlock(&lock);
  /* Whole sectors, as direct I/O moves no others. */
  return cut ? (size > 1024 ? size / 3 / 512 * 512 + 512 : size / 3 + 1) : size;
}

static void append(uint64_t type, uint64_t number, const char *bytes, uint64_t length) {
  uint64_t head[3] = {type, number, length};
  if (fwrite(head, sizeof head, 1, log_file) != 1
      || (length > 0 && fwrite(bytes, length, 1, log_file) != 1) || fflush(log_file) != 0) {
    perror("sick_fs: log");
    exit(1);
  }
}

static const char *in_root(const char *path) { return path[1] == 0 ? "." : path + 1; }

static int result_of(int result) { return result < 0 ? -errno : result; }

#define AIL(call)                                                                                  \
  do {                                                                                             \
    int ailment = ail(call);                                                                       \
    if (ailment != 0) {                                                                            \
      return ailment;                                                                              \
    }                                                                                              \
  } while (0)

static void *fs_init(struct fuse_conn_info *conn, struct fuse_config *config) {
  conn->max_background = 1000;
  config->direct_io = 1;
  config->attr_timeout = 0;
  config->entry_timeout = 0;
  config->negative_timeout = 0;
  config->hard_remove = 1;
  config->nullpath_ok = 1;
  say("mounted", "");
  return NULL;
}

static int fs_getattr(const char *path, struct stat *found, struct fuse_file_info *file) {
  AIL(LOOKUP);
  return result_of(file != NULL ? fstat((int)file->fh, found)
                                : fstatat(root, in_root(path), found, AT_SYMLINK_NOFOLLOW));
}

static int opened(int fd, struct fuse_file_info *file) {
  file->fh = (uint64_t)fd;
  return fd < 0 ? -errno : 0;
}

static int fs_opendir(const char *path, struct fuse_file_info *file) {
  AIL(LIST);
  return opened(openat(root, in_root(path), O_RDONLY | O_DIRECTORY), file);
}

static int fs_readdir(const char *path, void *buffer, fuse_fill_dir_t fill, off_t offset,
                      struct fuse_file_info *file, enum fuse_readdir_flags flags) {
  (void)path;
  (void)offset;
  (void)flags;
  AIL(LIST);
  DIR *folder = fdopendir(dup((int)file->fh));
  if (folder == NULL) {
    return -errno;
  }
  rewinddir(folder);
  for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
    fill(buffer, entry->d_name, NULL, 0, 0);
  }
  closedir(folder);
  return 0;
}

static int fs_mkdir(const char *path, mode_t permissions) {
  AIL(MKDIR);
  return result_of(mkdirat(root, in_root(path), permissions));
}

static int fs_unlink(const char *path) {
  AIL(UNLINK);
  return result_of(unlinkat(root, in_root(path), 0));
}

static int fs_rmdir(const char *path) {
  AIL(UNLINK);
  return result_of(unlinkat(root, in_root(path), AT_REMOVEDIR));
}

static int fs_rename(const char *from, const char *to, unsigned flags) {
  AIL(RENAME);
  return result_of(renameat2(root, in_root(from), root, in_root(to), flags));
}

static int fs_create(const char *path, mode_t permissions, struct fuse_file_info *file) {
  AIL(CREATE);
  return opened(openat(root, in_root(path), O_RDWR | O_CREAT | O_EXCL, permissions), file);
}

static int fs_open(const char *path, struct fuse_file_info *file) {
  AIL(OPEN);
  return opened(openat(root, in_root(path), (file->flags & O_ACCMODE) | O_NOFOLLOW), file);
}

static int fs_read(const char *path, char *into, size_t size, off_t offset,
                   struct fuse_file_info *file) {
  (void)path;
  AIL(READ);
  return result_of((int)pread((int)file->fh, into, shortened(size), offset));
}

static int fs_write(const char *path, const char *from, size_t size, off_t offset,
                    struct fuse_file_info *file) {
  (void)path;
  AIL(WRITE);
  if (log_file == NULL) {
    return result_of((int)pwrite((int)file->fh, from, shortened(size), offset));
  }
  pthread_mutex_lock(&log_lock);
  int written = result_of((int)pwrite((int)file->fh, from, size, offset));
  if (written > 0) {
    append(RECORD_WRITE, (uint64_t)offset, from, (uint64_t)written);
  }
  pthread_mutex_unlock(&log_lock);
  return written;
}

static int fs_fsync(const char *path, int data_only, struct fuse_file_info *file) {
  (void)path;
  (void)data_only;
  (void)file;
  AIL(SYNC);
  /* Nothing is pulled out here but a disk that a test makes up from the log. */
  if (log_file != NULL) {
    pthread_mutex_lock(&log_lock);
    append(RECORD_FLUSH, 0, NULL, 0);
    pthread_mutex_unlock(&log_lock);
  }
  return 0;
}

static int fs_fsyncdir(const char *path, int data_only, struct fuse_file_info *file) {
  return fs_fsync(path, data_only, file);
}

static int fs_flush(const char *path, struct fuse_file_info *file) {
  (void)path;
  (void)file;
  AIL(CLOSE);
  return 0;
}

static int fs_release(const char *path, struct fuse_file_info *file) {
  (void)path;
  close((int)file->fh);
  return 0;
}

static int fs_statfs(const char *path, struct statvfs *found) {
  (void)path;
  AIL(LOOKUP);
  return result_of(fstatvfs(root, found));
}

static int fs_truncate(const char *path, off_t size, struct fuse_file_info *file) {
  AIL(WRITE);
  if (file != NULL) {
    return result_of(ftruncate((int)file->fh, size));
  }
  int fd = openat(root, in_root(path), O_WRONLY | O_NOFOLLOW);
  int result = result_of(fd < 0 ? fd : ftruncate(fd, size));
  close(fd);
  return result;
}

static int fs_utimens(const char *path, const struct timespec times[2],
                      struct fuse_file_info *file) {
  AIL(LOOKUP);
  return result_of(file != NULL
                       ? futimens((int)file->fh, times)
                       : utimensat(root, in_root(path), times, AT_SYMLINK_NOFOLLOW));
}

static const struct fuse_operations OPERATIONS = {
    .init = fs_init,         .getattr = fs_getattr, .opendir = fs_opendir, .readdir = fs_readdir,
    .mkdir = fs_mkdir,       .unlink = fs_unlink,   .rmdir = fs_rmdir,     .rename = fs_rename,
    .create = fs_create,     .open = fs_open,       .read = fs_read,       .write = fs_write,
    .fsync = fs_fsync,       .fsyncdir = fs_fsyncdir, .flush = fs_flush,   .release = fs_release,
    .releasedir = fs_release, .statfs = fs_statfs,    .utimens = fs_utimens,
    .truncate = fs_truncate,
};

static unsigned calls_of(char *names) {
  unsigned found = 0;
  for (char *name = names == NULL ? NULL : strtok(names, ","); name != NULL;
       name = strtok(NULL, ",")) {
    for (int call = 0; call < CALLS; call++) {
      found |= strcmp(name, CALL_NAMES[call]) == 0 ? 1u << call : 0;
    }
  }
  return found == 0 ? ~0u : found;
}

static void become(enum mode next, int number, unsigned which) {
  pthread_mutex_lock(&lock);
  mode = next;
  argument = number;
  calls = which;
  generation++;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

static void *obey(void *unused) {
  char line[256];
  while (fgets(line, sizeof line, stdin) != NULL) {
    char word[32] = "";
    char names[200] = "";
    int number = 0;
    sscanf(line, "%31s", word);
    if (strcmp(word, "fail") == 0 || strcmp(word, "delay") == 0) {
      sscanf(line, "%*s %d %199s", &number, names);
    } else {
      sscanf(line, "%*s %199s", names);
    }
    char *list = names[0] == 0 ? NULL : names;
    if (strcmp(word, "ok") == 0) {
      become(OK, 0, ~0u);
    } else if (strcmp(word, "fail") == 0) {
      become(FAIL, number, calls_of(list));
    } else if (strcmp(word, "stall") == 0) {
      become(STALL, 0, calls_of(list));
    } else if (strcmp(word, "delay") == 0) {
      become(DELAY, number, calls_of(list));
    } else if (strcmp(word, "short") == 0) {
      become(SHORT, 0, ~0u);
    } else if (strcmp(word, "mark") == 0 && log_file != NULL) {
      pthread_mutex_lock(&log_lock);
      append(RECORD_MARK, strtoull(names, NULL, 10), NULL, 0);
      pthread_mutex_unlock(&log_lock);
    } else {
      say("unknown command ", word);
      continue;
    }
    say("done", "");
  }
  become(OK, 0, ~0u);
  /* Detaches it, also while files are open; what is under way fails when this process ends. */
  fuse_unmount(fuse);
  _exit(0);
  return unused;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: sick_fs DIRECTORY MOUNT_POINT [LOG]\n");
    return 2;
  }
  root = open(argv[1], O_RDONLY | O_DIRECTORY);
  log_file = argc > 3 ? fopen(argv[3], "wb") : NULL;
  if (root < 0 || (argc > 3 && log_file == NULL)) {
    perror("sick_fs");
    return 1;
  }
  struct fuse_args none = FUSE_ARGS_INIT(1, argv);
  fuse = fuse_new(&none, &OPERATIONS, sizeof OPERATIONS, NULL);
  if (fuse == NULL || fuse_mount(fuse, argv[2]) != 0) {
    return 1;
  }
  pthread_t commands;
  pthread_create(&commands, NULL, obey, NULL);
  /* Each call that stalls holds a thread. */
  struct fuse_loop_config *threads = fuse_loop_cfg_create();
  fuse_loop_cfg_set_max_threads(threads, 1000);
  fuse_loop_cfg_set_clone_fd(threads, 0);
  int result = fuse_loop_mt(fuse, threads);
  return result == 0 ? 0 : 1;
}
