package ucm.api.admin;

/**
 * An ability that a stage may have which keeps blocks where {@link DirectoryStore} does not list them, as in
 * memory: it can forget all of them.
 *
 * <p>A class that implements {@code Store} and can do this implements this interface as well.
 */
public interface Clearable {

  /**
   * Forgets all blocks of this stage; lower ones are left to the caller. A look-up that begins afterwards finds
   * none of them. A transfer that is under way ends as it would have, and a dump may still bring its block.
   *
   * @throws ucm.api.StoreClosedException when the store is closed
   */
  void clear();
}
