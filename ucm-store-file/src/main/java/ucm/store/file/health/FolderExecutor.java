package ucm.store.file.health;

import java.util.BitSet;
import java.util.function.IntConsumer;

/** Work on several backends, each by itself, so that one that does not answer holds up no other. */
public interface FolderExecutor {

  /** All backends. */
  BitSet all();

  /**
   * Does something on backends.
   *
   * @param which the backends; those that cannot be used now are left out
   * @param action is given the number of a backend; several run at once
   * @return where it was done
   */
  BitSet forEach(BitSet which, IntConsumer action);

  /** Work on a backend goes on: an answer has come. Thread-safe. */
  void step(int backend);

  /** Lanes of somebody who can wait: one backend after the other, and what fails is thrown. */
  static FolderExecutor direct(int backends) {
    BitSet all = new BitSet();
    all.set(0, backends);
    return new FolderExecutor() {
      @Override
      public BitSet all() {
        return (BitSet) all.clone();
      }

      @Override
      public BitSet forEach(BitSet which, IntConsumer action) {
        which.stream().forEach(action);
        return (BitSet) which.clone();
      }

      @Override
      public void step(int backend) {}
    };
  }
}
