package ucm.store.cache.shared;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/**
 * The words of a shared segment. All of a segment is written by several processes, so each access says
 * how it is ordered: {@code get} and {@code set} are volatile, {@code plain} is for words whose order
 * something else gives.
 */
class SegmentWords {

  private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();
  private static final VarHandle INT = ValueLayout.JAVA_INT.varHandle();

  private final MemorySegment memory;

  SegmentWords(MemorySegment memory) {
    this.memory = memory;
  }

  MemorySegment memory() {
    return memory;
  }

  long get(long at) {
    return (long) LONG.getVolatile(memory, at);
  }

  long plain(long at) {
    return (long) LONG.getOpaque(memory, at);
  }

  void set(long at, long value) {
    LONG.setVolatile(memory, at, value);
  }

  void setPlain(long at, long value) {
    LONG.setOpaque(memory, at, value);
  }

  boolean swap(long at, long expected, long value) {
    return LONG.compareAndSet(memory, at, expected, value);
  }

  void setBits(long at, long bits) {
    long _ = (long) LONG.getAndBitwiseOr(memory, at, bits);
  }

  void clearBits(long at, long bits) {
    long _ = (long) LONG.getAndBitwiseAnd(memory, at, ~bits);
  }

  int getInt(long at) {
    return (int) INT.getVolatile(memory, at);
  }

  int plainInt(long at) {
    return (int) INT.getOpaque(memory, at);
  }

  void setInt(long at, int value) {
    INT.setVolatile(memory, at, value);
  }

  void setPlainInt(long at, int value) {
    INT.setOpaque(memory, at, value);
  }

  boolean swapInt(long at, int expected, int value) {
    return INT.compareAndSet(memory, at, expected, value);
  }

  int exchangeInt(long at, int value) {
    return (int) INT.getAndSet(memory, at, value);
  }

  void incrementInt(long at) {
    int _ = (int) INT.getAndAdd(memory, at, 1);
  }
}
