package ucm.store.file.block;

/** Moves shards one way: from files or into them. */
@FunctionalInterface
public interface BlockMover {

  /**
   * Moves shards of one block that follow one another in a transfer, and ends each of them. For those
   * not ended when it throws, the caller does it.
   *
   * @param from first shard, inclusive
   * @param to last shard, exclusive
   * @throws RuntimeException when the file system fails
   */
  void move(FileTask task, int from, int to);
}
