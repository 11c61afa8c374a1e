/*
 * A simulation of libhf3fs_api_shared.so, for tests on machines without a 3FS cluster: the functions of USRBIO that UCM
 * calls, with their binary interface, over files of an ordinary file system, and sim_* functions by which a test
 * drives it.
 *
 * - A mount is a folder that the test names. Files below it are "3FS"; others are not, and cannot be registered.
 * - An iov is memory in /dev/shm. A ring has so many entries and no more; a request takes one from hf3fs_prep_io until
 *   its result is fetched.
 * - io_depth: 0 issues what there is; n > 0 issues batches of exactly n and leaves the rest where it is; n < 0 issues
 *   batches of at most |n|. As the real one may, it takes some requests of rings with io_depth 0 before they are
 *   submitted.
 * - Requests are carried out by threads, in no order, after a delay; some fall short, fail, or are held on demand.
 * - Misuse is counted and described: a ring prepared or submitted by two threads, or waited for by two at a time, registered files that were closed, memory outside of
 *   the iov, rings and iovs destroyed with requests under way, empty requests.
 *
 * Environment: SIM_HF3FS_MOUNTS (folders, joined with ':'), SIM_HF3FS_DELAY_US (0), SIM_HF3FS_SEED (1),
 * SIM_HF3FS_SHORT (one request in so many moves only a part; 0 for none), SIM_HF3FS_REPORT (a file for counters and
 * misuse at exit).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct hf3fs_iov {
  uint8_t *base;
  void *iovh;
  char id[16];
  char mount_point[256];
  size_t size;
  size_t block_size;
  int numa;
};
struct hf3fs_ior {
  struct hf3fs_iov iov;
  void *iorh;
  char mount_point[256];
  bool for_read;
  int io_depth;
  int priority;
  int timeout;
  uint64_t flags;
};
struct hf3fs_cqe {
  int32_t index;
  int32_t reserved;
  int64_t result;
  const void *userdata;
};

#define MAX_FDS 65536
#define MAX_MOUNTS 8
#define MAX_RULES 16
#define EXECUTORS 4

typedef struct { int fd, references; } handle; /* a file as the server knows it: by inode, not by descriptor */
typedef struct iov { uint8_t *base; size_t size; char mount[256]; int pending; } iov;
typedef struct { handle *file; dev_t device; ino_t inode; int flags; } registration;
typedef struct request {
  struct request *next;
  struct ring *ring;
  handle *file;
  iov *memory;
  void *ptr;
  off_t offset;
  uint64_t length, due;
  const void *userdata;
  int64_t result;
  int index;
} request;
typedef struct ring {
  int entries, used, open, under_way, depth, user, waiting;
  bool for_read;
  char mount[256];
  request *prepared, **prepared_end, *done, **done_end;
  int prepared_count;
} ring;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, ended = PTHREAD_COND_INITIALIZER;
static char mounts[MAX_MOUNTS][256];
static int mount_count, started, held;
static long delay_us, short_every;
static uint64_t random_state = 1;
static registration registrations[MAX_FDS];
static request *issued;
static long iovs, iov_bytes, rings, registered, under_way, max_under_way, reads, writes, read_bytes, written_bytes, batches,
    largest_batch, submits, waits, shorts, misuses, threads_seen;
static char first_misuse[512];
static struct { char name[32]; long nth, times; int code; } rules[MAX_RULES];
static __thread int thread_number;

static void misuse(const char *format, ...) {
  va_list args;
  if (misuses++ == 0) {
    va_start(args, format);
    vsnprintf(first_misuse, sizeof first_misuse, format, args);
    va_end(args);
  }
}

static uint64_t next_random(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state;
}

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct timespec to_timespec(uint64_t ns) {
  struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
  return t;
}

/* The code of a failure to come, or 0. */
static int rule(const char *name) {
  for (int i = 0; i < MAX_RULES; i++) {
    if (strcmp(rules[i].name, name) == 0 && rules[i].times > 0) {
      if (--rules[i].nth <= 0) {
        rules[i].times--;
        return rules[i].code;
      }
    }
  }
  return 0;
}

