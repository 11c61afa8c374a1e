package ucm.platform.memory;

import com.sun.jna.Native;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.platform.libc.Errno;

/** Puts memory on the NUMA node where it is used, by the system call {@code mbind}. */
public final class NumaMemory {

  private static final Logger LOG = LoggerFactory.getLogger(NumaMemory.class);

  private static final boolean IS_ARM = "aarch64".equals(System.getProperty("os.arch"));
  private static final long MBIND = IS_ARM ? 235 : 237;
  private static final long PREFERRED = 1;
  private static final long MOVE = 2;
  private static final int MAX_NODES = 1024;

  static {
    Native.register(NumaMemory.class, "c");
  }

  private NumaMemory() {}

  private static native long syscall(
      long number, long start, long length, long mode, long nodes, long maxNode, long flags);

  /**
   * Has the kernel take a node for pages of the memory that are touched from now on, as long as the node has
   * room, and move those there that this process has touched already. A kernel that refuses leaves the memory
   * where it is, and the log says why.
   *
   * @param memory starts on a page
   * @param node its number; less than 0 does nothing
   * @return whether the kernel did it
   */
  public static boolean prefer(MemorySegment memory, int node) {
    if (node < 0 || node >= MAX_NODES || memory.byteSize() == 0) {
      return false;
    }
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment nodes = arena.allocate(MAX_NODES / Byte.SIZE, Long.BYTES);
      nodes.setAtIndex(ValueLayout.JAVA_LONG, node / Long.SIZE, 1L << node % Long.SIZE);
      long result =
          syscall(
              MBIND,
              memory.address(),
              memory.byteSize(),
              PREFERRED,
              nodes.address(),
              MAX_NODES + 1,
              MOVE);
      if (result != 0) {
        LOG.warn(
            "{} bytes stay where they are: mbind to NUMA node {} failed with {}",
            memory.byteSize(),
            node,
            Errno.name(Native.getLastError()));
      }
      return result == 0;
    }
  }
}
