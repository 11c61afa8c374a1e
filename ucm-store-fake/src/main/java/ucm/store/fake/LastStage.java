package ucm.store.fake;

import ucm.api.Store;
import ucm.api.StoreContext;
import ucm.api.StoreException;

/** Refuses a stage behind one that would never ask it. */
final class LastStage {

  private LastStage() {}

  /**
   * Checks that no stage is behind.
   *
   * @throws StoreException when there is one, naming it
   */
  static void require(String name, StoreContext context) {
    Store behind = context.backend();
    if (behind != null) {
      throw new StoreException(
          name + " is a last stage and takes no stage behind it; found " + behind.name());
    }
  }
}
