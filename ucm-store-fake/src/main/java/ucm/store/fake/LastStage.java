package ucm.store.fake;

import java.util.Optional;
import org.jspecify.annotations.Nullable;
import ucm.api.Store;
import ucm.api.StoreContext;
import ucm.api.StoreException;

/** Refuses a next stage where the store would never ask it. */
final class LastStage {

  private LastStage() {}

  /** Why a stage cannot follow the store of this name; empty for none. */
  static Optional<String> refusal(String name, @Nullable Store next) {
    return next == null
        ? Optional.empty()
        : Optional.of(name + " is a last stage and takes no next stage; found " + next.name());
  }

  /**
   * Checks that there is no next stage.
   *
   * @throws StoreException when there is one, naming it
   */
  static void require(String name, StoreContext context) {
    Optional<String> refusal = refusal(name, context.next());
    if (refusal.isPresent()) {
      throw new StoreException(refusal.get());
    }
  }
}
