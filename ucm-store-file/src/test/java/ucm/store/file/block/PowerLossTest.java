package ucm.store.file.block;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.TransferResult;
import ucm.store.file.LocalFileStore;
import ucm.store.file.fixture.DiskLog;
import ucm.store.file.fixture.FailingMount;
import ucm.store.file.fixture.SmallMount;
import ucm.store.file.fixture.TestStores;
import ucm.testkit.BlockBytes;

/**
 * The power is cut at random moments while a store dumps, and another store finds the disk as that
 * leaves it: nothing wrong is served, nothing that is visible lacks bytes unless {@code durability} is
 * {@code none}, and with {@code full} nothing is lost of what the first store had called durable. With
 * {@code fdatasync} the bytes are safe but the newest names may be lost, as its key says; how many is
 * printed.
 *
 * <p>A real ext4 runs on a loop device whose file lies on {@code failing_fs.c}, which logs each write and
 * each flush of the disk's cache. For each cut the disk is made again: all that was written before the
 * last flush, and of the writes after it a random part, in no order, some torn between sectors of 512
 * bytes. Then ext4 replays its journal.
 *
 * <p>What that covers: the order of the store's calls, and whether it waits for the kernel where it has
 * to. What it does not: disks that lose what they were told to keep, other file systems, and the
 * processor's or controller's own faults.
 *
 * <p>{@code -Ducm.powercuts=300} cuts more often than the default.
 */
@Timeout(value = 1, unit = TimeUnit.HOURS)
final class PowerLossTest {

  private static final BlockLayout LAYOUT = BlockLayout.uniform(4096, 16_384, 65_536);
  private static final int CUTS = Integer.getInteger("ucm.powercuts", 8);
  private static final long DISK_BYTES = 48L << 20;
  private static final int ROUNDS = 48;
  private static final int AT_ONCE = 4;
  private static final long BLOCKS_SEED = 700;

  @TempDir private Path parent;

  private final long seed = Long.getLong("ucm.seed", System.nanoTime());
  private final Random random = new Random(seed);

  /** What was found after the cuts of one run. */
  private static final class Findings {
    int cuts;
    int right;
    int damaged;
    int acknowledged;
    int lost;

    @Override
    public String toString() {
      return "%d cuts; blocks loaded right %d, found damaged %d; acknowledged %d, of these lost %d"
          .formatted(cuts, right, damaged, acknowledged, lost);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "none, data=ordered",
    "none, data=writeback",
    "fdatasync, data=ordered",
    "fdatasync, data=writeback",
    "full, data=ordered",
    "full, data=writeback"
  })
  void servesNothingWrongAndLosesNothingDurable(String durability, String options)
      throws Exception {
    Path program = FailingMount.compile(parent);
    try (SmallMount memory = SmallMount.tmpfs(parent.resolve("memory"), 400L << 20)) {
      Path before = memory.directory.resolve("before");
      Path log = memory.directory.resolve("log");
      record(program, before, log, durability, options);
      Findings findings = new Findings();
      try (Arena arena = Arena.ofShared()) {
        cut(DiskLog.read(log, arena), before, memory.directory.resolve("after"), findings);
      }
      System.out.printf("power loss, %s, %s: %s%n", durability, options, findings);
      assertThat(findings.right).as("something was there, seed %d", seed).isPositive();
      if (durability.equals("full")) {
        assertThat(findings.acknowledged).isPositive();
        assertThat(findings.lost).as("acknowledged and lost, seed %d", seed).isZero();
      }
      if (!durability.equals("none")) {
        assertThat(findings.damaged).as("visible and not whole, seed %d", seed).isZero();
      }
    }
  }

  /** Dumps to a disk that logs; marks how many blocks are acknowledged. */
  private void record(Path program, Path before, Path log, String durability, String options)
      throws Exception {
    // No zeros where a file system has not written yet: what is stale must not look empty.
    byte[] stale = new byte[1 << 20];
    random.nextBytes(stale);
    try (var out = Files.newOutputStream(before)) {
      for (long at = 0; at < DISK_BYTES; at += stale.length) {
        out.write(stale);
      }
    }
    SmallMount.makeExt4(before, DISK_BYTES);
    Path failing = Files.createDirectory(log.resolveSibling("failing"));
    try (FailingMount disk = FailingMount.logging(failing, program, log)) {
      Files.copy(before, disk.backing.resolve("disk"));
      Path image = disk.directory.resolve("disk");
      try (SmallMount mount =
              SmallMount.ext4(parent.resolve("live"), image, options + ",commit=1");
          TestStores stores = new TestStores(mount.directory, LAYOUT)) {
        LocalFileStore store =
            stores.open(Map.of("durability", durability, "local_min_free_gb", 0));
        for (int round = 0; round < ROUNDS; round++) {
          BlockIds ids = ids(round * AT_ONCE, AT_ONCE);
          dump(stores, store, ids, round % 2 == 0);
          boolean durable = store.durable(ids).cardinality() == AT_ONCE;
          assertThat(store.flush(Duration.ofSeconds(30)).ok() && durable).isTrue();
          disk.mark((round + 1L) * AT_ONCE);
          // Another program makes the kernel write out what it has, whatever the store asks for.
          if (round % 16 == 8) {
            sync(mount.directory).waitFor();
          } else if (random.nextInt(6) == 0) {
            sync(mount.directory);
          }
        }
      }
    }
  }

