package ucm.api.admin;

import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/**
 * Blocks as wholes, for copies from one place into another: see {@link StoreDirectories#wholeBlocks}. All
 * methods block, and are thread-safe. They throw {@link ucm.api.StoreException} when the place cannot be
 * read or written, with its name and what to do.
 */
public interface WholeBlocks extends AutoCloseable {

  /**
   * What became of reading a block; both are null when it is gone.
   *
   * @param bytes the whole file or object, from 0 to the limit: the block, and the footer behind it; compared
   *     with its checksums
   * @param fault why there are no bytes, though there is a file or object
   */
  record WholeBlock(@Nullable ByteBuffer bytes, @Nullable String fault) {}

  /** Whether a block of this id and size is here, whole as far as that is known without reading its bytes. */
  boolean holds(StoredBlock block);

  /** Reads a block that {@link StoreDirectories#list} has shown. It does not count as use. */
  WholeBlock read(StoredBlock block);

  /**
   * Stores a block; another file of its id is replaced. It shows whole or not at all, and is durable.
   *
   * @param bytes as {@link #read} of any store gives them
   */
  void write(StoredBlock block, ByteBuffer bytes);

  /** Gives back what was opened. */
  @Override
  void close();
}
