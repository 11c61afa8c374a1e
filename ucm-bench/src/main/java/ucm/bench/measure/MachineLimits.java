package ucm.bench.measure;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockLayout;
import ucm.cli.output.UsageException;
import ucm.cli.runtime.Cleanup;
import ucm.lite.trace.FileFault;

/**
 * What the machine does by itself with the same bytes, in the same steps as the tasks of a store: plain
 * copies between the memory of an engine and that of a pool, and plain calls on a file a block, of {@link
 * FileChannel} and with memory outside the heap.
 *
 * <p>Memory is touched beforehand, room for files is set aside, and the threads are awake and stay so: they
 * compute for some milliseconds before the clock starts, so that each has a processor of its own, and
 * wait for one another between steps without sleeping. A limit that includes wake-ups is too low.
 *
 * <p>Files of each round are new, and their names stay until the whole folder is removed, because file
 * systems slow down when names come and go. Nothing is synced to the disk. Used by one thread; {@link
 * #close} may come from another and ends what is measured.
 */
public final class MachineLimits implements AutoCloseable {

  public enum Kind {
    COPY_OUT("memcpy"),
    COPY_IN("memcpy"),
    WRITE("create+pwrite+close"),
    READ("open+pread+close"),
    /** Reading what is checked as a store checks it. */
    CHECKED_READ("open+pread+CRC32C+close");

    private final String text;

    Kind(String text) {
      this.text = text;
    }

    public String text() {
      return text;
    }
  }

  private static final int PAGE = 4096;
  private static final int FOLDERS = 64;
  private static final long AWAKE_NANOS = 5_000_000;
  private static final int SPINS = 20_000;
  private static final long SHORT_NANOS = 20_000;
  // Stays in a second-level cache of 1 MiB together with the pages it comes from.
  private static final int CHECKED_PART = 256 << 10;
  private static final int ROOM_PIECE = 2 << 20;
  private static final long CLOSE_SECONDS = 30;

  private final BenchPlan plan;
  private final BlockLayout layout;
  private final Path root;
  private final int fileSize;
  private final long stride;
  private final Set<OpenOption> toWrite;
  private final Set<OpenOption> toRead;
  private final Arena arena = Arena.ofShared();
  private final MemorySegment engine;
  private final MemorySegment pool;
  private final ByteBuffer[] buffers;
  private final Path[] files;
  private final @Nullable FileChannel[] open;
  private final ExecutorService threads;
  private final AtomicInteger arrived = new AtomicInteger();
  private volatile int meeting;
  private volatile boolean stopped;
  private volatile @Nullable IOException failure;
  private long absent;

