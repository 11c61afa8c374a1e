/*
 * A simulated libcuda.so.1, for tests on machines without a GPU: the functions of the CUDA driver API that
 * UCM calls, with their binary interface, and sim_* functions by which a test drives it.
 *
 * - Memory of a device lies in a range of addresses that no program may touch (PROT_NONE), and its bytes elsewhere:
 *   a caller that takes a device address for one of the host dies at once.
 * - A stream is a thread. A copy happens later than the call that queued it, after a delay or when it is let go.
 * - Events are tickets: recording takes the next number, the stream's thread completes it.
 * - The bytes of a device lie in a memory file, so that another process of the same user can map an allocation by its
 *   IPC handle, as often and as long as it likes.
 * - Misuse is counted and described: calls without a current context, memory that is not allocated, registered or
 *   long enough, streams destroyed with work in them, host memory unregistered while a copy may use it.
 * - The n-th call of a function fails on demand; "copy" fails a copy while it runs, which loses the context.
 *
 * Environment: SIM_CUDA_DEVICES (1), SIM_CUDA_VERSION (12060), SIM_CUDA_INIT (result of cuInit), SIM_CUDA_DELAY_US (0),
 * SIM_CUDA_REPORT (a file for counters and misuse at exit), SIM_CUDA_DIRECT (1: addresses of the device may be read and
 * written by the host, for an engine that computes there), SIM_CUDA_FAIL (NAME,NTH,TIMES,CODE: as sim_fail),
 * SIM_CUDA_HANG_AT (no copy ends from the n-th on). cuMemcpyBatchAsync is there from version 12080 on.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef int CUresult;
typedef int CUdevice;
typedef uintptr_t CUdeviceptr;

enum {
  OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, INVALID_DEVICE = 101, INVALID_CONTEXT = 201,
  INVALID_HANDLE = 400, NOT_READY = 600, ILLEGAL_ADDRESS = 700, ALREADY_REGISTERED = 712, NOT_REGISTERED = 713
};

#define MAX_DEVICES 4
#define WINDOW (16UL << 30)
#define MAX_RANGES 4096
#define MAX_RULES 16
#define MAX_NAMES 64

typedef struct { uintptr_t from; size_t size; int live; int pending; } range;
typedef struct context { int device; } context;
typedef struct event { uint64_t recorded, completed; int live; } event;
enum kind { COPY, WAIT, RECORD };
typedef struct op {
  struct op *next;
  enum kind kind;
  event *event;
  uint64_t ticket;
  int up; /* from the device to the host */
  uintptr_t device, host;
  size_t width, rows, device_pitch, host_pitch;
} op;
typedef struct stream { pthread_t thread; op *head, *tail; int busy, stop; struct stream *self; } stream;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static int device_count = 1, version = 12060, init_result = OK, initialised, sticky, held;
static long delay_us, hang_at;
static char *window[MAX_DEVICES], *bytes[MAX_DEVICES];
static int files[MAX_DEVICES];
static size_t used[MAX_DEVICES];
static context contexts[MAX_DEVICES] = {{0}, {1}, {2}, {3}};
static int retained[MAX_DEVICES];
static range allocations[MAX_RANGES], registrations[MAX_RANGES], host_allocations[MAX_RANGES];
static int allocation_count, registration_count, host_allocation_count;
static long streams, events, opened, copies, copied_bytes, row_copies, unregistered, misuses, queued;
static char first_misuse[512];
static struct { char name[48]; long calls; } names[MAX_NAMES];
static struct { char name[48]; long nth, times; int code; } rules[MAX_RULES];
static __thread context *current[16];
static __thread int depth = -1;

static void misuse(const char *format, ...) {
  va_list args;
  if (misuses++ == 0) {
    va_start(args, format);
    vsnprintf(first_misuse, sizeof first_misuse, format, args);
    va_end(args);
  }
}

static long *counter(const char *name) {
  for (int i = 0; i < MAX_NAMES; i++) {
    if (!names[i].name[0]) strncpy(names[i].name, name, sizeof names[i].name - 1);
    if (!strcmp(names[i].name, name)) return &names[i].calls;
  }
  abort();
}

/* Counts a call, and says what it shall fail with. With the lock. */
static int strike(const char *name) {
  long call = ++*counter(name);
  for (int i = 0; i < MAX_RULES; i++) {
    if (!strcmp(rules[i].name, name) && call >= rules[i].nth && call < rules[i].nth + rules[i].times) return rules[i].code;
  }
  return OK;
}

