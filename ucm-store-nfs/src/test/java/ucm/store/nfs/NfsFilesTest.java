package ucm.store.nfs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributeView;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.BlockIds;
import ucm.api.ShardOutcome;
import ucm.api.TransferResult;
import ucm.platform.libc.Errno;
import ucm.testkit.BlockBytes;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;

/** What a file server does to its clients: no error where a miss will do, nothing lost, nothing wrong. */
@Timeout(180)
final class NfsFilesTest {

  private static final BlockIds IDS = BlockBytes.ids(1, 4);

  @TempDir private Path parent;
  private final ScriptedFiles calls = new ScriptedFiles();
  private TestNfs nfs;

  @BeforeEach
  void prepare() {
    nfs = new TestNfs(parent);
  }

  @AfterEach
  void close() {
    calls.heal();
    nfs.close();
  }

  @ParameterizedTest
  @ValueSource(ints = {Errno.ENOENT, Errno.EIO, Errno.ETIMEDOUT, Errno.EINTR, Errno.ESTALE})
  void renameThatWasDoneThoughItsAnswerWasLostIsACommit(int errno) throws Exception {
    NfsStore store = nfs.open(calls.operations(), Map.of());
    calls.loseAnswer("rename", errno, 2);
    nfs.dump(store, IDS).requireOk();
    assertThat(store.flush(TestNfs.PATIENCE).ok()).isTrue();
    assertThat(store.lookup(IDS).cardinality()).isEqualTo(4);
    assertThat(nfs.temps()).isEmpty();
    nfs.load(store, IDS).requireOk();
    requireHealthy();
  }

  @ParameterizedTest
  @ValueSource(ints = {Errno.EIO, Errno.ETIMEDOUT})
  void renameThatWasNotDoneFailsTheDumpAndLeavesNothing(int errno) throws Exception {
    NfsStore store = nfs.open(calls.operations(), Map.of());
    calls.fail("rename", errno, 1);
    TransferResult result = nfs.dump(store, IDS);
    assertThat(result.failedCount()).isPositive();
    assertThat(store.flush(TestNfs.PATIENCE).failedCount()).isEqualTo(1);
    assertThat(store.lookup(IDS).cardinality()).isEqualTo(3);
    assertThat(nfs.temps()).isEmpty();
    assertThat(nfs.files("data")).hasSize(3);
    nfs.dump(store, IDS).requireOk();
    nfs.load(store, IDS).requireOk();
  }

  @ParameterizedTest
  @CsvSource({"rename, 4", "rename, 116", "makeFolder, 4", "openRead, 116", "create, 116"})
  void callThatIsInterruptedOrMeetsAStaleNameIsMadeAgain(String call, int errno) throws Exception {
    NfsStore store = nfs.open(calls.operations(), Map.of());
    calls.fail(call, errno, 1);
    nfs.dump(store, IDS).requireOk();
    nfs.load(store, IDS).requireOk();
    assertThat(store.flush(TestNfs.PATIENCE).ok()).isTrue();
    requireHealthy();
  }

  @ParameterizedTest
  @ValueSource(strings = {"openRead", "readAt", "version"})
  void fileThatTheServerHasForgottenIsAMissAndNoFault(String call) throws Exception {
    NfsStore store = nfs.open(calls.operations(), Map.of());
    nfs.dump(store, IDS).requireOk();
    calls.fail(call, Errno.ESTALE, 1_000_000);
    for (int round = 0; round < 4; round++) {
      TransferResult result = loadFirstShards(store);
      assertThat(result.cause()).isNull();
      assertThat(result.failedShards().stream().mapToObj(result::outcome))
          .allMatch(outcome -> outcome == ShardOutcome.MISSING);
      assertThat(result.failedCount()).isEqualTo(call.equals("version") ? 0 : 4);
    }
    requireHealthy();
    calls.heal();
    nfs.load(store, IDS).requireOk();
  }

  private static TransferResult loadFirstShards(NfsStore store) throws InterruptedException {
    TransferMemory memory = new TransferMemory(TestNfs.LAYOUT, Placement.PACKED, IDS, new int[4]);
    TransferResult result = store.load(memory.transfer()).await(TestNfs.PATIENCE);
    for (int i = 0; i < 4; i++) {
      if (result.outcome(i) == ShardOutcome.OK) {
        memory.check(i);
      }
    }
    return result;
  }

  @Test
  void blockOfAnotherNodeMayBeInvisibleForAWhileAndIsNoErrorThen() throws Exception {
    NfsStore here = nfs.open(calls.operations(), Map.of());
    try (TestNfs there = new TestNfs(parent)) {
      nfs.dump(there.open(Map.of()), IDS).requireOk();
    }
    // The client remembers that there was nothing, or a name that leads nowhere.
    calls.fail("size", Errno.ESTALE, 1_000_000);
    assertThat(here.lookup(IDS).isEmpty()).isTrue();
    assertThat(here.lookupPrefix(IDS)).isEqualTo(-1);
    assertThat(here.durable(IDS).isEmpty()).isTrue();
    requireHealthy();
    calls.heal();
    assertThat(here.lookup(IDS).cardinality()).isEqualTo(4);
    nfs.load(here, IDS).requireOk();
  }