static void add_mount(const char *path) {
  char *real = realpath(path, NULL);
  if (real && mount_count < MAX_MOUNTS) {
    snprintf(mounts[mount_count++], sizeof mounts[0], "%s", real);
  }
  free(real);
}

static const char *mount_of(const char *path) {
  const char *best = NULL;
  for (int i = 0; i < mount_count; i++) {
    size_t n = strlen(mounts[i]);
    if (strncmp(mounts[i], path, n) == 0 && (path[n] == '/' || path[n] == 0) && (!best || n > strlen(best))) {
      best = mounts[i];
    }
  }
  return best;
}

static const char *mount_named(const char *name) {
  for (int i = 0; name && i < mount_count; i++) {
    if (strcmp(mounts[i], name) == 0) {
      return mounts[i];
    }
  }
  return NULL;
}

__attribute__((constructor)) static void read_environment(void) {
  char *text = getenv("SIM_HF3FS_MOUNTS");
  if (text) {
    char *copy = strdup(text), *rest = copy, *part;
    while ((part = strsep(&rest, ":"))) {
      add_mount(part);
    }
    free(copy);
  }
  if ((text = getenv("SIM_HF3FS_DELAY_US"))) {
    delay_us = atol(text);
  }
  if ((text = getenv("SIM_HF3FS_SEED"))) {
    random_state = (uint64_t)atol(text) * 2654435761u + 1;
  }
  if ((text = getenv("SIM_HF3FS_SHORT"))) {
    short_every = atol(text);
  }
}

__attribute__((destructor)) static void report(void) {
  const char *file = getenv("SIM_HF3FS_REPORT");
  FILE *out = file ? fopen(file, "w") : NULL;
  if (out) {
    fprintf(out, "iovs=%ld\nrings=%ld\nregistered=%ld\nunder_way=%ld\nreads=%ld\nwrites=%ld\nmisuses=%ld\nfirst=%s\n",
            iovs, rings, registered, under_way, reads, writes, misuses, first_misuse);
    fclose(out);
  }
}

static void release(handle *file) {
  if (--file->references == 0) {
    close(file->fd);
    free(file);
  }
}

/* Carries a request out, without the lock. */
static int64_t carry_out(request *r, uint64_t length) {
  uint64_t done = 0;
  while (done < length) {
    char *at = (char *)r->ptr + done;
    off_t offset = r->offset + (off_t)done;
    ssize_t n = r->ring->for_read ? pread(r->file->fd, at, length - done, offset)
                                  : pwrite(r->file->fd, at, length - done, offset);
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n < 0) {
      return -errno;
    }
    if (n == 0) {
      break;
    }
    done += (uint64_t)n;
  }
  return (int64_t)done;
}

/* Takes a random one of the requests that are due; or says when the next one is. */
static request *take_due(uint64_t *next) {
  uint64_t now = now_ns();
  int due = 0;
  *next = UINT64_MAX;
  for (request *r = issued; r; r = r->next) {
    if (r->due <= now) {
      due++;
    } else if (r->due < *next) {
      *next = r->due;
    }
  }
  if (held || due == 0) {
    return NULL;
  }
  int chosen = (int)(next_random() % (uint64_t)due);
  for (request **at = &issued;; at = &(*at)->next) {
    if ((*at)->due <= now && chosen-- == 0) {
      request *r = *at;
      *at = r->next;
      return r;
    }
  }
}

static void *executor(void *unused) {
  (void)unused;
  pthread_mutex_lock(&lock);
  for (;;) {
    uint64_t next;
    request *r = take_due(&next);
    if (!r) {
      if (held || next == UINT64_MAX) {
        pthread_cond_wait(&work, &lock);
      } else {
        struct timespec until = to_timespec(next);
        pthread_cond_timedwait(&work, &lock, &until);
      }
      continue;
    }
    const char *kind = r->ring->for_read ? "read" : "write";
    int code = rule(kind);
    uint64_t length = r->length;
    bool isShort = length > 1 && (rule(r->ring->for_read ? "short read" : "short write") != 0
                                  || (short_every > 0 && next_random() % (uint64_t)short_every == 0));
    if (isShort) {
      shorts++;
      length = 1 + next_random() % (length - 1);
    }
    pthread_mutex_unlock(&lock);
    int64_t result = code ? -code : carry_out(r, length);
    pthread_mutex_lock(&lock);
    r->result = result;
    if (result > 0) {
      *(r->ring->for_read ? &read_bytes : &written_bytes) += result;
    }
    (*(r->ring->for_read ? &reads : &writes))++;
    r->memory->pending--;
    release(r->file);
    under_way--;
    r->ring->under_way--;
    r->next = NULL;
    *r->ring->done_end = r;
    r->ring->done_end = &r->next;
    pthread_cond_broadcast(&ended);
  }
  return NULL;
}

