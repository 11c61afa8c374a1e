package ucm.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.BlockLayout;
import ucm.api.CommonKeys;
import ucm.api.Store;
import ucm.api.StoreContext;
import ucm.api.config.ConfigProblem;
import ucm.api.config.StoreConfig;

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
public abstract class StoreContract
    implements LifeContract,
        LookupContract,
        TransferContract,
        TaskContract,
        ConcurrencyContract,
        DurabilityContract {

  /** How many threads {@link #atOnce} has. */
  static final int THREADS = 6;

  /** What each of some threads does. */
  interface Job {
    void run(int thread) throws Exception;
  }

  private record Opened(Store store, @Nullable Store next) {}

  /** A folder of its own for each test, empty at first, removed afterwards. */
  @TempDir Path directory;

  private final Deque<Opened> opened = new ArrayDeque<>();
  private LeakCheck leaks = LeakCheck.start();

  /** For subclasses. */
  protected StoreContract() {}

  // ---- given by the author

  /**
   * A fresh store, neither configured nor opened. Asked for several times in one test, to open the
   * store again.
   */
  protected abstract Store newStore();

  /**
   * What the store is configured with besides the layout keys and {@code device_id: 0}, which the
   * suite sets. There must be room for 256 blocks and for 32 MiB.
   *
   * @param directory a folder of its own for each test, the same after a restart
   */
  protected Map<String, Object> settings(BlockLayout layout, Path directory) {
    return Map.of();
  }

  /** A fresh store for the stage after the tested one, or null when it is a last stage. */
  protected @Nullable Store newNextStage() {
    return null;
  }

  /** As {@link #settings}, for the next stage. */
  protected Map<String, Object> nextStageSettings(BlockLayout layout, Path directory) {
    return Map.of();
  }

  /** How long anything may take before the suite says that it never ends. */
  protected Duration patience() {
    return Duration.ofSeconds(30);
  }

  // ---- switches: what does not hold for this store is switched off, and shows up as skipped

  /** Whether it is found by {@link java.util.ServiceLoader}, so has a name and a constructor. */
  protected boolean isService() {
    return true;
  }

  /** Whether blocks that were dumped are found again. */
  protected boolean keepsBlocks() {
    return true;
  }

  /** Whether loads bring back the bytes. */
  protected boolean keepsBytes() {
    return keepsBlocks();
  }

  /** Whether blocks are there when the store is closed and opened again. */
  protected boolean survivesRestart() {
    return keepsBytes();
  }

  /** Whether blocks become durable, as {@link Store#durable} says. */
  protected boolean becomesDurable() {
    return survivesRestart();
  }

  /** Whether blocks can be removed, as {@link Store#canRemove} says. */
  protected boolean removesBlocks() {
    return true;
  }

  /** Whether it knows its layout, and so refuses transfers of another one. */
  protected boolean knowsLayout() {
    return true;
  }

  /** Whether it can be configured for a layout; one with O_DIRECT wants sizes that are aligned. */
  protected boolean supports(BlockLayout layout) {
    return true;
  }

  /**
   * Settings with which the store keeps a number of blocks at the most; empty when it cannot be told
   * to.
   */
  protected Optional<Map<String, Object>> settingsForAtMost(int blocks) {
    return Optional.empty();
  }

  // ---- for the suite

  /** This, as the parts of the suite see it. */
  @Override
  public final StoreContract suite() {
    return this;
  }

  @BeforeEach
  final void notesThreadsOfOthers() {
    leaks = LeakCheck.start();
  }

  @AfterEach
  final void closesStoresAndLeavesNothing() {
    closeAll();
    requireNoThread();
    leaks.requireNoFileOf(directory);
  }

  /** Settings of the tested store, with the suite's own and more; skips when it cannot have the layout. */
  Map<String, Object> fullSettings(SampleLayout sample, Map<String, Object> more) {
    assumeTrue(supports(sample.layout()), () -> "does not support " + sample);
    Map<String, Object> all = StoreFixture.workerKeys(sample.layout());
    all.putAll(settings(sample.layout(), directory));
    all.putAll(more);
    return all;
  }

  OpenStore open(SampleLayout sample) {
    return open(sample, Map.of());
  }

  OpenStore open(SampleLayout sample, Map<String, Object> more) {
    Store store = newStore();
    configure(store, fullSettings(sample, more));
    return open(store, sample, more);
  }

  /** Opens a store that is configured already. */
  OpenStore open(Store store, SampleLayout sample, Map<String, Object> more) {
    Store next = newNextStage();
    opened.push(new Opened(store, next));
    if (next != null) {
      Map<String, Object> all = StoreFixture.workerKeys(sample.layout());
      all.putAll(nextStageSettings(sample.layout(), directory));
      String device = CommonKeys.DEVICE_ID.name();
      all.put(device, more.getOrDefault(device, all.get(device)));
      configure(next, all);
      next.open(StoreContext.of(null));
    }
    store.open(StoreContext.of(next));
    return new OpenStore(this, store, sample.layout());
  }

  OpenStore reopen(SampleLayout sample, Map<String, Object> more) {
    closeAll();
    return open(sample, more);
  }

  void closeAll() {
    while (!opened.isEmpty()) {
      Opened last = opened.pop();
      try {
        last.store().close();
      } finally {
        if (last.next() != null) {
          last.next().close();
        }
      }
    }
  }

  void needBlocks() {
    assumeTrue(keepsBlocks(), "keeps no blocks (keepsBlocks)");
  }

  void needBytes() {
    assumeTrue(keepsBytes(), "keeps no bytes (keepsBytes)");
  }

  /** Skips the test unless blocks outlive the store. */
  void needRestart() {
    assumeTrue(survivesRestart(), "does not outlive its process (survivesRestart)");
  }

  /** Runs a job on all threads at once and fails with the first failure of any. */
  void atOnce(Job job) throws Exception {
    CyclicBarrier start = new CyclicBarrier(THREADS);
    List<Callable<Void>> jobs = new ArrayList<>();
    for (int i = 0; i < THREADS; i++) {
      int thread = i;
      jobs.add(
          () -> {
            start.await();
            job.run(thread);
            return null;
          });
    }
    // What waits with a shorter patience is to report a wait that never ends.
    long waitMillis = patience().plusSeconds(60).toMillis();
    try (ExecutorService threads = Executors.newFixedThreadPool(THREADS)) {
      for (Future<Void> ended : threads.invokeAll(jobs, waitMillis, TimeUnit.MILLISECONDS)) {
        ended.get();
      }
    } catch (ExecutionException e) {
      if (e.getCause() instanceof AssertionError failure) {
        throw failure;
      }
      throw e;
    }
  }

  void await(CountDownLatch latch, String what) throws InterruptedException {
    assertThat(latch.await(patience().toSeconds(), TimeUnit.SECONDS))
        .as("%s within the patience", what)
        .isTrue();
  }

  static void configure(Store store, Map<String, Object> settings) {
    StoreConfig config = StoreConfig.of(settings);
    store.configure(config);
    assertThat(config.problems().stream().filter(ConfigProblem::isError))
        .as("errors in the configuration %s of %s", settings, store.name())
        .isEmpty();
  }

  final void requireNoThread() {
    leaks.requireNoThread();
  }
}
