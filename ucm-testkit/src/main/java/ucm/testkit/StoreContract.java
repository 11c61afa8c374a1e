package ucm.testkit;

/**
 * What {@link ucm.api.Store} promises, as tests. The test of a store extends this class and says how
 * to make the store; the tests are inherited.
 *
 * <pre>{@code
 * final class PosixContractTest extends StoreContract {
 *   @Override
 *   protected Store newStore() {
 *     return new PosixStore();
 *   }
 *
 *   @Override
 *   protected Map<String, Object> settings(BlockLayout layout, Path directory) {
 *     return Map.of("storage_backends", directory.toString());
 *   }
 * }
 * }</pre>
 *
 * <p>Everything is promised unless a switch ({@link #keepsBytes}, {@link #survivesRestart}, ...) says
 * that it does not hold for this store; the tests it concerns are then skipped and say which switch
 * it was. A stage above another gives {@link #newNextStage} too, which the suite opens first and
 * closes last.
 *
 * <p>Bytes are those of {@link BlockBytes}; memory is {@link TransferMemory}. Each test ends with all
 * stores closed, no thread left whose name begins with {@code ucm-}, and no file of the test's folder
 * open or mapped ({@link LeakCheck}); so tests of stores must not
 * run at the same time in one process.
 *
 * <p>Each step of a test has four times {@link #patience} on a thread of its own. One that takes longer, such
 * as a close that deadlocks, fails under its name with all threads dumped to standard error, and the suite
 * goes on with the next.
 *
 * <p>What a killed process leaves is the question of {@link KillContract}. What the suite cannot
 * prove: what a power loss or a full disk leaves (a test of the store itself), how full queues answer (the store decides when one is full), that deadlines
 * are kept when a volume hangs, and that nothing is wrong in an interleaving of threads that did not
 * happen.
 */
public abstract class StoreContract extends DurabilityContract {

  /** For subclasses. */
  protected StoreContract() {}
}
