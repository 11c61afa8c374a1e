package ucm.store.nfs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.BlockIds;
import ucm.api.admin.StoreDirectories;
import ucm.api.admin.StoreDirectories.AdoptPlan;
import ucm.api.admin.StoreDirectories.AdoptResult;
import ucm.api.admin.StoreDirectories.CollectPlan;
import ucm.api.admin.StoreDirectories.Damage;
import ucm.api.admin.StoreDirectories.Observer;
import ucm.api.admin.StoreDirectories.VerifyPlan;
import ucm.api.admin.StoredBlock;
import ucm.api.config.StoreConfig;
import ucm.platform.libc.LibcFileOperations;
import ucm.platform.libc.NativePath;
import ucm.testkit.BlockBytes;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;

final class NfsTreeTest {

  private static final BlockIds ID = BlockIds.ofHex("00112233445566778899aabbccddeeff");
  private static final String NAME = "data/7766554433221100/ffeeddccbbaa9988.dat";

  @TempDir private Path parent;
  private TestNfs nfs;

  @AfterEach
  void close() {
    nfs.close();
  }

  @Test
  void blockHasTheNameThatTheOriginalGivesItAndItsBytesFromTheStart() throws Exception {
    nfs = new TestNfs(parent);
    NfsStore store = nfs.open(Map.of());
    nfs.dump(store, ID).requireOk();
    assertThat(nfs.files("data")).containsExactly(NAME);
    byte[] bytes = Files.readAllBytes(parent.resolve(NAME));
    for (int shard = 0; shard < TestNfs.LAYOUT.shardCount(); shard++) {
      int size = (int) TestNfs.LAYOUT.shardSize();
      MemorySegment part = MemorySegment.ofArray(bytes).asSlice((long) shard * size, size);
      BlockBytes.check(part, ID.high(0), ID.low(0), shard, 0);
    }
    assertThat(Files.getPosixFilePermissions(parent.resolve("data/7766554433221100")))
        .isEqualTo(PosixFilePermissions.fromString("rwx------"));
  }

  @Test
  void fileOfTheOriginalIsFoundAndLoadedWhereThatIsAskedFor() throws Exception {
    nfs = new TestNfs(parent);
    Path file = parent.resolve(NAME);
    Files.createDirectories(file.getParent());
    Files.write(file, bytesOf(ID));
    NfsStore strict = nfs.open(Map.of());
    assertThat(strict.lookupPrefix(ID)).isEqualTo(-1);
    strict.close();
    NfsStore store = nfs.open(Map.of("accept_unverified", true));
    assertThat(store.lookupPrefix(ID)).isZero();
    nfs.load(store, ID).requireOk();
    assertThat(nfs.metrics.count("nfs_unverified_load_shards"))
        .isEqualTo(TestNfs.LAYOUT.shardCount());
  }

  @Test
  void fileOfTheOriginalIsGivenChecksumsAndThenFound() throws Exception {
    nfs = new TestNfs(parent);
    Path file = parent.resolve(NAME);
    Files.createDirectories(file.getParent());
    Files.write(file, bytesOf(ID));
    StoreConfig config =
        StoreConfig.of(
            Map.of(
                "storage_backends",
                parent.toString(),
                "kv_block_size",
                TestNfs.LAYOUT.blockSize(),
                "shard_size",
                TestNfs.LAYOUT.shardSize(),
                "tensor_size",
                TestNfs.LAYOUT.tensorSize(0)));
    List<Damage> failures = new ArrayList<>();
    AdoptResult result =
        new NfsStore()
            .directories(config)
            .adopt(new AdoptPlan(1, 0, false), (done, total) -> {}, failures::add);
    assertThat(failures).isEmpty();
    assertThat(result.adopted()).isEqualTo(1);
    NfsStore store = nfs.open(Map.of());
    assertThat(store.lookupPrefix(ID)).isZero();
    nfs.load(store, ID).requireOk();
    assertThat(nfs.metrics.count("nfs_unverified_load_shards")).isZero();
  }

  private static byte[] bytesOf(BlockIds id) {
    byte[] bytes = new byte[(int) TestNfs.LAYOUT.blockSize()];
    for (int shard = 0; shard < TestNfs.LAYOUT.shardCount(); shard++) {
      long size = TestNfs.LAYOUT.shardSize();
      BlockBytes.fill(
          MemorySegment.ofArray(bytes).asSlice(shard * size, size),
          id.high(0),
          id.low(0),
          shard,
          0);
    }
    return bytes;
  }

  @Test
  void halfWrittenBlockHasTheEndingOfTheOriginalAndIsNoHit() throws Exception {
    nfs = new TestNfs(parent);
    NfsStore store = nfs.open(Map.of());
    TransferMemory half = TransferMemory.ofShards(TestNfs.LAYOUT, Placement.PACKED, ID, 0, 0, 2);
    store.dump(half.fill().transfer()).await(TestNfs.PATIENCE).requireOk();
    assertThat(nfs.temps()).singleElement().asString().startsWith(NAME.replace(".dat", "."));
    assertThat(nfs.files("data")).isEqualTo(nfs.temps());
    assertThat(store.lookup(ID).isEmpty()).isTrue();
    store.close();
    assertThat(nfs.files("data")).isEmpty();
    assertThat(parent.resolve("data/7766554433221100")).doesNotExist();
  }