  /** Takes memory and makes folders; where files pass by the page cache, they are whole pages. */
  public MachineLimits(BenchPlan plan) {
    this.plan = plan;
    this.layout = plan.layout();
    this.root = plan.folder();
    this.stride = Math.ceilDiv(layout.blockSize(), PAGE) * PAGE;
    this.fileSize = Math.toIntExact(plan.direct() ? stride : layout.blockSize());
    Set<OpenOption> more = plan.direct() ? Set.of(directOption()) : Set.of();
    this.toWrite = with(more, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
    this.toRead = with(more, StandardOpenOption.READ);
    this.files = new Path[plan.blocks()];
    this.open = new FileChannel[plan.blocks()];
    this.engine = arena.allocate(plan.roundBytes(), PAGE).fill((byte) 1);
    this.pool = arena.allocate(plan.blocks() * stride, PAGE).fill((byte) 2);
    this.buffers = new ByteBuffer[plan.blocks()];
    Arrays.setAll(buffers, i -> pool.asSlice(i * stride, fileSize).asByteBuffer());
    ThreadFactory names = Thread.ofPlatform().name("ucm-bench-limit-", 0).daemon().factory();
    this.threads = Executors.newFixedThreadPool(plan.threads(), names);
    try {
      for (int i = 0; i < FOLDERS; i++) {
        Files.createDirectories(root.resolve(Integer.toString(i)));
      }
    } catch (IOException e) {
      throw new UncheckedIOException("cannot make folders in " + root + ": " + FileFault.of(e), e);
    }
  }

  private static Set<OpenOption> with(Set<OpenOption> more, OpenOption... options) {
    return Stream.concat(more.stream(), Stream.of(options)).collect(Collectors.toSet());
  }

  /** By its name, because javac refuses a class of jdk.unsupported under -Werror. */
  private static OpenOption directOption() {
    try {
      Class<?> options = Class.forName("com.sun.nio.file.ExtendedOpenOption");
      return (OpenOption) options.getField("DIRECT").get(null);
    } catch (ReflectiveOperationException e) {
      throw new UsageException("this Java cannot pass by the page cache: " + e.getMessage());
    }
  }

  /** Names the files of the next round, which do not exist yet. */
  public void round(int round) {
    Arrays.setAll(files, i -> root.resolve(i % FOLDERS + "/" + round + "-" + i));
  }

  /** Moves the bytes of a round once; gigabytes per second. */
  public double gigabytesPerSecond(Kind kind) throws InterruptedException {
    if (kind == Kind.WRITE && !plan.direct()) {
      setRoomAside();
    }
    arrived.set(0);
    List<Callable<Long>> parts =
        IntStream.range(0, plan.threads())
            .<Callable<Long>>mapToObj(i -> () -> part(kind, i))
            .toList();
    long nanos = 0;
    for (Future<Long> part : threads.invokeAll(parts)) {
      try {
        nanos = Math.max(nanos, part.get());
      } catch (ExecutionException e) {
        IOException io = failure;
        throw io == null
            ? new IllegalStateException("a thread of the benchmark failed", e.getCause())
            : new UncheckedIOException("the plain file calls failed: " + io, io);
      }
    }
    return (double) plan.roundBytes() / nanos;
  }

  /** The kernel shall write to memory that was just used: guests may have to ask their host for other. */
  private void setRoomAside() {
    ByteBuffer piece = pool.asSlice(0, Math.min(ROOM_PIECE, pool.byteSize())).asByteBuffer();
    try (FileChannel room =
        FileChannel.open(
            root.resolve("room"), StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
      for (long at = 0; at < pool.byteSize(); at += piece.capacity()) {
        write(room, piece.clear(), at);
      }
      room.truncate(0);
    } catch (IOException e) {
      throw new UncheckedIOException("the plain file calls failed: " + e, e);
    }
  }

  private long part(Kind kind, int thread) throws IOException {
    boolean ended = false;
    try {
      long awake = System.nanoTime() + AWAKE_NANOS;
      while (System.nanoTime() < awake) {
        Thread.onSpinWait();
      }
      meet();
      long start = System.nanoTime();
      List<BenchPlan.Step> steps = plan.steps();
      for (int i = 0; i < steps.size(); i++) {
        BenchPlan.Step step = steps.get(i);
        for (int block = step.from() + thread; block < step.to(); block += plan.threads()) {
          move(kind, block, step);
        }
        if ((i + 1) % plan.inFlight() == 0) {
          meet();
        }
      }
      meet();
      ended = true;
      return System.nanoTime() - start;
    } catch (IOException e) {
      failure = e;
      throw e;
    } finally {
      // The others shall not wait for one that has failed.
      if (!ended) {
        stopped = true;
      }
    }
  }

  private void meet() {
    int now = meeting;
    if (arrived.incrementAndGet() == plan.threads()) {
      arrived.set(0);
      meeting = now + 1;
      return;
    }
    for (long spins = 0; meeting == now; spins++) {
      if (stopped) {
        throw new CancellationException("the benchmark was stopped");
      }
      if (spins < SPINS) {
        Thread.onSpinWait();
      } else {
        // With more threads than processors the others need one.
        LockSupport.parkNanos(SHORT_NANOS);
      }
    }
  }

  private void move(Kind kind, int block, BenchPlan.Step step) throws IOException {
    if (kind == Kind.COPY_OUT || kind == Kind.COPY_IN) {
      for (int shard = step.firstShard(); shard < step.endShard(); shard++) {
        copy(block, shard, kind == Kind.COPY_OUT);
      }
      return;
    }
    boolean isLast = step.endShard() == layout.shardCount();
    int offset = Math.toIntExact(step.firstShard() * layout.shardSize());
    int end = isLast ? fileSize : Math.toIntExact(step.endShard() * layout.shardSize());
    FileChannel file = open[block];
    if (file == null || offset == 0) {
      file = FileChannel.open(files[block], kind == Kind.WRITE ? toWrite : toRead);
      open[block] = file;
    }
    ByteBuffer buffer = buffers[block].clear().limit(end).position(offset);
    switch (kind) {
      case WRITE -> write(file, buffer, offset);
      case READ -> read(file, buffer, files[block]);
      default -> readChecked(file, buffer, files[block]);
    }
    if (isLast) {
      file.close();
    }
  }

  /** Copies the tensors of a shard, which lie apart in an engine and together in a pool. */
  private void copy(int block, int shard, boolean out) {
    long inBlock = shard * layout.shardSize();
    for (int tensor = 0; tensor < layout.tensorCount(); tensor++) {
      long size = layout.tensorSize(tensor);
      long offset = inBlock + layout.tensorOffset(tensor);
      long apart = plan.blocks() * offset + block * size;
      long together = block * stride + offset;
      if (out) {
        MemorySegment.copy(engine, apart, pool, together, size);
      } else {
        MemorySegment.copy(pool, together, engine, apart, size);
      }
    }
  }

  private static void write(FileChannel file, ByteBuffer buffer, long at) throws IOException {
    for (long to = at; buffer.hasRemaining(); ) {
      to += file.write(buffer, to);
    }
  }

  private static void read(FileChannel file, ByteBuffer buffer, Path path) throws IOException {
    while (buffer.hasRemaining()) {
      if (file.read(buffer, buffer.position()) < 0) {
        throw new IOException(path + " is shorter than it was written");
      }
    }
  }

  private static void readChecked(FileChannel file, ByteBuffer buffer, Path path)
      throws IOException {
    CRC32C crc = new CRC32C();
    int end = buffer.limit();
    for (int from = buffer.position(); from < end; from = buffer.limit()) {
      buffer.limit(Math.min(end, from + CHECKED_PART));
      read(file, buffer, path);
      crc.update(buffer.position(from));
    }
  }

  /** Asks some times, on this thread, whether files of the round exist; answers per second. */
  public double access(int times, boolean existing) {
    Path[] asked = new Path[times];
    // Each absent name once, like unknown ids: the kernel remembers names that are absent.
    Arrays.setAll(
        asked,
        i ->
            existing
                ? files[i % files.length]
                : files[i % files.length].resolveSibling("absent-" + absent++));
    int found = 0;
    long start = System.nanoTime();
    for (Path path : asked) {
      found += Files.exists(path) ? 1 : 0;
    }
    long nanos = System.nanoTime() - start;
    if (found != (existing ? times : 0)) {
      throw new IllegalStateException(
          "of " + times + " files in " + root + " " + found + " were found");
    }
    return times * 1e9 / nanos;
  }

  /** Ends what is measured, and closes also what that left open. */
  @Override
  public void close() throws IOException {
    stopped = true;
    Cleanup.end(threads, CLOSE_SECONDS, "plain file calls still run");
    for (FileChannel file : open) {
      if (file != null) {
        file.close();
      }
    }
    arena.close();
  }
}