static void start_executors(void) {
  if (!started) {
    started = 1;
    for (int i = 0; i < EXECUTORS; i++) {
      pthread_t thread;
      pthread_create(&thread, NULL, executor, NULL);
      pthread_detach(thread);
    }
  }
}

/* Issues so many of the prepared requests as one batch. */
static void issue(ring *g, int count) {
  batches++;
  if (count > largest_batch) {
    largest_batch = count;
  }
  for (int i = 0; i < count; i++) {
    request *r = g->prepared;
    g->prepared = r->next;
    g->prepared_count--;
    uint64_t delay = (uint64_t)delay_us * 1000;
    r->due = delay == 0 ? 0 : now_ns() + delay + next_random() % (delay / 4 + 1);
    r->next = issued;
    issued = r;
  }
  if (!g->prepared) {
    g->prepared_end = &g->prepared;
  }
  pthread_cond_broadcast(&work);
}

static void issue_batches(ring *g) {
  if (g->depth > 0) {
    while (g->prepared_count >= g->depth) {
      issue(g, g->depth);
    }
    return;
  }
  int most = g->depth < 0 ? -g->depth : INT_MAX;
  while (g->prepared_count > 0) {
    issue(g, g->prepared_count < most ? g->prepared_count : most);
  }
}

static ring *open_ring(const struct hf3fs_ior *ior, const char *call) {
  ring *g = ior ? ior->iorh : NULL;
  if (!g || !g->open) {
    misuse("%s of a ring that is not open", call);
    return NULL;
  }
  return g;
}

/* The ring, when it may be used by this thread. */
static ring *ring_of(const struct hf3fs_ior *ior, const char *call) {
  ring *g = open_ring(ior, call);
  if (!g) {
    return NULL;
  }
  if (thread_number == 0) {
    thread_number = (int)++threads_seen;
  }
  if (g->user == 0) {
    g->user = thread_number;
  } else if (g->user != thread_number) {
    misuse("%s: a ring of thread %d is used by thread %d", call, g->user, thread_number);
  }
  return g;
}

bool hf3fs_is_hf3fs(int fd) {
  char name[64], path[PATH_MAX];
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(name, path, sizeof path - 1);
  if (n < 0) {
    return false;
  }
  path[n] = 0;
  pthread_mutex_lock(&lock);
  bool found = mount_of(path) != NULL && rule("is_hf3fs") == 0;
  pthread_mutex_unlock(&lock);
  return found;
}

int hf3fs_extract_mount_point(char *out, int size, const char *path) {
  char *real = realpath(path, NULL);
  pthread_mutex_lock(&lock);
  const char *found = real ? mount_of(real) : NULL;
  int length = found ? (int)strlen(found) + 1 : -1;
  if (found && length <= size) {
    strcpy(out, found);
  }
  pthread_mutex_unlock(&lock);
  free(real);
  return length;
}

int hf3fs_iovcreate(struct hf3fs_iov *v, const char *mount, size_t size, size_t block_size, int numa) {
  pthread_mutex_lock(&lock);
  int code = rule("iovcreate");
  if (!code && !mount_named(mount)) {
    code = ENOENT;
  }
  int fd = -1;
  void *base = MAP_FAILED;
  if (!code && ((fd = open("/dev/shm", O_TMPFILE | O_RDWR, 0600)) < 0 || ftruncate(fd, (off_t)size) < 0
                || (base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)) == MAP_FAILED)) {
    code = EIO;
  }
  if (fd >= 0) {
    close(fd);
  }
  if (!code) {
    iov *h = calloc(1, sizeof *h);
    h->base = base;
    h->size = size;
    snprintf(h->mount, sizeof h->mount, "%s", mount);
    memset(v, 0, sizeof *v);
    v->base = base;
    v->iovh = h;
    snprintf(v->mount_point, sizeof v->mount_point, "%s", mount);
    v->size = size;
    v->block_size = block_size;
    v->numa = numa;
    iovs++;
    iov_bytes += (long)size;
  }
  pthread_mutex_unlock(&lock);
  return -code;
}

