package ucm.store.file.lease;

import static org.assertj.core.api.Assertions.assertThat;
import static ucm.store.file.fixture.SmallSpace.LAYOUT;
import static ucm.store.file.fixture.SmallSpace.capacity;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.ShardOutcome;
import ucm.api.TransferResult;
import ucm.platform.libc.LibcFileOperations;
import ucm.store.file.LocalFileStore;
import ucm.store.file.fixture.NeighbourProcess;
import ucm.store.file.fixture.SmallSpace;
import ucm.store.file.fixture.TestStores;
import ucm.testkit.BlockBytes;
import ucm.testkit.ManualClock;

/** Which of several stores on the same directories collects. */
final class CollectorLeaseTest {

  @TempDir private Path directory;

  @Test
  void oneStoreCollectsAndAnotherTakesOverWhenItCloses() throws Exception {
    List<String> directories = List.of(directory + "/b", directory + "/a");
    Map<String, Object> settings =
        capacity(
            20, Map.of("storage_backends", directories, "local_gc_trigger_threshold_ratio", 0.5));
    try (TestStores first = new TestStores(directory, LAYOUT);
        TestStores second = new TestStores(directory, LAYOUT)) {
      LocalFileStore holder = first.open(settings);
      holder.collector().awaitFirstRound();
      LocalFileStore waiting = second.open(settings);
      waiting.collector().awaitFirstRound();
      second.dump(waiting, BlockBytes.ids(1, 15)).requireOk();
      waiting.collector().makeRound();
      assertThat(holder.collector().holdsLease()).isTrue();
      assertThat(waiting.collector().holdsLease()).isFalse();
      assertThat(SmallSpace.blocks(directory)).hasSize(15);
      holder.close();
      waiting.collector().makeRound();
      assertThat(waiting.collector().holdsLease()).isTrue();
      assertThat(SmallSpace.blocks(directory)).hasSize(10);
      assertThat(second.metrics.count("local_gc_removed_blocks")).isEqualTo(5);
    }
  }

  /** As when one of two machines was given another capacity; a writer would wait for half of its task's time. */
  @Test
  @Timeout(120)
  void aWriterDoesNotWaitForRoomThatTheProcessWhichCollectsDoesNotMake() throws Exception {
    ManualClock clock = new ManualClock();
    try (TestStores first = new TestStores(directory, LAYOUT);
        TestStores second = new TestStores(directory, LAYOUT)) {
      LocalFileStore large = first.open(capacity(40, Map.of()));
      large.collector().awaitFirstRound();
      LocalFileStore small =
          second.open(new LibcFileOperations(), clock, capacity(10, Map.of("timeout_ms", 600_000)));
      small.collector().awaitFirstRound();
      first.dump(large, BlockBytes.ids(1, 12)).requireOk();
      small.collector().makeRound();
      clock.advance(Duration.ofSeconds(6));
      small.collector().makeRound();
      TransferResult refused = second.dump(small, BlockBytes.ids(2, 2));
      assertThat(refused.outcome(0)).isEqualTo(ShardOutcome.REFUSED);
      for (Path block : SmallSpace.blocks(directory)) {
        Files.delete(block);
      }
      small.collector().makeRound();
      second.dump(small, BlockBytes.ids(3, 2)).requireOk();
    }
  }

  @Test
  void knowsWhatOthersWroteAndRemoved() throws Exception {
    Map<String, Object> settings = capacity(20, Map.of("local_gc_enable", false));
    try (TestStores first = new TestStores(directory, LAYOUT);
        TestStores second = new TestStores(directory, LAYOUT)) {
      LocalFileStore one = first.open(settings);
      LocalFileStore other = second.open(settings);
      first.dump(one, BlockBytes.ids(1, 12)).requireOk();
      other.collector().makeRound();
      assertThat(second.metrics.gauge("local_used_bytes")).isEqualTo(12.0 * SmallSpace.FILE);
      assertThat(second.dumpShard(other, BlockBytes.ids(2, 12), 0).okCount()).isEqualTo(8);
    }
  }

  @Test
  void takesOverFromAProcessThatIsKilledAndRemovesWhatItLeft() throws Exception {
    try (NeighbourProcess process = new NeighbourProcess(directory, 100);
        TestStores stores = new TestStores(directory, LAYOUT)) {
      assertThat(process.ask("begin 77 1")).isEqualTo("begun");
      assertThat(process.ask("round")).startsWith("true ");
      LocalFileStore store = stores.open(capacity(100, Map.of()));
      store.awaitSweep();
      store.collector().makeRound();
      assertThat(store.collector().holdsLease()).isFalse();
      assertThat(stores.temps()).as("of the living writer").hasSize(1);
      process.kill();
      store.collector().makeRound();
      assertThat(store.collector().holdsLease()).isTrue();
      assertThat(stores.temps()).isEmpty();
      assertThat(stores.metrics.count("local_orphan_files")).isEqualTo(1);
      assertThat(stores.in(".writers")).isEmpty();
    }
  }
}
