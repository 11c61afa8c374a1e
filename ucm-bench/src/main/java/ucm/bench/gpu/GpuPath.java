package ucm.bench.gpu;

/**
 * A way to move the memory of a round. Calls come in rounds of {@code begin} and {@code await}, in the order
 * of {@link Direction#UP}, {@link Direction#DOWN} and {@link Direction#BOTH}. Used by one thread.
 */
interface GpuPath extends AutoCloseable {

  String name();

  /** Has copies begin; returns when all are handed over. */
  void begin(Direction direction);

  void await() throws InterruptedException;

  /** Compares every byte that came. */
  void verify(Direction direction) throws InterruptedException;

  @Override
  void close();
}
