package ucm.store.file.health;

import java.util.BitSet;
import java.util.function.IntConsumer;

/** Work on several directories, each by itself, so that one that does not answer holds up no other. */
public interface FolderExecutor {

  /** All directories. */
  BitSet all();

  /**
   * Does something on directories.
   *
   * @param which the directories; those that cannot be used now are left out
   * @param action is given the number of a directory; several run at once
   * @return where it was done
   */
  BitSet forEach(BitSet which, IntConsumer action);

  /** Work on a directory goes on: an answer has come. Thread-safe. */
  void step(int directory);

  /** For a caller that can wait: one directory after the other, and what fails is thrown. */
  static FolderExecutor direct(int directories) {
    BitSet all = new BitSet();
    all.set(0, directories);
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
      public void step(int directory) {}
    };
  }
}
