package ucm.testkit.fault;

import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.AfterAll;
import ucm.api.Store;
import ucm.testkit.StoreContract;
import ucm.testkit.fault.Fault.Call;

/** A store whose tasks run late, on other threads, and end their shards in any order. */
final class FaultyStoreContractTest extends StoreContract {

  private static final ExecutorService THREADS = Executors.newFixedThreadPool(3);
  private static final long SEED = 7;

  private final MemoryStore.Volume volume = new MemoryStore.Volume();

  @AfterAll
  static void stopsTheThreads() {
    THREADS.close();
  }

  @Override
  protected Store newStore() {
    return new FaultyStore(new MemoryStore(volume), SEED)
        .rate(Call.LOAD, Fault.REORDER, 0.5)
        .rate(Call.DUMP, Fault.REORDER, 0.5)
        .rate(Call.LOAD, Fault.DELAY, 0.5)
        .rate(Call.DUMP, Fault.DELAY, 0.5)
        .delayedBy(THREADS);
  }

  @Override
  protected boolean isService() {
    return false;
  }
}