static int enter(const char *name, int needs_context) {
  int code = strike(name);
  if (code) return code;
  if (!initialised) return NOT_INITIALIZED;
  if (needs_context && (depth < 0 || !current[depth])) {
    misuse("%s on a thread without a context", name);
    return INVALID_CONTEXT;
  }
  if (needs_context && !retained[current[depth]->device]) {
    misuse("%s with a context that was released", name);
    return INVALID_CONTEXT;
  }
  return needs_context ? sticky : OK;
}

#define ENTER(name, needs_context) \
  pthread_mutex_lock(&lock); \
  int result = enter(name, needs_context); \
  if (result) { pthread_mutex_unlock(&lock); return result; }
#define LEAVE(value) do { int answer = (value); pthread_mutex_unlock(&lock); return answer; } while (0)

static range *find(range *ranges, int count, uintptr_t at, size_t size) {
  for (int i = 0; i < count; i++) {
    if (ranges[i].live && at >= ranges[i].from && at + size <= ranges[i].from + ranges[i].size) return &ranges[i];
  }
  return NULL;
}

static range *pinned(uintptr_t at, size_t size) {
  range *found = find(registrations, registration_count, at, size);
  return found ? found : find(host_allocations, host_allocation_count, at, size);
}

static int device_of(uintptr_t at) {
  for (int i = 0; i < device_count; i++) {
    if (at >= (uintptr_t) window[i] && at < (uintptr_t) window[i] + WINDOW) return i;
  }
  return -1;
}

static char *real(uintptr_t at) {
  int device = device_of(at);
  return device < 0 ? NULL : bytes[device] + (at - (uintptr_t) window[device]);
}

static long number(const char *name, long otherwise) {
  const char *text = getenv(name);
  return text ? atol(text) : otherwise;
}

static void report(void) {
  const char *file = getenv("SIM_CUDA_REPORT");
  FILE *out = file ? fopen(file, "w") : NULL;
  if (!out) return;
  int live = 0, allocated = 0, contexts_left = 0;
  for (int i = 0; i < registration_count; i++) live += registrations[i].live;
  for (int i = 0; i < allocation_count; i++) allocated += allocations[i].live;
  for (int i = 0; i < MAX_DEVICES; i++) contexts_left += retained[i];
  fprintf(out, "streams=%ld\nevents=%ld\nopened=%ld\nregistrations=%d\nallocations=%d\ncontexts=%d\ncopies=%ld\nunregistered=%ld\n",
      streams, events, opened, live, allocated, contexts_left, copies, unregistered);
  fprintf(out, "batches=%ld\n", *counter("cuMemcpyBatchAsync"));
  fprintf(out, "misuses=%ld\nfirst=%s\n", misuses, first_misuse);
  fclose(out);
}

