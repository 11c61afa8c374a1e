// What this machine does with the same pieces and files: the limits beside which tools/bench/run puts the stores.
//
//   copy            memcpy between the engine's memory and a pool
//   write, read     open, pwrite or pread, close
//   write_checked   the same with the work that a store has: CRC32C of each step just before it, another name until the end
//   read_checked    the same, CRC32C of each step just after it
//   ids             access, by one thread
//
// Each by as many pinned threads as --threads says, in tasks as the stores get them, in two ways: "spin", whose threads never
// sleep, so that handing a task over costs nearly nothing, and "sleep", whose threads wait for tasks as a store's do (a look-up
// is then of another thread than the one that wants to know, all ids or one at a time). With --pause-us there is time between
// tasks, which is not counted. Commands on stdin, a line of JSON for each on stdout.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#define CRC(sum, word) _mm_crc32_u64(sum, word)
#define RELAX() _mm_pause()
#elif defined(__aarch64__)
#include <arm_acle.h>
#define CRC(sum, word) __crc32cd((uint32_t)(sum), word)
#define RELAX() __asm__ volatile("yield")
#endif

enum { MOST_THREADS = 64, MOST_ASKED = 64, STEP = 256 << 10, NAME = 4096, ROOM_PIECE = 2 << 20 };
enum kind { COPY_OUT, COPY_IN, WRITE, READ, WRITE_CHECKED, READ_CHECKED, ASK };

static long tensor, shard, block, blocks, task_blocks, in_flight, layerwise, direct, pause_us, threads;
static long shards, tensors, round_bytes, pool_bytes, pool_at;
static const char *folder;
static char *engine, *pool;
static int *files;
static atomic_ulong sink;

static void fail(const char *what) {
    fprintf(stderr, "limits: %s: %s\n", what, strerror(errno));
    exit(3);
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static void pin(long processor) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    sched_setaffinity(0, sizeof set, &set);
}

// ---- threads: a task begins when `started` grows, and has ended when all threads have added to `ended`.

static atomic_int started, ended, leave;
static pthread_t others[MOST_THREADS];
static long crew;  // The caller among them.
static int asleep;

