package ucm.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.CommonKeys;
import ucm.api.FlushResult;
import ucm.api.Store;
import ucm.api.StoreContext;
import ucm.api.StoreTimeoutException;
import ucm.api.Task;
import ucm.api.TransferResult;
import ucm.api.config.ConfigProblem;
import ucm.api.config.StoreConfig;
import ucm.testkit.TransferMemory.Placement;

/**
 * What the author of a store tells the contract suite about it, and how the suite opens and closes
 * it. Extend {@link StoreContract}.
 */
@ExtendWith(BoundedSteps.class)
abstract class StoreUnderTest {

  private record Opened(Store store, @Nullable Store next) {}

  /** A folder of its own for each test, empty at first, removed afterwards. */
  @TempDir Path directory;

  private final Deque<Opened> opened = new ArrayDeque<>();
  private LeakCheck leaks = LeakCheck.start();

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

  /** Settings of the tested store, with the suite's own and more. */
  Map<String, Object> fullSettings(BlockLayout layout, Map<String, Object> more) {
    Map<String, Object> all = new TreeMap<>(SampleLayout.keys(layout));
    all.put(CommonKeys.DEVICE_ID.name(), 0);
    all.putAll(settings(layout, directory));
    all.putAll(more);
    return all;
  }

  Store open(SampleLayout sample) {
    return open(sample, Map.of());
  }

  Store open(SampleLayout sample, Map<String, Object> more) {
    Store store = newStore();
    configure(store, fullSettings(need(sample), more));
    return open(store, sample, more);
  }

  /** Opens a store that is configured already. */
  Store open(Store store, SampleLayout sample, Map<String, Object> more) {
    Store next = newNextStage();
    opened.push(new Opened(store, next));
    if (next != null) {
      Map<String, Object> all = new TreeMap<>(SampleLayout.keys(sample.layout()));
      all.put(CommonKeys.DEVICE_ID.name(), 0);
      all.putAll(nextStageSettings(sample.layout(), directory));
      if (more.containsKey(CommonKeys.DEVICE_ID.name())) {
        all.put(CommonKeys.DEVICE_ID.name(), more.get(CommonKeys.DEVICE_ID.name()));
      }
      configure(next, all);
      next.open(StoreContext.of(null));
    }
    store.open(StoreContext.of(next));
    return store;
  }

  /** Closes everything and opens it again. */
  Store reopen(SampleLayout sample, Map<String, Object> more) {
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

  /** Skips the test when the store cannot have the layout. */
  BlockLayout need(SampleLayout sample) {
    assumeTrue(supports(sample.layout()), () -> "does not support " + sample);
    return sample.layout();
  }

  void needBlocks() {
    assumeTrue(keepsBlocks(), "keeps no blocks (keepsBlocks)");
  }

  void needBytes() {
    assumeTrue(keepsBytes(), "keeps no bytes (keepsBytes)");
  }

  static void configure(Store store, Map<String, Object> settings) {
    StoreConfig config = StoreConfig.of(settings);
    store.configure(config);
    assertThat(config.problems().stream().filter(ConfigProblem::isError))
        .as("errors in the configuration %s of %s", settings, store.name())
        .isEmpty();
  }

  /** Waits for a task; one that takes for ever is a failure and not a hang. */
  TransferResult ended(Task task) throws InterruptedException {
    try {
      return task.await(patience());
    } catch (StoreTimeoutException e) {
      throw new AssertionError("the task did not end within " + patience() + ": " + task, e);
    }
  }

  /** Dumps whole blocks with their bytes, and waits until the store has taken them in. */
  void keep(Store store, BlockLayout layout, BlockIds ids) throws InterruptedException {
    keep(store, TransferMemory.ofBlocks(layout, Placement.SCATTERED, ids));
  }

  void keep(Store store, TransferMemory memory) throws InterruptedException {
    TransferResult result = ended(store.dump(memory.fill().transfer()));
    assertThat(result.ok()).as("dump: %s", result).isTrue();
    memory.check();
    settle(store);
  }

  void settle(Store store) throws InterruptedException {
    FlushResult flushed = store.flush(patience());
    assertThat(flushed.ok()).as("flush after whole blocks were dumped: %s", flushed).isTrue();
  }

  /** Loads all shards of blocks and compares every byte. */
  void requireLoads(Store store, BlockLayout layout, BlockIds ids, Placement placement)
      throws InterruptedException {
    TransferMemory memory = TransferMemory.ofBlocks(layout, placement, ids);
    TransferResult result = ended(store.load(memory.transfer()));
    assertThat(result.ok()).as("load of blocks that are there: %s", result).isTrue();
    if (keepsBytes()) {
      memory.check();
    }
    memory.checkGuards();
  }

  /** Fails when a thread of the store is alive. */
  final void requireNoThread() {
    leaks.requireNoThread();
  }
}
