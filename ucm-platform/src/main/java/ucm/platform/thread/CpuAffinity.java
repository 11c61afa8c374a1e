package ucm.platform.thread;

import com.sun.jna.Native;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import ucm.api.CommonKeys;
import ucm.api.StoreException;
import ucm.platform.libc.Errno;
import ucm.platform.libc.Libc;

/** The cores that the worker threads of a stage run on; none named leaves it to the kernel. */
public final class CpuAffinity {

  /** Leaves it to the kernel. */
  public static final CpuAffinity ANY = new CpuAffinity(List.of());

  private final List<Long> cores;

  private CpuAffinity(List<Long> cores) {
    this.cores = cores;
  }

  /**
   * Checks, on a thread of its own, that the kernel accepts the cores.
   *
   * @param cores numbers from 0; empty for any
   * @throws StoreException when the kernel does not let threads run there
   */
  public static CpuAffinity of(List<Long> cores) {
    if (cores.isEmpty()) {
      return ANY;
    }
    CpuAffinity affinity = new CpuAffinity(cores);
    AtomicReference<@Nullable RuntimeException> fault = new AtomicReference<>();
    Thread trial =
        Thread.ofPlatform().name("ucm-affinity-check-0").unstarted(affinity::applyToThisThread);
    trial.setUncaughtExceptionHandler(
        (thread, e) -> fault.set(e instanceof RuntimeException r ? r : new StoreException("", e)));
    trial.start();
    try {
      trial.join();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new StoreException("interrupted while checking " + affinity, e);
    }
    RuntimeException refused = fault.get();
    if (refused != null) {
      throw refused;
    }
    return affinity;
  }

  /** How many cores threads that are moved there have. */
  int processors() {
    int all = Runtime.getRuntime().availableProcessors();
    return cores.isEmpty() ? all : Math.min(all, cores.size());
  }

  /**
   * Moves the calling thread to these cores for good.
   *
   * @throws StoreException when the kernel refuses
   */
  public void applyToThisThread() {
    if (cores.isEmpty()) {
      return;
    }
    long highest = cores.stream().mapToLong(Long::longValue).max().orElse(0);
    int words = (int) (highest / Long.SIZE) + 1;
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment mask = arena.allocate(ValueLayout.JAVA_LONG, words);
      for (long core : cores) {
        long word = core / Long.SIZE;
        long bits = mask.getAtIndex(ValueLayout.JAVA_LONG, word) | 1L << core;
        mask.setAtIndex(ValueLayout.JAVA_LONG, word, bits);
      }
      if (Libc.setAffinity(mask) != 0) {
        int errno = Native.getLastError();
        throw new StoreException(
            "threads cannot run on "
                + this
                + " ("
                + Errno.name(errno)
                + "); this machine has "
                + Runtime.getRuntime().availableProcessors()
                + " cores for this process: change or leave out "
                + CommonKeys.CPU_AFFINITY_CORES.name());
      }
    }
  }

  @Override
  public String toString() {
    return CommonKeys.CPU_AFFINITY_CORES.name() + " " + cores;
  }
}