  @ParameterizedTest
  @CsvSource({"writeAt, 5", "writeAt, 110", "create, 110", "close, 5", "allocate, 110"})
  void softMountThatGivesUpFailsTheDumpAndNothingShows(String call, int errno) throws Exception {
    NfsStore store = nfs.open(calls.operations(), Map.of("store_health.enabled", false));
    calls.fail(call, errno, 1_000_000);
    assertThat(nfs.dump(store, IDS).okCount()).isLessThan(16);
    assertThat(store.flush(TestNfs.PATIENCE).failedCount()).isEqualTo(4);
    assertThat(store.lookup(IDS).isEmpty()).isTrue();
    calls.heal();
    assertThat(nfs.files("data")).isEmpty();
    nfs.dump(store, IDS).requireOk();
    nfs.load(store, IDS).requireOk();
  }

  @Test
  void softMountThatGivesUpWhileReadingFailsTheLoadAndOpensTheBreaker() throws Exception {
    NfsStore store = nfs.open(calls.operations(), Map.of());
    nfs.dump(store, IDS).requireOk();
    calls.fail("readAt", Errno.ETIMEDOUT, 1_000_000);
    TransferResult result = nfs.load(store, IDS);
    assertThat(result.okCount()).isZero();
    assertThat(result.cause()).hasMessageContaining("ETIMEDOUT");
    assertThat(nfs.metrics.count("nfs_health_trips")).isEqualTo(1);
    assertThat(store.lookup(IDS).isEmpty()).isTrue();
  }

  @Test
  void folderThatAnotherNodeRemovedInBetweenIsMadeAgain() throws Exception {
    NfsStore store = nfs.open(calls.operations(), Map.of());
    calls.fail("create", Errno.ESTALE, 4);
    nfs.dump(store, BlockBytes.ids(9, 1)).requireOk();
    nfs.load(store, BlockBytes.ids(9, 1)).requireOk();
  }

  @Test
  void fileHiddenByTheServerKeepsItsFolderAndIsNoBlock() throws Exception {
    NfsStore store = nfs.open(calls.operations(), Map.of());
    nfs.dump(store, IDS).requireOk();
    Path file = parent.resolve(nfs.files("data").getFirst());
    // What the client does when a file that is open here is removed.
    Path hidden = file.resolveSibling(".nfs00000000012345670000001");
    Files.move(file, hidden);
    assertThat(nfs.load(store, IDS).failedCount()).isEqualTo(4);
    assertThat(store.lookup(IDS).cardinality()).isEqualTo(3);
    nfs.dump(store, IDS).requireOk();
    nfs.load(store, IDS).requireOk();
    assertThat(hidden).exists();
    requireHealthy();
  }

  @ParameterizedTest
  @ValueSource(longs = {-48, 48})
  void clocksOfOtherNodesChangeWhatIsColdAndNothingElse(long hours) throws Exception {
    long file = TestNfs.LAYOUT.blockSize() + 4096;
    NfsStore store =
        nfs.open(
            calls.operations(),
            Map.of("storage_capacity", 40 * file, "nfs_gc_check_interval_sec", 1));
    BlockIds early = BlockBytes.ids(1, 16);
    nfs.dump(store, early).requireOk();
    shiftTimes(Duration.ofHours(hours));
    for (int seed = 2; nfs.metrics.count("nfs_gc_removed_blocks") < 8; seed++) {
      // Refused while the capacity is reached, until the collector has made room.
      TransferResult result = nfs.dump(store, BlockBytes.ids(seed, 4));
      assertThat(result.failedShards().stream().mapToObj(result::outcome))
          .doesNotContain(ShardOutcome.FAILED);
      assertThat(nfs.metrics.gauge("nfs_used_bytes")).isLessThanOrEqualTo(40.0 * file);
      Thread.onSpinWait();
    }
    // Whatever is left is right.
    nfs.load(store, early);
    requireHealthy();
  }

  private void shiftTimes(Duration by) throws IOException {
    FileTime time = FileTime.from(Instant.now().plus(by));
    try (Stream<Path> all = Files.walk(parent.resolve("data"))) {
      for (Path path : all.toList()) {
        Files.getFileAttributeView(path, BasicFileAttributeView.class).setTimes(time, time, null);
      }
    }
  }

  /** Changes one byte of a file. */
  static void flip(Path file) throws IOException {
    try (FileChannel channel =
        FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      ByteBuffer one = ByteBuffer.allocate(1);
      channel.read(one, 100);
      one.put(0, (byte) ~one.get(0)).rewind();
      channel.write(one, 100);
    }
  }

  private void requireHealthy() {
    assertThat(nfs.metrics.count("nfs_health_trips")).isZero();
    assertThat(nfs.metrics.gauge("nfs_health_state")).isZero();
  }
}