void hf3fs_iovdestroy(struct hf3fs_iov *v) {
  pthread_mutex_lock(&lock);
  iov *h = v->iovh;
  if (!h) {
    misuse("iovdestroy of no iov");
  } else if (h->pending > 0) {
    misuse("iovdestroy with %d requests under way", h->pending);
  } else {
    munmap(h->base, h->size);
    iovs--;
    iov_bytes -= (long)h->size;
    v->iovh = NULL;
    free(h);
  }
  pthread_mutex_unlock(&lock);
}

size_t hf3fs_ior_size(int entries) { return 4096 + 96 * (size_t)(entries + 1); }

int hf3fs_iorcreate4(struct hf3fs_ior *ior, const char *mount, int entries, bool for_read, int io_depth, int timeout,
                     int numa, uint64_t flags) {
  pthread_mutex_lock(&lock);
  int code = rule("iorcreate");
  if (!code && (entries < 1 || timeout < 0)) {
    code = EINVAL;
  }
  if (!code && !mount_named(mount)) {
    code = ENOENT;
  }
  if (!code) {
    start_executors();
    ring *g = calloc(1, sizeof *g);
    g->entries = entries;
    g->depth = io_depth;
    g->for_read = for_read;
    g->open = 1;
    snprintf(g->mount, sizeof g->mount, "%s", mount);
    g->prepared_end = &g->prepared;
    g->done_end = &g->done;
    memset(ior, 0, sizeof *ior);
    ior->iorh = g;
    snprintf(ior->mount_point, sizeof ior->mount_point, "%s", mount);
    ior->for_read = for_read;
    ior->io_depth = io_depth;
    ior->timeout = timeout;
    ior->flags = flags;
    ior->iov.numa = numa;
    rings++;
  }
  pthread_mutex_unlock(&lock);
  return -code;
}

/* The ring itself is never freed, so that a later use of it is seen for what it is. */
void hf3fs_iordestroy(struct hf3fs_ior *ior) {
  pthread_mutex_lock(&lock);
  ring *g = ior->iorh;
  if (!g || !g->open) {
    misuse("iordestroy of no ring");
  } else {
    if (g->under_way > 0) {
      misuse("iordestroy with %d requests under way", g->under_way);
    }
    g->open = 0;
    rings--;
  }
  pthread_mutex_unlock(&lock);
}

int hf3fs_reg_fd(int fd, uint64_t flags) {
  (void)flags;
  if (!hf3fs_is_hf3fs(fd)) {
    return EBADF;
  }
  pthread_mutex_lock(&lock);
  int code = rule("reg_fd");
  struct stat s;
  char name[64];
  if (!code && (fd < 0 || fd >= MAX_FDS || registrations[fd].file)) {
    misuse("descriptor %d is registered already", fd);
    code = EINVAL;
  }
  if (!code && fstat(fd, &s) < 0) {
    code = errno;
  }
  int own = -1;
  int mode = fcntl(fd, F_GETFL) & O_ACCMODE;
  if (!code) {
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    if ((own = open(name, mode | O_CLOEXEC)) < 0) {
      code = errno;
    }
  }
  if (!code) {
    handle *file = malloc(sizeof *file);
    file->fd = own;
    file->references = 1;
    registration r = {.file = file, .device = s.st_dev, .inode = s.st_ino, .flags = mode};
    registrations[fd] = r;
    registered++;
  }
  pthread_mutex_unlock(&lock);
  return code ? code : -own;
}

