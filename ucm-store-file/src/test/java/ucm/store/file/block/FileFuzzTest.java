package ucm.store.file.block;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.store.file.LocalFileStore;
import ucm.store.file.fixture.FaultWorkload;
import ucm.store.file.fixture.SmallSpace;
import ucm.store.file.fixture.StoredTree;
import ucm.store.file.fixture.TestStores;
import ucm.testkit.BlockBytes;

/**
 * Whatever lies in a directory of blocks, by chance or on purpose: no wrong byte is served, nothing
 * crashes or hangs, and nothing outside the directory is moved or changed.
 */
@Timeout(value = 3, unit = TimeUnit.MINUTES)
final class FileFuzzTest {

  private static final BlockLayout LAYOUT = BlockLayout.uniform(1024, 4096, 8192);
  private static final int FOOTER_AT = 8192;
  private static final int FILE_SIZE = FOOTER_AT + 4096;
  private static final int ROUNDS = Integer.getInteger("ucm.fuzz", 400);

  @TempDir private Path parent;

  private final long seed = Long.getLong("ucm.seed", System.nanoTime());
  private final Random random = new Random(seed);
  private final BlockIds ids = BlockBytes.ids(900, 4);
  private Path directory;
  private Path outside;
  private Map<String, Integer> before;

  @BeforeEach
  void makesFolders() throws IOException {
    directory = Files.createDirectory(parent.resolve("store"));
    outside = Files.createDirectory(parent.resolve("outside"));
    Files.createDirectory(outside.resolve("folder"));
    Files.write(outside.resolve("file"), new byte[] {1, 2, 3});
    Files.write(outside.resolve("folder").resolve("deep"), new byte[FILE_SIZE]);
    Files.write(outside.resolve("bare"), new byte[FOOTER_AT]);
    before = outside();
  }