__attribute__((constructor)) static void load(void) {
  device_count = (int) number("SIM_CUDA_DEVICES", 1);
  version = (int) number("SIM_CUDA_VERSION", 12060);
  init_result = (int) number("SIM_CUDA_INIT", OK);
  delay_us = number("SIM_CUDA_DELAY_US", 0);
  hang_at = number("SIM_CUDA_HANG_AT", 0);
  const char *rule = getenv("SIM_CUDA_FAIL");
  if (rule && sscanf(rule, "%47[^,],%ld,%ld,%d", rules[0].name, &rules[0].nth, &rules[0].times, &rules[0].code) != 4) abort();
  if (device_count > MAX_DEVICES) device_count = MAX_DEVICES;
  for (int i = 0; i < device_count; i++) {
    files[i] = memfd_create("sim-cuda", MFD_CLOEXEC);
    if (files[i] < 0 || ftruncate(files[i], WINDOW)) abort();
    bytes[i] = mmap(NULL, WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, files[i], 0);
    window[i] = number("SIM_CUDA_DIRECT", 0)
        ? bytes[i] : mmap(NULL, WINDOW, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    used[i] = 4096;
  }
  atexit(report);
}

/* ---- how copies happen */

static void pend(op *o, int change) {
  range *r = find(allocations, allocation_count, o->device, 1);
  if (r) r->pending += change;
  r = pinned(o->host, 1);
  if (r) r->pending += change;
}

static void copy(op *o) {
  char *device = real(o->device);
  size_t device_span = (o->rows - 1) * o->device_pitch + o->width, host_span = (o->rows - 1) * o->host_pitch + o->width;
  if (!find(allocations, allocation_count, o->device, device_span)) {
    misuse("a copy ran on device memory 0x%lx + %zu that is not allocated", (long) o->device, device_span);
    sticky = ILLEGAL_ADDRESS;
    return;
  }
  if (!pinned(o->host, host_span)) unregistered++;
  copies++;
  row_copies += o->rows > 1;
  copied_bytes += (long) (o->width * o->rows);
  pthread_mutex_unlock(&lock);
  for (size_t i = 0; i < o->rows; i++) {
    char *d = device + i * o->device_pitch, *h = (char *) o->host + i * o->host_pitch;
    if (o->up) memcpy(h, d, o->width); else memcpy(d, h, o->width);
  }
  pthread_mutex_lock(&lock);
}

static void *work(void *argument) {
  stream *s = argument;
  pthread_setname_np(pthread_self(), "sim-cuda");
  pthread_mutex_lock(&lock);
  while (1) {
    op *o = s->head;
    if (!o) {
      if (s->stop) break;
      pthread_cond_wait(&changed, &lock);
      continue;
    }
    if (o->kind == WAIT && !sticky && o->event->completed < o->ticket) {
      pthread_cond_wait(&changed, &lock);
      continue;
    }
    if (o->kind == COPY && held && !sticky) {
      pthread_cond_wait(&changed, &lock);
      continue;
    }
    s->busy = 1;
    s->head = o->next;
    if (!s->head) s->tail = NULL;
    if (o->kind == COPY) {
      if (delay_us) {
        pthread_mutex_unlock(&lock);
        usleep((useconds_t) delay_us);
        pthread_mutex_lock(&lock);
      }
      if (hang_at && copies >= hang_at) while (1) pause();
      int code = strike("copy");
      if (code) sticky = code;
      if (!sticky) copy(o);
      pend(o, -1);
    } else if (o->kind == RECORD && o->event->completed < o->ticket) {
      o->event->completed = o->ticket;
    }
    s->busy = 0;
    queued--;
    // No thread waits for one copy among others; to wake all for each costs more than the copy.
    if (o->kind != COPY || !s->head || sticky) pthread_cond_broadcast(&changed);
    free(o);
  }
  pthread_mutex_unlock(&lock);
  s->self = NULL;
  free(s);
  return NULL;
}

static void queue(stream *s, op value) {
  op *o = malloc(sizeof *o);
  *o = value;
  o->next = NULL;
  if (s->tail) s->tail->next = o; else s->head = o;
  s->tail = o;
  queued++;
  if (o->kind == COPY) pend(o, 1);
  if (s->head == o) pthread_cond_broadcast(&changed);
}

static int queue_copy(const char *name, stream *s, op o) {
  size_t device_span = (o.rows - 1) * o.device_pitch + o.width;
  if (!s || s->self != s) {
    misuse("%s on something that is no stream", name);
    return INVALID_HANDLE;
  }
  if (!find(allocations, allocation_count, o.device, device_span)) {
    misuse("%s names device memory 0x%lx + %zu that is not allocated", name, (long) o.device, device_span);
    return INVALID_VALUE;
  }
  if (device_of(o.host) >= 0) {
    misuse("%s takes device memory for host memory", name);
    return INVALID_VALUE;
  }
  queue(s, o);
  return OK;
}

/* ---- the driver API */

CUresult cuInit(unsigned int flags) {
  (void) flags;
  pthread_mutex_lock(&lock);
  int code = strike("cuInit");
  if (!code) code = init_result;
  if (!code) initialised = 1;
  LEAVE(code);
}

CUresult cuDriverGetVersion(int *out) {
  pthread_mutex_lock(&lock);
  int code = strike("cuDriverGetVersion");
  if (!code) *out = version;
  LEAVE(code);
}

CUresult cuDeviceGetCount(int *count) {
  ENTER("cuDeviceGetCount", 0);
  *count = device_count;
  LEAVE(OK);
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  ENTER("cuDeviceGet", 0);
  if (ordinal < 0 || ordinal >= device_count) LEAVE(INVALID_DEVICE);
  *device = ordinal;
  LEAVE(OK);
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
  ENTER("cuDeviceGetName", 0);
  snprintf(name, (size_t) length, "Simulated GPU %d", device);
  LEAVE(OK);
}

CUresult cuDeviceGetUuid_v2(char *uuid, CUdevice device) {
  ENTER("cuDeviceGetUuid", 0);
  if (device < 0 || device >= device_count) LEAVE(INVALID_DEVICE);
  memcpy(uuid, "simulated GPU   ", 16);
  uuid[15] = (char) ('0' + device);
  LEAVE(OK);
}

CUresult cuDeviceGetUuid(char *uuid, CUdevice device) { return cuDeviceGetUuid_v2(uuid, device); }

CUresult cuDeviceGetPCIBusId(char *id, int length, CUdevice device) {
  ENTER("cuDeviceGetPCIBusId", 0);
  snprintf(id, (size_t) length, "0000:F%d:00.0", device);
  LEAVE(OK);
}

CUresult cuDeviceTotalMem_v2(size_t *size, CUdevice device) {
  (void) device;
  ENTER("cuDeviceTotalMem", 0);
  *size = WINDOW;
  LEAVE(OK);
}

CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
  (void) device;
  ENTER("cuDeviceGetAttribute", 0);
  *value = attribute == 11 ? 0x7fffffff : 0;
  LEAVE(OK);
}

