package ucm.api.admin;

import java.util.Map;
import java.util.Optional;
import ucm.api.config.StoreConfig;

/**
 * An ability that a storage stage may have: its blocks lie at an address such as {@code
 * s3://bucket/prefix}, where people can look into them, check and clear them, also while engines use them.
 *
 * <p>A class that implements {@code Store} and can do this implements this interface as well. As with
 * {@link DirectoryStore}, it does not belong to the life of a store. All methods may be called in any state,
 * and ask no server.
 */
public interface AddressedStore {

  /** What its addresses begin with, before {@code ://}; lower case. */
  String scheme();

  /**
   * Which keys of its configuration an address stands for, and their values.
   *
   * @param address with the scheme
   * @throws IllegalArgumentException when it is none; the message says what one looks like
   */
  Map<String, String> keysOf(String address);

  /**
   * Names the blocks, and what is configured about them.
   *
   * @param config the store's keys; those that only engines know, the layout of blocks above all, lack.
   *     Faults are recorded in it
   * @return nothing when there was a fault
   */
  Optional<StoreDirectories> blocks(StoreConfig config);
}