  private Map<String, Integer> outside() throws IOException {
    Map<String, Integer> found = new HashMap<>();
    try (Stream<Path> all = Files.walk(outside)) {
      for (Path path : all.toList()) {
        byte[] bytes = Files.isRegularFile(path) ? Files.readAllBytes(path) : new byte[0];
        found.put(path.toString(), Arrays.hashCode(bytes));
      }
    }
    return found;
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "psync", "aio"})
  void servesNoFileThatChanceHasChanged(String engine) throws Exception {
    try (TestStores stores = new TestStores(directory, LAYOUT)) {
      LocalFileStore store = stores.open(settings(engine));
      stores.dump(store, ids).requireOk();
      byte[] good = Files.readAllBytes(stores.file(ids, 0));
      byte[] other = Files.readAllBytes(stores.file(ids, 1));
      int served = 0;
      for (int round = 0; round < ROUNDS; round++) {
        byte[] bytes = changed(good, other);
        Files.write(stores.file(ids, 0), bytes);
        // Compares each byte of what is called good.
        boolean ok = stores.load(store, ids.slice(0, 1)).ok();
        String name = "round %d of seed %d".formatted(round, seed);
        assertThat(ok).as(name).isEqualTo(Arrays.equals(bytes, good));
        assertThat(Files.exists(stores.file(ids, 0))).as(name).isEqualTo(ok);
        served += ok ? 1 : 0;
        assertThat(stores.load(store, ids.slice(1, 4)).ok()).as("the others, %s", name).isTrue();
      }
      assertThat(stores.metrics.count("local_quarantined_blocks")).isEqualTo(ROUNDS - served);
      stores.dump(store, ids).requireOk();
      assertThat(stores.load(store, ids).ok()).isTrue();
      store.close();
      assertThat(stores.openFiles()).isEmpty();
    }
  }

  private static Map<String, Object> settings(String engine) {
    return engine.isEmpty() ? Map.of() : Map.of("io_direct", true, "local_io_engine", engine);
  }

  private byte[] changed(byte[] good, byte[] other) {
    byte[] bytes = good.clone();
    switch (random.nextInt(9)) {
      case 0 -> {
        for (int i = random.nextInt(20); i >= 0; i--) {
          int bit = random.nextInt(8 * FILE_SIZE);
          bytes[bit / 8] ^= (byte) (1 << bit % 8);
        }
      }
      case 1 -> bytes = Arrays.copyOf(good, notBare(random.nextInt(2 * FILE_SIZE)));
      case 2 -> noise(bytes, random.nextInt(FILE_SIZE), random.nextInt(8192));
      case 3 -> Arrays.fill(bytes, random.nextInt(FILE_SIZE), FILE_SIZE, (byte) 0);
      case 4 -> {
        bytes = new byte[notBare(random.nextInt(2 * FILE_SIZE))];
        random.nextBytes(bytes);
      }
      case 5 -> bytes = other.clone();
      case 6 -> System.arraycopy(other, FOOTER_AT, bytes, FOOTER_AT, 4096);
      // The rest is signed as if the store had written it: other ids, layouts and versions.
      case 7 -> {
        noise(bytes, FOOTER_AT + 8 + 4 * random.nextInt(12), 4);
        sign(bytes);
      }
      default -> {
        noise(bytes, FOOTER_AT + random.nextInt(56), 1 + random.nextInt(8));
        // A footer is zero after its checksums, and that part is not read.
        Arrays.fill(bytes, FOOTER_AT + 64, FOOTER_AT + 4080, (byte) 0);
        sign(bytes);
      }
    }
    return bytes;
  }

  /** A file of this size is one of the original's, about whose bytes nothing is known. */
  private static int notBare(int size) {
    return size == FOOTER_AT ? size + 1 : size;
  }

  private void noise(byte[] bytes, int from, int length) {
    for (int i = from; i < Math.min(bytes.length, from + length); i++) {
      bytes[i] = (byte) random.nextInt();
    }
  }

  private static void sign(byte[] bytes) {
    CRC32C crc = new CRC32C();
    crc.update(bytes, FOOTER_AT, 4092);
    ByteBuffer.wrap(bytes)
        .order(ByteOrder.LITTLE_ENDIAN)
        .putInt(FILE_SIZE - 4, (int) crc.getValue());
  }

  /** Something of another kind where the store expects a file or a folder of its own. */
  @Test
  void outlivesAnythingInPlaceOfItsFilesAndFolders() throws Exception {
    String folder = ids.hex(0).substring(0, 3);
    List<String> names =
        List.of(
            folder,
            folder + "/" + ids.hex(0),
            ".quarantine",
            ".writers",
            ".gc",
            ".gc/lock",
            ".gc/used",
            ".writers/stranger-1-0123456789abcdef",
            folder + "/junk",
            "fff/" + ids.hex(0),
            "..junk");
    for (String path : names) {
      for (String kind : List.of("folder", "link", "link to folder", "loop", "fifo", "noise")) {
        Path own = directory.resolve((path + "-" + kind).replaceAll("[^a-z0-9]", "-"));
        Files.createDirectories(own);
        put(own.resolve(path), kind);
        live(own, path + ", " + kind);
        assertThat(outside()).as("%s, %s", path, kind).isEqualTo(before);
      }
    }
  }

  private void put(Path path, String kind) throws Exception {
    Files.createDirectories(path.getParent());
    switch (kind) {
      case "folder" -> Files.write(Files.createDirectory(path).resolve("x"), new byte[9]);
      case "link" -> Files.createSymbolicLink(path, outside.resolve("bare"));
      case "link to folder" -> Files.createSymbolicLink(path, outside.resolve("folder"));
      case "loop" -> Files.createSymbolicLink(path, path);
      case "fifo" ->
          assertThat(new ProcessBuilder("mkfifo", path.toString()).start().waitFor()).isZero();
      default -> {
        byte[] noise = new byte[random.nextInt(20_000)];
        random.nextBytes(noise);
        Files.write(path, noise);
      }
    }
  }

  /** All that a store does, with whatever success. */
  private void live(Path own, String name) throws Exception {
    Map<String, Object> settings = SmallSpace.capacity(2, Map.of("timeout_ms", 5000));
    try (TestStores stores = new TestStores(own, LAYOUT)) {
      LocalFileStore store = stores.open(settings);
      store.awaitSweep();
      store.awaitScan();
      store.collector().makeRound();
      store.lookup(ids);
      assertThat(stores.load(store, ids).okCount()).as(name).isZero();
      StoredTree.directories(own).summarize(StoredTree.QUIET);
      FaultWorkload.dump(store, LAYOUT, ids.slice(0, 2));
      for (int shard = 0; shard < LAYOUT.shardCount(); shard++) {
        stores.dumpShard(store, ids.slice(2, 4), shard);
      }
      stores.load(store, ids);
      damage(stores);
      stores.load(store, ids);
      store.collector().makeRound();
      store.remove(ids);
      Thread closing = Thread.ofPlatform().start(store::close);
      assertThat(closing.join(TestStores.PATIENCE)).as("closed, %s", name).isTrue();
      assertThat(stores.openFiles()).as(name).isEmpty();
    }
  }

  /** So that something is to be moved aside. */
  private void damage(TestStores stores) throws IOException {
    for (int i = 0; i < ids.size(); i++) {
      Path file = stores.file(ids, i);
      boolean linked = Files.isSymbolicLink(file.getParent());
      if (!linked && Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)) {
        byte[] bytes = Files.readAllBytes(file);
        if (bytes.length > 0) {
          bytes[random.nextInt(bytes.length)] ^= 4;
          Files.write(file, bytes);
        }
      }
    }
  }
}