CUresult cuDevicePrimaryCtxRetain(context **out, CUdevice device) {
  ENTER("cuDevicePrimaryCtxRetain", 0);
  if (device < 0 || device >= device_count) LEAVE(INVALID_DEVICE);
  retained[device]++;
  *out = &contexts[device];
  LEAVE(OK);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  ENTER("cuDevicePrimaryCtxRelease", 0);
  if (!retained[device]) {
    misuse("cuDevicePrimaryCtxRelease without a retained context");
    LEAVE(INVALID_CONTEXT);
  }
  retained[device]--;
  LEAVE(OK);
}

CUresult cuCtxSetCurrent(context *context) {
  ENTER("cuCtxSetCurrent", 0);
  if (depth < 0) depth = 0;
  current[depth] = context;
  LEAVE(OK);
}

CUresult cuCtxGetCurrent(context **out) {
  ENTER("cuCtxGetCurrent", 0);
  *out = depth < 0 ? NULL : current[depth];
  LEAVE(OK);
}

CUresult cuCtxGetDevice(CUdevice *out) {
  ENTER("cuCtxGetDevice", 1);
  *out = current[depth]->device;
  LEAVE(OK);
}

CUresult cuCtxPushCurrent_v2(context *context) {
  ENTER("cuCtxPushCurrent", 0);
  current[++depth] = context;
  LEAVE(OK);
}

CUresult cuCtxPopCurrent_v2(context **out) {
  ENTER("cuCtxPopCurrent", 0);
  if (depth < 0) {
    misuse("cuCtxPopCurrent without a context");
    LEAVE(INVALID_CONTEXT);
  }
  if (out) *out = current[depth];
  depth--;
  LEAVE(OK);
}

static int add(range *ranges, int *count, uintptr_t from, size_t size) {
  int i = 0;
  while (i < *count && ranges[i].live) i++;
  if (i == MAX_RANGES) return OUT_OF_MEMORY;
  if (i == *count) ++*count;
  ranges[i] = (range){from, size, 1, 0};
  return OK;
}

CUresult cuMemHostRegister_v2(void *memory, size_t size, unsigned int flags) {
  (void) flags;
  ENTER("cuMemHostRegister", 1);
  for (int i = 0; i < registration_count; i++) {
    range *r = &registrations[i];
    if (r->live && (uintptr_t) memory < r->from + r->size && r->from < (uintptr_t) memory + size) LEAVE(ALREADY_REGISTERED);
  }
  LEAVE(add(registrations, &registration_count, (uintptr_t) memory, size));
}

CUresult cuMemHostUnregister(void *memory) {
  ENTER("cuMemHostUnregister", 1);
  range *r = find(registrations, registration_count, (uintptr_t) memory, 1);
  if (!r || r->from != (uintptr_t) memory) LEAVE(NOT_REGISTERED);
  if (r->pending) misuse("host memory unregistered while %d copies may use it", r->pending);
  r->live = 0;
  LEAVE(OK);
}

CUresult cuMemHostAlloc(void **out, size_t size, unsigned int flags) {
  (void) flags;
  ENTER("cuMemHostAlloc", 1);
  if (posix_memalign(out, 4096, size)) LEAVE(OUT_OF_MEMORY);
  LEAVE(add(host_allocations, &host_allocation_count, (uintptr_t) *out, size));
}

