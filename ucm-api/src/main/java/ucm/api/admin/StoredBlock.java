package ucm.api.admin;

import java.time.Instant;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;

/**
 * A block that lies in a directory, as {@link StoreDirectories#list} finds it. Its bytes have not been
 * read.
 *
 * @param idHigh the first eight bytes of its id, big-endian
 * @param idLow the last eight
 * @param directory the directory it lies in, as it was given
 * @param byteSize its payload in bytes, as far as known; else the size of its file
 * @param usedBytes what its file takes on the volume
 * @param layout its layout; null when it does not tell
 * @param lastUse when it was last used
 * @param fault what its own description says is wrong with it; null when nothing is
 */
public record StoredBlock(
    long idHigh,
    long idLow,
    String directory,
    long byteSize,
    long usedBytes,
    @Nullable StoredLayout layout,
    Instant lastUse,
    @Nullable String fault) {

  /** Its id as 32 hexadecimal digits. */
  public String id() {
    return BlockIds.hex(idHigh, idLow);
  }

  /** Whether it carries checksums by which its bytes can be verified. */
  public boolean isVerifiable() {
    return layout != null;
  }
}
