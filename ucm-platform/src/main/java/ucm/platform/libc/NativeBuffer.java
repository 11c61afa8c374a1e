package ucm.platform.libc;

import com.sun.jna.Pointer;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Memory off the heap for the arguments of system calls. JNA holds on to this object, and so to the memory,
 * during a call that is given it.
 */
final class NativeBuffer extends Pointer {

  final MemorySegment bytes;

  NativeBuffer(long byteSize) {
    this(Arena.ofAuto().allocate(byteSize, Long.BYTES));
  }

  private NativeBuffer(MemorySegment bytes) {
    super(bytes.address());
    this.bytes = bytes;
  }
}