  @Test
  void fileThatTheOriginalIsWritingIsNoHitAndStays() throws Exception {
    nfs = new TestNfs(parent);
    Path file = parent.resolve(NAME.replace(".dat", ".act"));
    Files.createDirectories(file.getParent());
    Files.write(file, bytesOf(ID));
    NfsStore store = nfs.open(Map.of());
    assertThat(store.lookup(ID).isEmpty()).isTrue();
    nfs.dump(store, ID).requireOk();
    assertThat(nfs.files("data")).containsExactly(NAME.replace(".dat", ".act"), NAME);
  }

  @Test
  void severalDirectoriesShareTheBlocks() throws Exception {
    nfs = new TestNfs(parent);
    List<String> roots = List.of(parent.resolve("a").toString(), parent.resolve("b").toString());
    NfsStore store = nfs.open(Map.of("storage_backends", roots, "durability", "full"));
    BlockIds ids = BlockBytes.ids(7, 32);
    nfs.dump(store, ids).requireOk();
    assertThat(nfs.files("a/data")).hasSizeBetween(1, 31);
    assertThat(nfs.files("a/data").size() + nfs.files("b/data").size()).isEqualTo(32);
    nfs.load(store, ids).requireOk();
  }

  @Test
  void fullDurabilitySyncsTheFolderOfTheBlockAndTheOneAbove() throws Exception {
    nfs = new TestNfs(parent);
    ScriptedFiles files = new ScriptedFiles();
    NfsStore store = nfs.open(files.operations(), Map.of("durability", "full"));
    nfs.dump(store, ID).requireOk();
    List<String> syncs =
        files.calls().stream().filter(call -> call.startsWith("syncFolder")).toList();
    assertThat(syncs)
        .containsSubsequence(
            "syncFolder [" + parent + "/.]",
            "syncFolder [" + parent + "/data/7766554433221100]",
            "syncFolder [" + parent + "/data]");
  }

  @Test
  void hidesWhatTheFileServerHides() throws IOException {
    nfs = new TestNfs(parent);
    Path folder = Files.createDirectories(parent.resolve("data/7766554433221100"));
    Files.createFile(folder.resolve(".nfs000000000001"));
    Files.createFile(folder.resolve("ffeeddccbbaa9988.dat"));
    Files.createFile(folder.resolve("ffeeddccbbaa9988.me-1-2-0000000001.act"));
    Files.createFile(folder.resolve("notes"));
    List<String> names = new ArrayList<>();
    new NfsTree(new LibcFileOperations()).forEachName(NativePath.of(parent + "/data"), names::add);
    assertThat(names)
        .containsExactlyInAnyOrder(
            ID.hex(0), ID.hex(0) + ".me-1-2-0000000001.tmp", "7766554433221100/notes");
  }

  @Test
  void canBeSummarizedVerifiedAndCollected() throws Exception {
    nfs = new TestNfs(parent);
    BlockIds ids = BlockBytes.ids(3, 20);
    try (NfsStore store = nfs.open(Map.of())) {
      nfs.dump(store, ids).requireOk();
    }
    assertThat(new NfsStore().recognizes(parent)).isTrue();
    StoreConfig config = StoreConfig.of(Map.of("storage_backends", parent.toString()));
    StoreDirectories directories = new NfsStore().directories(config);
    Observer quiet = (done, total) -> {};
    assertThat(directories.summarize(quiet).getFirst().blocks()).isEqualTo(20);
    List<StoredBlock> listed = new ArrayList<>();
    directories.list(quiet, listed::add);
    assertThat(listed).extracting(block -> BlockIds.hex(block.idHigh(), block.idLow())).hasSize(20);
    NfsFilesTest.flip(file(ids));
    List<Damage> damaged = new ArrayList<>();
    directories.verify(new VerifyPlan(2, 0, true), quiet, damaged::add);
    assertThat(damaged).singleElement().extracting(Damage::path).isEqualTo(file(ids).toString());
    assertThat(nfs.files("data")).hasSize(19);
    assertThat(nfs.files(".quarantine")).hasSize(1);
    var collected = directories.collect(new CollectPlan(0L, null, false), quiet);
    assertThat(collected.removedBlocks()).isEqualTo(19);
    try (var folders = Files.list(parent.resolve("data"))) {
      assertThat(folders).isEmpty();
    }
  }

  private Path file(BlockIds ids) {
    return parent.resolve(
        "data/%016x/%016x.dat"
            .formatted(Long.reverseBytes(ids.high(4)), Long.reverseBytes(ids.low(4))));
  }
}
