package ucm.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.MemorySegment;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.api.StoreMetrics;
import ucm.api.StoreTimeoutException;
import ucm.api.Transfer;
import ucm.cli.replay.ReplayCommand.TraceReplay;
import ucm.lite.trace.TraceRequest;
import ucm.pipeline.config.ConnectorSettings;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.statistics.StageLookups;
import ucm.testkit.fault.Fault;
import ucm.testkit.fault.Fault.Call;
import ucm.testkit.fault.FaultyStore;
import ucm.testkit.fault.MemoryStore;

/** A store may use memory that it was given until its tasks have ended, or it is closed. */
class ReplayMemoryTest {

  private static final BlockLayout LAYOUT = BlockLayout.uniform(4096, 4096, 4096);
  private static final Duration PATIENCE = Duration.ofMinutes(1);

  private final Queue<Runnable> held = new ArrayDeque<>();
  private static final ConnectorSettings SETTINGS = UcmConfig.of("Fake", Map.of()).settings();

  private final List<MemorySegment> given = new ArrayList<>();
  private MemorySegment late = MemorySegment.NULL;
  private boolean closed;

  @Test
  void aReplayThatIsClosedInTheMiddleClosesItsStoreBeforeItFreesTheMemory() {
    TraceReplay replay =
        new TraceReplay(open(new MemoryStore()), LAYOUT, PATIENCE, 9, StoreMetrics.NONE, SETTINGS);
    replay.request(request(1, 2));
    replay.close();
    requireClosedThenFreed();
  }

  @Test
  void aReplayGoesOnAfterADumpThatFails() {
    FaultyStore refusing = new FaultyStore(new MemoryStore(), 1).at(1, Call.DUMP, Fault.FAIL);
    try (TraceReplay replay =
        new TraceReplay(open(refusing), LAYOUT, PATIENCE, 9, StoreMetrics.NONE, SETTINGS)) {
      replay.request(request(1, 2));
      replay.request(request(1, 2));
      replay.request(request(1, 2));
      assertThat(replay.requests()).isEqualTo(3);
      assertThat(replay.served().hits()).as("dumped again by the second").isEqualTo(2);
      assertThat(replay.hitTokens()).isEqualTo(32);
    }
  }

  @Test
  void aReplayThatWaitedInVainClosesItsStoreBeforeItFreesTheMemory() {
    TraceReplay replay =
        new TraceReplay(
            open(slow(Call.DUMP)), LAYOUT, Duration.ZERO, 9, StoreMetrics.NONE, SETTINGS);
    assertThatThrownBy(() -> replay.request(request(1, 2)))
        .isInstanceOf(StoreTimeoutException.class);
    replay.close();
    requireClosedThenFreed();
  }

  @Test
  void anExplainedReplayClosesItsStoreBeforeItFreesTheMemory() {
    ExplainedReplay replay = explained(new MemoryStore(), PATIENCE);
    replay.request(request(1, 2));
    replay.close();
    requireClosedThenFreed();
  }

  @Test
  void memoryOfATaskThatWasGivenUpIsNotUsedForOthersAndNotFreedBeforeTheStoreIsClosed() {
    for (Call call : List.of(Call.LOAD, Call.DUMP)) {
      given.clear();
      closed = false;
      ExplainedReplay replay = explained(slow(call), Duration.ZERO);
      if (call == Call.LOAD) {
        replay.request(request(1, 2));
      }
      replay.request(request(1, 2));
      // What is loaded was dumped before.
      late = given.get(call == Call.LOAD ? 1 : 0);
      replay.request(request(3, 4));
      assertThat(given.getLast().address()).as("%s", call).isNotEqualTo(late.address());
      replay.request(request(LongStream.range(10, 400).toArray()));
      assertThat(late.scope().isAlive()).as("%s", call).isTrue();
      replay.close();
      requireClosedThenFreed();
    }
  }

  private ExplainedReplay explained(Store store, Duration timeout) {
    StageLookups lookups = new StageLookups(StoreMetrics.NONE, List.of("Memory"));
    return new ExplainedReplay(open(store), lookups, LAYOUT, timeout, SETTINGS, 0, 100, false);
  }

  /** The first call of a kind does not end before the store is closed. */
  private FaultyStore slow(Call call) {
    return new FaultyStore(new MemoryStore(), 1).at(1, call, Fault.DELAY).delayedBy(held::add);
  }

  private Store open(Store store) {
    ExplainedReplayTest.open(store);
    return (Store)
        Proxy.newProxyInstance(
            getClass().getClassLoader(),
            new Class<?>[] {Store.class},
            (_, method, arguments) -> note(store, method, arguments));
  }

  private Object note(Store store, Method method, Object[] arguments) throws Throwable {
    if (arguments != null && arguments[0] instanceof Transfer transfer) {
      given.add(transfer.region(0, 0).segment());
    } else if (method.getName().equals("close")) {
      assertThat(late.scope().isAlive()).as("memory of what is late").isTrue();
      assertThat(given.getLast().scope().isAlive()).as("memory of the last task").isTrue();
      closed = true;
    }
    try {
      return method.invoke(store, arguments);
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }

  private void requireClosedThenFreed() {
    assertThat(closed).isTrue();
    assertThat(given).isNotEmpty().noneMatch(memory -> memory.scope().isAlive());
  }

  private static TraceRequest request(long... blocks) {
    long[] words = new long[2 * blocks.length];
    for (int i = 0; i < blocks.length; i++) {
      words[2 * i] = 7;
      words[2 * i + 1] = blocks[i];
    }
    return new TraceRequest(0, "", 16 * blocks.length, 1, 16, BlockIds.wrap(words));
  }
}