CUresult cuMemFreeHost(void *memory) {
  ENTER("cuMemFreeHost", 1);
  range *r = find(host_allocations, host_allocation_count, (uintptr_t) memory, 1);
  if (!r || r->from != (uintptr_t) memory) LEAVE(INVALID_VALUE);
  if (r->pending) misuse("host memory freed while %d copies may use it", r->pending);
  r->live = 0;
  free(memory);
  LEAVE(OK);
}

CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t size) {
  ENTER("cuMemAlloc", 1);
  int device = current[depth]->device;
  size_t room = (size + 511 + 512) / 512 * 512;
  if (used[device] + room > WINDOW) LEAVE(OUT_OF_MEMORY);
  *out = (uintptr_t) window[device] + used[device];
  used[device] += room;
  LEAVE(add(allocations, &allocation_count, *out, size));
}

CUresult cuMemFree_v2(CUdeviceptr at) {
  ENTER("cuMemFree", 1);
  range *r = find(allocations, allocation_count, at, 1);
  if (!r || r->from != at) LEAVE(INVALID_VALUE);
  if (r->pending) misuse("device memory freed while %d copies may use it", r->pending);
  r->live = 0;
  /* Its address is never given out again; its pages are. */
  int device = device_of(at);
  size_t first = (at - (uintptr_t) window[device] + 4095) / 4096 * 4096;
  size_t end = (at - (uintptr_t) window[device] + r->size) / 4096 * 4096;
  if (end > first) fallocate(files[device], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t) first, (off_t) (end - first));
  LEAVE(OK);
}

/* What is in the 64 bytes of an IPC handle here. */
typedef struct { uint32_t magic; int pid, file, device; size_t offset, size; char rest[32]; } ipc_handle;
#define IPC_MAGIC 0x43504953

CUresult cuMemGetAddressRange_v2(CUdeviceptr *from, size_t *size, CUdeviceptr at) {
  ENTER("cuMemGetAddressRange", 1);
  range *r = find(allocations, allocation_count, at, 1);
  if (!r) LEAVE(INVALID_VALUE);
  if (from) *from = r->from;
  if (size) *size = r->size;
  LEAVE(OK);
}

CUresult cuPointerGetAttribute(void *out, int attribute, CUdeviceptr at) {
  ENTER("cuPointerGetAttribute", 0);
  if (attribute != 9 || !find(allocations, allocation_count, at, 1)) LEAVE(INVALID_VALUE);
  *(int *) out = device_of(at);
  LEAVE(OK);
}

CUresult cuIpcGetMemHandle(ipc_handle *out, CUdeviceptr at) {
  ENTER("cuIpcGetMemHandle", 1);
  range *r = find(allocations, allocation_count, at, 1);
  if (!r) LEAVE(INVALID_VALUE);
  int device = device_of(at);
  *out = (ipc_handle){IPC_MAGIC, getpid(), files[device], device, r->from - (uintptr_t) window[device], r->size, {0}};
  LEAVE(OK);
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *out, ipc_handle handle, unsigned int flags) {
  ENTER("cuIpcOpenMemHandle", 1);
  int device = current[depth]->device;
  if (flags != 1) misuse("cuIpcOpenMemHandle without CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS");
  if (handle.magic != IPC_MAGIC || handle.device != device) LEAVE(INVALID_VALUE);
  if (handle.pid == getpid()) LEAVE(INVALID_CONTEXT);
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", handle.pid, handle.file);
  int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) LEAVE(INVALID_VALUE);
  size_t skipped = handle.offset % 4096, mapped = (skipped + handle.size + 4095) / 4096 * 4096;
  size_t at = (used[device] + 4095) / 4096 * 4096;
  if (at + mapped + 4096 > WINDOW) { close(file); LEAVE(OUT_OF_MEMORY); }
  void *got = mmap(bytes[device] + at, mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, (off_t) (handle.offset - skipped));
  close(file);
  if (got == MAP_FAILED) LEAVE(OUT_OF_MEMORY);
  used[device] = at + mapped + 4096;
  *out = (uintptr_t) window[device] + at + skipped;
  opened++;
  LEAVE(add(allocations, &allocation_count, *out, handle.size));
}

