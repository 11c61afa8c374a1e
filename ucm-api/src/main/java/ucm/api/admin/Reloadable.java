package ucm.api.admin;

import ucm.api.config.StoreConfig;

/**
 * An ability that a stage may have: some of its values can change while it is open. Those keys are declared
 * with {@link ucm.api.config.ConfigKey#live}; others keep the value that they had when it was opened.
 *
 * <p>A class that implements {@code Store} and can do this implements this interface as well.
 */
public interface Reloadable {

  /**
   * Takes the values of the live keys. A value that cannot be taken is recorded ({@link
   * StoreConfig#reject}) and stays as it is; the others are taken all the same. Calls of the store may be
   * under way; does not wait for them.
   *
   * @param config all values of the store, as for {@code Store.configure}
   * @throws ucm.api.StoreClosedException when the store is closed
   */
  void reload(StoreConfig config);
}