static void wait_above(atomic_int *value, int seen) {
    for (long n = 0; atomic_load(value) == seen; n++) {
        if (asleep) {
            syscall(SYS_futex, value, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
        } else if (n < 20000) {
            RELAX();
        } else {
            sched_yield();
        }
    }
}

static void advance(atomic_int *value) {
    atomic_fetch_add(value, 1);
    if (asleep) {
        syscall(SYS_futex, value, FUTEX_WAKE_PRIVATE, MOST_THREADS, NULL, NULL, 0);
    }
}

// ---- what a thread does with its part of a task

struct task {
    enum kind kind;
    long round, first, end, shard;  // Blocks or names, the end exclusive; the shard when layer by layer.
    const char *tag;                // Of the files' names.
};
static struct task task;
static char asked[MOST_ASKED][NAME];
static int known;

static void crc(const char *bytes, long length) {
    // Three sums side by side, as the instruction has a latency of three.
    uint64_t a = ~0u, b = ~0u, c = ~0u;
    long third = length / 24;
    const uint64_t *x = (const uint64_t *)bytes, *y = x + third, *z = y + third;
    for (long i = 0; i < third; i++) {
        a = CRC(a, x[i]);
        b = CRC(b, y[i]);
        c = CRC(c, z[i]);
    }
    for (long i = 3 * third; i < length / 8; i++) {
        a = CRC(a, x[i]);
    }
    atomic_fetch_add_explicit(&sink, a ^ b ^ c, memory_order_relaxed);
}

// SplitMix64.
static uint64_t mix(uint64_t word) {
    word += 0x9e3779b97f4a7c15;
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
    word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
    return word ^ (word >> 31);
}

// A file as a store of files names one, in one of its 4,096 folders: in 16 of them, look-ups of absent names take two thirds.
static void file_name(char *out, uint64_t number, const char *ending) {
    uint64_t high = mix(number);
    snprintf(out, NAME, "%s/%03lx/%016lx%016lx%s", folder, high >> 52, high, mix(high), ending);
}

static void name(char *out, long b, const char *ending) {
    file_name(out, mix(task.round * blocks + b) + task.tag[0] * 256 + task.tag[1], ending);
}

static void copy(long b, long s) {
    for (long t = 0; t < tensors; t++) {
        char *here = engine + ((s * tensors + t) * blocks + b) * tensor;
        char *there = pool + pool_at + b * block + s * shard + t * tensor;
        if (task.kind == COPY_OUT) {
            memcpy(there, here, tensor);
        } else {
            memcpy(here, there, tensor);
        }
    }
}

static void file(long b, long first, long count) {
    char path[NAME], whole[NAME];
    int writes = task.kind == WRITE || task.kind == WRITE_CHECKED;
    int checks = task.kind == WRITE_CHECKED || task.kind == READ_CHECKED;
    const char *ending = task.kind == WRITE_CHECKED ? ".part" : "";
    if (first == 0) {
        name(path, b, ending);
        files[b] = open(path, (writes ? O_CREAT | O_EXCL | O_WRONLY : O_RDONLY) | (direct ? O_DIRECT : 0), 0600);
        if (files[b] < 0) {
            fail(path);
        }
    }
    char *memory = pool + pool_at + b * block;
    long step = checks ? STEP : count * shard;
    for (long at = first * shard, end = (first + count) * shard; at < end; at += step) {
        long length = end - at < step ? end - at : step;
        if (writes) {
            if (checks) {
                crc(memory + at, length);
            }
            if (pwrite(files[b], memory + at, length, at) != length) {
                fail("pwrite");
            }
        } else {
            if (pread(files[b], memory + at, length, at) != length) {
                fail("pread");
            }
            if (checks) {
                crc(memory + at, length);
            }
        }
    }
    if (first + count == shards) {
        close(files[b]);
        if (*ending) {
            name(path, b, ending);
            name(whole, b, "");
            if (rename(path, whole)) {
                fail("rename");
            }
        }
    }
}

static void ask(long i) {
    if ((access(asked[i], F_OK) == 0) != known) {
        fail(asked[i]);
    }
}

static void part(long me) {
    if (task.kind == ASK) {
        // By the last one: a store's caller is never inside the file system.
        for (long i = task.first; me == crew - 1 && i < task.end; i++) {
            ask(i);
        }
        return;
    }
    for (long b = task.first + me; b < task.end; b += crew) {
        if (task.kind > COPY_IN) {
            file(b, layerwise ? task.shard : 0, layerwise ? 1 : shards);
        } else if (layerwise) {
            copy(b, task.shard);
        } else {
            for (long s = 0; s < shards; s++) {
                copy(b, s);
            }
        }
    }
}

static void *worker(void *number) {
    long me = (long)number;
    pin(me);
    for (int seen = 0;; seen++) {
        wait_above(&started, seen);
        if (atomic_load(&leave)) {
            return NULL;
        }
        part(me);
        advance(&ended);
    }
}

static void gather(long count, int sleeps) {
    asleep = sleeps;
    crew = count < threads ? count : threads;
    atomic_store(&started, 0);
    atomic_store(&leave, 0);
    for (long i = 1; i < crew; i++) {
        if (pthread_create(&others[i], NULL, worker, (void *)i)) {
            fail("thread");
        }
    }
    usleep(1000);  // They are there, and wait.
}

static void work(struct task next) {
    task = next;
    atomic_store(&ended, 0);
    advance(&started);
    part(0);
    for (int seen = atomic_load(&ended); seen < crew - 1; seen = atomic_load(&ended)) {
        wait_above(&ended, seen);
    }
}

static void dismiss(void) {
    atomic_store(&leave, 1);
    advance(&started);
    for (long i = 1; i < crew; i++) {
        pthread_join(others[i], NULL);
    }
}

// Nanoseconds of a round, without the pauses between tasks.
static uint64_t timed(enum kind kind, int sleeps, long round, const char *tag) {
    gather(threads, sleeps);
    uint64_t spent = 0;
    long group = layerwise ? 1 : task_blocks * in_flight;
    long tasks = layerwise ? shards : (blocks + group - 1) / group;
    for (long i = 0; i < tasks; i++) {
        if (pause_us) {
            usleep(pause_us);
        }
        uint64_t begin = now();
        long first = layerwise ? 0 : i * group;
        long end = layerwise || first + group > blocks ? blocks : first + group;
        work((struct task){kind, round, first, end, i, tag});
        spent += now() - begin;
    }
    dismiss();
    return spent;
}

// ---- commands

static void head(const char *what, long round) {
    printf("{\"op\":\"%s\",\"r\":%ld,\"bytes\":%ld", what, round, round_bytes);
}

static void both(const char *metric, enum kind kind, long round, const char *tag) {
    // The file of one way must not be that of the other.
    char named[16];
    for (int sleeps = 0; sleeps < 2; sleeps++) {
        snprintf(named, sizeof named, "%s%d", tag, sleeps);
        uint64_t nanos = timed(kind, sleeps, round, named);
        printf(",\"%s_%s\":%.3f", metric, sleeps ? "sleep" : "spin", (double)round_bytes / nanos);
    }
}

// Memory that the host has given to the page cache, so that a write does not wait for it.
static void room(void) {
    static int fd = -1;
    static char piece[ROOM_PIECE];
    if (direct) {
        return;
    }
    if (fd < 0) {
        char path[NAME];
        snprintf(path, NAME, "%s-room", folder);
        fd = open(path, O_CREAT | O_WRONLY, 0600);
        if (fd < 0) {
            fail(path);
        }
    }
    for (long at = 0; at < 2 * round_bytes + blocks * 16384; at += ROOM_PIECE) {
        if (pwrite(fd, piece, ROOM_PIECE, at) < 0) {
            fail("room");
        }
    }
    if (ftruncate(fd, 0)) {
        fail("room");
    }
}

static void move(const char *what, long round) {
    int out = !strcmp(what, "dump");
    pool_at = (round * round_bytes) % pool_bytes;
    if (pool_at + round_bytes > pool_bytes) {
        pool_at = 0;
    }
    head(what, round);
    both("copy", out ? COPY_OUT : COPY_IN, round, "");
    if (out) {
        room();
    }
    both(out ? "write" : "read", out ? WRITE : READ, round, "p");
    if (out) {
        room();
    }
    both(out ? "write_checked" : "read_checked", out ? WRITE_CHECKED : READ_CHECKED, round, "c");
    puts("}");
}

// access(2) by the caller, or, asleep, by a thread that it asks for `each` ids and waits for: ids a second.
static double rate(long round, int are_known, int sleeps, long each) {
    static long absent;
    uint64_t spent = 0;
    long count = 0;
    known = are_known;
    gather(sleeps ? 2 : 1, sleeps);
    do {
        for (int i = 0; i < MOST_ASKED; i++) {
            if (known) {
                task = (struct task){ASK, round, 0, 0, 0, "p0"};
                name(asked[i], (count + i) % blocks, "");
            } else {
                file_name(asked[i], absent++, "");
            }
        }
        uint64_t begin = now();
        for (long i = 0; i < MOST_ASKED; i += each) {
            work((struct task){ASK, round, i, i + each < MOST_ASKED ? i + each : MOST_ASKED, 0, ""});
        }
        spent += now() - begin;
        count += MOST_ASKED;
    } while (spent < 20 * 1000000);
    dismiss();
    return count * 1e9 / spent;
}

// Of as many ids at once as a look-up of the stores has.
static void look_up(const char *what, long round) {
    long ids = blocks < MOST_ASKED ? blocks : MOST_ASKED;
    head(what, round);
    printf(",\"known_ids_s\":%.0f", rate(round, 1, 0, ids));
    printf(",\"unknown_ids_s\":%.0f", rate(round, 0, 0, ids));
    printf(",\"unknown_ids_s_asleep\":%.0f", rate(round, 0, 1, ids));
    printf(",\"unknown_calls_s_asleep\":%.0f}\n", rate(round, 0, 1, 1));
}

static const char *text(int count, char **words, const char *key, const char *otherwise) {
    size_t length = strlen(key);
    for (int i = 1; i < count; i++) {
        if (!strncmp(words[i], "--", 2) && !strncmp(words[i] + 2, key, length) && words[i][2 + length] == '=') {
            return words[i] + 3 + length;
        }
    }
    return otherwise;
}

static long number(int count, char **words, const char *key, long otherwise) {
    const char *found = text(count, words, key, NULL);
    return found ? atol(found) : otherwise;
}

// The engine's memory is on ordinary pages, as that of driver/ and of engines; a pool is on huge ones.
static char *touched(long length, int huge) {
    char *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        fail("mmap");
    }
    madvise(memory, length, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    memset(memory, 1, length);
    return memory;
}

int main(int count, char **words) {
    folder = text(count, words, "dir", NULL);
    if (!folder) {
        fprintf(stderr, "limits: is started by tools/bench/run\n");
        return 2;
    }
    block = number(count, words, "block", 1 << 20);
    shard = number(count, words, "shard", block);
    tensor = number(count, words, "tensor", shard);
    blocks = number(count, words, "blocks", 64);
    task_blocks = number(count, words, "task-blocks", 16);
    in_flight = number(count, words, "in-flight", 1);
    layerwise = number(count, words, "layerwise", 0);
    direct = number(count, words, "direct", 0);
    pause_us = number(count, words, "pause-us", 0);
    threads = number(count, words, "threads", sysconf(_SC_NPROCESSORS_ONLN));
    if (threads > MOST_THREADS) {
        threads = MOST_THREADS;
    }
    shards = block / shard;
    tensors = shard / tensor;
    round_bytes = blocks * block;
    pool_bytes = 2 * round_bytes > 512l << 20 ? 2 * round_bytes : 512l << 20;
    engine = touched(round_bytes, 0);
    pool = touched(pool_bytes, 1);
    files = calloc(blocks, sizeof *files);
    setvbuf(stdout, NULL, _IOLBF, 0);
    pin(0);
    head("ready", 0);
    puts("}");
    char line[200], what[40];
    long round;
    while (fgets(line, sizeof line, stdin)) {
        round = 0;
        if (sscanf(line, "%39s %ld", what, &round) < 1) {
            continue;
        }
        if (!strcmp(what, "dump") || !strcmp(what, "load")) {
            move(what, round);
        } else if (!strcmp(what, "lookup")) {
            look_up(what, round);
        } else if (!strcmp(what, "quit")) {
            head(what, 0);
            puts("}");
            return 0;
        } else {
            fail(line);
        }
    }
    return 0;
}