CUresult cuIpcCloseMemHandle(CUdeviceptr at) {
  ENTER("cuIpcCloseMemHandle", 1);
  range *r = find(allocations, allocation_count, at, 1);
  if (!r || r->from != at) LEAVE(INVALID_VALUE);
  if (r->pending) misuse("shared device memory closed while %d copies may use it", r->pending);
  r->live = 0;
  opened--;
  LEAVE(OK);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, stream *s) {
  ENTER("cuMemcpyHtoDAsync", 1);
  LEAVE(queue_copy("cuMemcpyHtoDAsync", s, (op){.kind = COPY, .up = 0, .device = to, .host = (uintptr_t) from, .width = size, .rows = 1}));
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, stream *s) {
  ENTER("cuMemcpyDtoHAsync", 1);
  LEAVE(queue_copy("cuMemcpyDtoHAsync", s, (op){.kind = COPY, .up = 1, .device = from, .host = (uintptr_t) to, .width = size, .rows = 1}));
}

/* CUDA_MEMCPY2D of cuda.h */
typedef struct {
  size_t src_x, src_y;
  int src_type;
  const void *src_host;
  CUdeviceptr src_device;
  void *src_array;
  size_t src_pitch, dst_x, dst_y;
  int dst_type;
  void *dst_host;
  CUdeviceptr dst_device;
  void *dst_array;
  size_t dst_pitch, width, height;
} memcpy2d;

CUresult cuMemcpy2DAsync_v2(const memcpy2d *c, stream *s) {
  ENTER("cuMemcpy2DAsync", 1);
  int up = c->src_type == 2;
  if (c->src_pitch < c->width || c->dst_pitch < c->width || (c->src_type == 2) == (c->dst_type == 2)) {
    misuse("cuMemcpy2DAsync with a pitch below its width, or not between host and device");
    LEAVE(INVALID_VALUE);
  }
  LEAVE(queue_copy("cuMemcpy2DAsync", s, (op){.kind = COPY, .up = up, .device = up ? c->src_device : c->dst_device,
      .host = up ? (uintptr_t) c->dst_host : (uintptr_t) c->src_host, .width = c->width, .rows = c->height,
      .device_pitch = up ? c->src_pitch : c->dst_pitch, .host_pitch = up ? c->dst_pitch : c->src_pitch}));
}

/* CUmemcpyAttributes of cuda.h 12.8 */
typedef struct { int order, from_type, from_id, to_type, to_id; unsigned int flags; } batch_attributes;

static CUresult cuMemcpyBatchAsync(CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t count,
    batch_attributes *attributes, size_t *firsts, size_t kinds, size_t *failed, stream *s) {
  ENTER("cuMemcpyBatchAsync", 1);
  if (kinds != 1 || firsts[0] != 0 || attributes[0].order != 1) {
    misuse("cuMemcpyBatchAsync that is not in the order of the stream");
    LEAVE(INVALID_VALUE);
  }
  for (size_t i = 0; i < count; i++) {
    int up = device_of(to[i]) < 0;
    op o = {.kind = COPY, .up = up, .device = up ? from[i] : to[i], .host = up ? to[i] : from[i], .width = sizes[i], .rows = 1};
    int code = queue_copy("cuMemcpyBatchAsync", s, o);
    if (code) { *failed = i; LEAVE(code); }
  }
  LEAVE(OK);
}

CUresult cuGetProcAddress_v2(const char *name, void **out, int since, uint64_t flags, int *status) {
  (void) flags;
  *out = NULL;
  if (strcmp(name, "cuMemcpyBatchAsync") || since > version) {
    if (status) *status = 1;
    return 500;
  }
  *out = (void *) cuMemcpyBatchAsync;
  if (status) *status = 0;
  return OK;
}

CUresult cuStreamCreate(stream **out, unsigned int flags) {
  ENTER("cuStreamCreate", 1);
  if (flags != 1) misuse("a stream that waits for the default stream");
  stream *s = calloc(1, sizeof *s);
  s->self = s;
  pthread_create(&s->thread, NULL, work, s);
  pthread_detach(s->thread);
  streams++;
  *out = s;
  LEAVE(OK);
}

CUresult cuStreamDestroy_v2(stream *s) {
  ENTER("cuStreamDestroy", 1);
  if (s->head || s->busy) misuse("a stream destroyed with work in it");
  s->stop = 1;
  streams--;
  pthread_cond_broadcast(&changed);
  LEAVE(OK);
}

CUresult cuStreamSynchronize(stream *s) {
  ENTER("cuStreamSynchronize", 1);
  while ((s->head || s->busy) && !sticky) pthread_cond_wait(&changed, &lock);
  LEAVE(sticky);
}