void hf3fs_dereg_fd(int fd) {
  struct stat s;
  pthread_mutex_lock(&lock);
  if (fd < 0 || fd >= MAX_FDS || !registrations[fd].file) {
    misuse("descriptor %d is not registered, and deregistered", fd);
  } else {
    if (fstat(fd, &s) < 0 || s.st_ino != registrations[fd].inode || s.st_dev != registrations[fd].device) {
      misuse("descriptor %d was closed before it was deregistered", fd);
    }
    release(registrations[fd].file);
    memset(&registrations[fd], 0, sizeof registrations[fd]);
    registered--;
  }
  pthread_mutex_unlock(&lock);
}

static int prep(const struct hf3fs_ior *ior, const struct hf3fs_iov *v, bool read, void *ptr, int fd, size_t off,
                uint64_t len, const void *userdata) {
  ring *g = ring_of(ior, "prep_io");
  iov *memory = v ? v->iovh : NULL;
  if (!g || !memory || read != g->for_read || len == 0) {
    misuse("prep_io with a wrong ring, iov, direction or length");
    return -EINVAL;
  }
  uint8_t *at = ptr;
  if (at < memory->base || len > memory->size || at + len > memory->base + memory->size) {
    misuse("prep_io of memory that is not in the iov");
    return -EINVAL;
  }
  if (strcmp(memory->mount, g->mount) != 0) {
    misuse("prep_io on a ring of %s with memory of %s", g->mount, memory->mount);
    return -EINVAL;
  }
  struct stat s;
  if (fd < 0 || fd >= MAX_FDS || !registrations[fd].file) {
    misuse("prep_io on descriptor %d, which is not registered", fd);
    return -EBADF;
  }
  registration *r = &registrations[fd];
  if (fstat(fd, &s) < 0 || s.st_ino != r->inode || s.st_dev != r->device) {
    misuse("prep_io on descriptor %d, which was closed while it was registered", fd);
    return -EBADF;
  }
  if ((read && r->flags == O_WRONLY) || (!read && r->flags == O_RDONLY)) {
    return -EACCES;
  }
  int code = rule("prep_io");
  if (code) {
    return -code;
  }
  if (g->used == g->entries) {
    return -EAGAIN;
  }
  request *q = calloc(1, sizeof *q);
  q->ring = g;
  q->file = r->file;
  q->file->references++;
  q->memory = memory;
  q->ptr = ptr;
  q->offset = (off_t)off;
  q->length = len;
  q->userdata = userdata;
  q->index = g->used++;
  memory->pending++;
  under_way++;
  if (++g->under_way > max_under_way) {
    max_under_way = g->under_way;
  }
  *g->prepared_end = q;
  g->prepared_end = &q->next;
  g->prepared_count++;
  if (g->depth == 0 && next_random() % 4 == 0) {
    issue_batches(g);
  }
  return q->index;
}

int hf3fs_prep_io(const struct hf3fs_ior *ior, const struct hf3fs_iov *v, bool read, void *ptr, int fd, size_t off,
                  uint64_t len, const void *userdata) {
  pthread_mutex_lock(&lock);
  int result = prep(ior, v, read, ptr, fd, off, len, userdata);
  pthread_mutex_unlock(&lock);
  return result;
}

int hf3fs_submit_ios(const struct hf3fs_ior *ior) {
  pthread_mutex_lock(&lock);
  ring *g = ring_of(ior, "submit_ios");
  int code = g ? rule("submit_ios") : EINVAL;
  if (!code) {
    submits++;
    issue_batches(g);
  }
  pthread_mutex_unlock(&lock);
  return -code;
}