  private static Process sync(Path directory) throws IOException {
    return new ProcessBuilder("sync", "-f", directory.toString()).start();
  }

  private static void dump(TestStores stores, LocalFileStore store, BlockIds ids, boolean whole)
      throws InterruptedException {
    if (whole) {
      stores.dump(store, ids).requireOk();
    } else {
      for (int shard = LAYOUT.shardCount() - 1; shard >= 0; shard--) {
        stores.dumpShard(store, ids, shard).requireOk();
      }
    }
  }

  private static BlockIds ids(int from, int count) {
    return BlockBytes.ids(BLOCKS_SEED, ROUNDS * AT_ONCE).slice(from, from + count);
  }

  /** Cuts the power at random moments, in their order. */
  private void cut(DiskLog log, Path kept, Path after, Findings findings) throws Exception {
    assertThat(log.flushes()).as("flushes of the disk").isPositive();
    int[] cuts = random.ints(CUTS, 0, log.size() + 1).toArray();
    Arrays.sort(cuts);
    int applied = 0;
    for (int at : cuts) {
      int flushed = log.keptBefore(at);
      log.apply(kept, Math.min(applied, flushed), flushed);
      applied = Math.max(applied, flushed);
      Files.copy(kept, after, StandardCopyOption.REPLACE_EXISTING);
      // None, some, most or all of what the disk had in its cache.
      double share = random.nextInt(4) / 3.0;
      log.applySome(after, flushed, at, share, random);
      String name = "cut at %d of %d, share %.1f, seed %d".formatted(at, log.size(), share, seed);
      check(after, (int) log.markBefore(at), findings, name);
      findings.cuts++;
    }
  }

  private void check(Path image, int acknowledged, Findings findings, String name)
      throws Exception {
    try (SmallMount mount = SmallMount.recovered(parent.resolve("dead"), image);
        TestStores stores = new TestStores(mount.directory, LAYOUT)) {
      pretendReboot(mount.directory);
      LocalFileStore store = stores.open(Map.of("local_min_free_gb", 0));
      store.awaitSweep();
      assertThat(stores.temps()).as("temporary files, %s", name).isEmpty();
      findings.acknowledged += acknowledged;
      for (int block = 0; block < ROUNDS * AT_ONCE; block++) {
        BlockIds id = ids(block, 1);
        boolean visible = store.lookup(id).get(0);
        // Compares every byte that is called good.
        TransferResult result = stores.load(store, id);
        assertThat(visible || !result.ok()).as("block %d, %s", block, name).isTrue();
        findings.right += result.ok() ? 1 : 0;
        findings.damaged += visible && !result.ok() ? 1 : 0;
        findings.lost += !result.ok() && block < acknowledged ? 1 : 0;
        assertThat(store.lookup(id).get(0)).as("block %d, %s", block, name).isEqualTo(result.ok());
      }
      requireUsable(stores, store);
    }
  }

  /** The machine has not booted again, whatever the disk looks like: so this changes what tells of it. */
  private static void pretendReboot(Path directory) throws IOException {
    String boot = Files.readString(Path.of("/proc/sys/kernel/random/boot_id")).substring(0, 8);
    List<Path> all;
    try (Stream<Path> files = Files.walk(directory)) {
      all = files.filter(Files::isRegularFile).toList();
    }
    for (Path file : all) {
      String name = file.getFileName().toString();
      if (name.contains("-" + boot)) {
        Files.move(file, file.resolveSibling(name.replace("-" + boot, "-00000000")));
      }
    }
  }

  private void requireUsable(TestStores stores, LocalFileStore store)
      throws InterruptedException, IOException {
    BlockIds some = ids(random.nextInt(ROUNDS) * AT_ONCE, AT_ONCE);
    dump(stores, store, some, random.nextBoolean());
    assertThat(stores.load(store, some).ok()).isTrue();
  }
}