CUresult cuStreamWaitEvent(stream *s, event *e, unsigned int flags) {
  (void) flags;
  ENTER("cuStreamWaitEvent", 1);
  if (!e || !e->live) {
    misuse("cuStreamWaitEvent for something that is no event");
    LEAVE(INVALID_HANDLE);
  }
  queue(s, (op){.kind = WAIT, .event = e, .ticket = e->recorded});
  LEAVE(OK);
}

CUresult cuEventCreate(event **out, unsigned int flags) {
  (void) flags;
  ENTER("cuEventCreate", 1);
  *out = calloc(1, sizeof(event));
  (*out)->live = 1;
  events++;
  LEAVE(OK);
}

/* Never freed, so that a use after this is seen. */
CUresult cuEventDestroy_v2(event *e) {
  ENTER("cuEventDestroy", 1);
  if (!e->live) misuse("an event destroyed twice");
  e->live = 0;
  events--;
  LEAVE(OK);
}

CUresult cuEventRecord(event *e, stream *s) {
  ENTER("cuEventRecord", 1);
  queue(s, (op){.kind = RECORD, .event = e, .ticket = ++e->recorded});
  LEAVE(OK);
}

CUresult cuEventQuery(event *e) {
  ENTER("cuEventQuery", 1);
  LEAVE(e->completed < e->recorded ? NOT_READY : OK);
}

CUresult cuEventSynchronize(event *e) {
  ENTER("cuEventSynchronize", 1);
  uint64_t ticket = e->recorded;
  while (e->completed < ticket && !sticky) pthread_cond_wait(&changed, &lock);
  LEAVE(sticky);
}

/* ---- for tests */

void sim_fail(const char *name, long nth, long times, int code) {
  pthread_mutex_lock(&lock);
  for (int i = 0; i < MAX_RULES; i++) {
    if (!rules[i].name[0]) {
      strncpy(rules[i].name, name, sizeof rules[i].name - 1);
      rules[i].nth = *counter(name) + nth;
      rules[i].times = times;
      rules[i].code = code;
      break;
    }
  }
  pthread_mutex_unlock(&lock);
}

/* Forgets rules, misuse and what was lost; first the streams end the work that was lost with the context. */
void sim_heal(void) {
  pthread_mutex_lock(&lock);
  while (sticky && queued) pthread_cond_wait(&changed, &lock);
  memset(rules, 0, sizeof rules);
  sticky = 0;
  misuses = 0;
  unregistered = 0;
  copies = 0;
  row_copies = 0;
  copied_bytes = 0;
  first_misuse[0] = 0;
  pthread_mutex_unlock(&lock);
}

void sim_delay(long us) { delay_us = us; }

/* While held, no copy runs. */
void sim_hold(int hold) {
  pthread_mutex_lock(&lock);
  held = hold;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

/* An event that was recorded after a computation of the engine. */
event *sim_event(void) {
  event *e = calloc(1, sizeof *e);
  e->live = 1;
  e->recorded = 1;
  return e;
}

void sim_event_comes(event *e) {
  pthread_mutex_lock(&lock);
  e->completed = e->recorded;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

/* Where the bytes of device memory are. */
void *sim_bytes(CUdeviceptr at) { return real(at); }

const char *sim_first_misuse(void) { return first_misuse; }

long sim_count(const char *what) {
  pthread_mutex_lock(&lock);
  long n = 0;
  if (!strcmp(what, "streams")) n = streams;
  else if (!strcmp(what, "events")) n = events;
  else if (!strcmp(what, "copies")) n = copies;
  else if (!strcmp(what, "opened")) n = opened;
  else if (!strcmp(what, "rows")) n = row_copies;
  else if (!strcmp(what, "bytes")) n = copied_bytes;
  else if (!strcmp(what, "unregistered")) n = unregistered;
  else if (!strcmp(what, "misuses")) n = misuses;
  else if (!strcmp(what, "registrations")) for (int i = 0; i < registration_count; i++) n += registrations[i].live;
  else if (!strcmp(what, "allocations")) for (int i = 0; i < allocation_count; i++) n += allocations[i].live;
  else if (!strcmp(what, "contexts")) for (int i = 0; i < MAX_DEVICES; i++) n += retained[i];
  else n = *counter(what);
  pthread_mutex_unlock(&lock);
  return n;
}
