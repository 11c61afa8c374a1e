package ucm.platform.thread;

import com.sun.jna.Native;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import ucm.api.CommonKeys;
import ucm.api.StoreException;
import ucm.platform.libc.Errno;
import ucm.platform.libc.Libc;

/**
 * The cores that the worker threads of a stage run on; none named leaves it to the kernel.
 *
 * @param cores numbers from 0
 */
public record CpuAffinity(List<Long> cores) {

  /**
   * Checks, on a thread of its own, that the kernel accepts the cores.
   *
   * @param cores numbers from 0; empty for any
   * @throws StoreException when the kernel does not let threads run there
   */
  public static CpuAffinity of(List<Long> cores) {
    CpuAffinity affinity = new CpuAffinity(cores);
    FutureTask<Void> trial = new FutureTask<>(affinity::applyToThisThread, null);
    Thread thread = Thread.ofPlatform().name("ucm-affinity-check-0").start(trial);
    var _ = ThreadEnd.await(thread, Duration.ofDays(1));
    if (trial.state() == Future.State.FAILED) {
      throw trial.exceptionNow() instanceof StoreException refused
          ? refused
          : new StoreException("threads cannot run on " + affinity, trial.exceptionNow());
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
    BitSet bits = new BitSet();
    cores.forEach(core -> bits.set(Math.toIntExact(core)));
    long[] words = bits.toLongArray();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment mask = arena.allocate((long) words.length * Long.BYTES, Long.BYTES);
      mask.copyFrom(MemorySegment.ofArray(words));
      if (Libc.setAffinity(mask) != 0) {
        int errno = Native.getLastError();
        throw new StoreException(
            String.format(
                "threads cannot run on %s (%s); this machine has %s cores for this "
                    + "process: change or leave out %s",
                this,
                Errno.name(errno),
                Runtime.getRuntime().availableProcessors(),
                CommonKeys.CPU_AFFINITY_CORES.name()));
      }
    }
  }

  @Override
  public String toString() {
    return CommonKeys.CPU_AFFINITY_CORES.name() + " " + cores;
  }
}