int hf3fs_wait_for_ios(const struct hf3fs_ior *ior, struct hf3fs_cqe *cqes, int cqec, int min_results,
                       const struct timespec *abs_timeout) {
  pthread_mutex_lock(&lock);
  ring *g = open_ring(ior, "wait_for_ios");
  int code = g && cqec > 0 ? rule("wait_for_ios") : EINVAL;
  if (g && g->waiting++ > 0) {
    misuse("wait_for_ios by two threads at a time");
  }
  int filled = 0;
  if (!code) {
    waits++;
    if (min_results > cqec) {
      min_results = cqec;
    }
    for (;;) {
      while (g->done && filled < cqec) {
        request *r = g->done;
        g->done = r->next;
        struct hf3fs_cqe e = {.index = r->index, .result = r->result, .userdata = r->userdata};
        cqes[filled++] = e;
        g->used--;
        free(r);
      }
      if (!g->done) {
        g->done_end = &g->done;
      }
      if (filled >= min_results) {
        break;
      }
      if (!abs_timeout) {
        pthread_cond_wait(&ended, &lock);
      } else if (pthread_cond_timedwait(&ended, &lock, abs_timeout) == ETIMEDOUT && !g->done) {
        break;
      }
    }
  }
  if (g) {
    g->waiting--;
  }
  pthread_mutex_unlock(&lock);
  return code ? -code : filled;
}

/* For tests: folders that are mounts from now on, joined with ':'. */
void sim_mounts(const char *paths) {
  pthread_mutex_lock(&lock);
  mount_count = 0;
  char *copy = strdup(paths), *rest = copy, *part;
  while ((part = strsep(&rest, ":"))) {
    add_mount(part);
  }
  free(copy);
  pthread_mutex_unlock(&lock);
}

/* The n-th call from now on, counted from 1, fails with an error number, and so do the following ones. */
void sim_fail(const char *name, long nth, long times, int code) {
  pthread_mutex_lock(&lock);
  for (int i = 0; i < MAX_RULES; i++) {
    if (rules[i].times == 0) {
      snprintf(rules[i].name, sizeof rules[i].name, "%s", name);
      rules[i].nth = nth;
      rules[i].times = times;
      rules[i].code = code;
      break;
    }
  }
  pthread_mutex_unlock(&lock);
}

void sim_delay(long micros) {
  pthread_mutex_lock(&lock);
  delay_us = micros;
  pthread_mutex_unlock(&lock);
}

void sim_short_every(long requests) {
  pthread_mutex_lock(&lock);
  short_every = requests;
  pthread_mutex_unlock(&lock);
}

/* While held, no request is carried out. */
void sim_hold(int hold) {
  pthread_mutex_lock(&lock);
  held = hold;
  pthread_cond_broadcast(&work);
  pthread_mutex_unlock(&lock);
}

/* Waits until so many requests are under way, from least to most; for tests. 0: they were not within the time. */
int sim_await_under_way(long least, long most, long millis) {
  uint64_t limit = now_ns() + (uint64_t)millis * 1000000;
  pthread_mutex_lock(&lock);
  while ((under_way < least || under_way > most) && now_ns() < limit) {
    struct timespec until = to_timespec(now_ns() + 1000000);
    pthread_cond_timedwait(&ended, &lock, &until);
  }
  int met = under_way >= least && under_way <= most;
  pthread_mutex_unlock(&lock);
  return met;
}

/* Forgets failures to come, counts of what was done, and misuse. */
void sim_heal(void) {
  pthread_mutex_lock(&lock);
  memset(rules, 0, sizeof rules);
  delay_us = short_every = 0;
  held = 0;
  max_under_way = reads = writes = read_bytes = written_bytes = batches = largest_batch = submits = waits = shorts = 0;
  misuses = 0;
  first_misuse[0] = 0;
  pthread_cond_broadcast(&work);
  pthread_mutex_unlock(&lock);
}

long sim_count(const char *what) {
  static const struct { const char *name; long *value; } counters[] = {
      {"iovs", &iovs}, {"iov_bytes", &iov_bytes}, {"rings", &rings}, {"registered", &registered},
      {"under_way", &under_way}, {"max_under_way", &max_under_way}, {"reads", &reads}, {"writes", &writes},
      {"read_bytes", &read_bytes}, {"written_bytes", &written_bytes}, {"batches", &batches},
      {"largest_batch", &largest_batch}, {"submits", &submits}, {"waits", &waits}, {"shorts", &shorts},
      {"misuses", &misuses}};
  long value = -1;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++) {
    if (strcmp(counters[i].name, what) == 0) {
      value = *counters[i].value;
    }
  }
  pthread_mutex_unlock(&lock);
  return value;
}

const char *sim_first_misuse(void) { return first_misuse; }
