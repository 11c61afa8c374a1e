package ucm.store.s3;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInfo;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.StoreException;
import ucm.api.admin.DirectorySummary;
import ucm.api.admin.StoreDirectories;
import ucm.api.admin.StoreDirectories.AdoptPlan;
import ucm.api.admin.StoreDirectories.CollectPlan;
import ucm.api.admin.StoreDirectories.CollectResult;
import ucm.api.admin.StoreDirectories.Damage;
import ucm.api.admin.StoreDirectories.Observer;
import ucm.api.admin.StoreDirectories.VerifyPlan;
import ucm.api.admin.StoreDirectories.VerifyResult;
import ucm.api.admin.StoredBlock;
import ucm.api.admin.StoredLayout;
import ucm.api.admin.WholeBlocks;
import ucm.api.config.StoreConfig;
import ucm.store.s3.block.ObjectFormat;
import ucm.testkit.BlockBytes;
import ucm.testkit.StoreFixture;

/** What people see of a bucket and do with it. */
final class BucketDirectoriesTest {

  private static final BlockLayout LAYOUT = BlockLayout.uniform(8192, 16_384, 65_536);
  // Its tensors differ, so that only the checksum of the sizes tells the layout.
  private static final BlockLayout UNEVEN = BlockLayout.of(new long[] {4096, 12_288}, 65_536);
  private static final int BLOCKS = 6;

  @TempDir private static Path folder;
  @AutoClose private static VersityGateway gateway;

  @AutoClose private final StoreFixture stores = new StoreFixture(LAYOUT);
  private final BlockIds ids = BlockBytes.ids(1, BLOCKS);
  private final AtomicLong progress = new AtomicLong();
  private final Observer observer = (done, _) -> progress.set(done);
  private String prefix = "";

  @BeforeAll
  static void startsTheServer() throws Exception {
    VersityGateway.require();
    gateway = VersityGateway.start(folder);
  }

  @BeforeEach
  void aBucketWithBlocks(TestInfo test) throws Exception {
    prefix = "admin/" + test.getTestMethod().orElseThrow().getName();
    stores.dump(stores.open(new S3Store(), gateway.settings(prefix)), ids).requireOk();
  }

  private static StoreDirectories at(String prefix, Map<String, Object> more) {
    S3Store store = new S3Store();
    Map<String, Object> keys = new TreeMap<>(more);
    keys.put("s3_endpoints", gateway.endpoint());
    keys.putAll(store.keysOf("s3://" + VersityGateway.BUCKET + "/" + prefix + "/"));
    return store.blocks(StoreConfig.of(keys)).orElseThrow();
  }

  private StoreDirectories bucket() {
    return at(prefix, Map.of());
  }

  private Path file(int block) {
    return gateway.file(key(block));
  }

  private String key(int block) {
    return new ObjectFormat(LAYOUT, prefix).key(ids.high(block), ids.low(block));
  }

  private static void flip(Path file, int at) throws Exception {
    byte[] bytes = Files.readAllBytes(file);
    bytes[at] ^= 1;
    Files.write(file, bytes);
  }

  private List<StoredBlock> list() {
    List<StoredBlock> blocks = new ArrayList<>();
    bucket().list(observer, blocks::add);
    return blocks;
  }

  @Test
  void saysWhatIsThere() throws Exception {
    // XML has other names for what is in this one.
    Files.writeString(gateway.file(prefix + "/a note, <zero> & more"), "no block");
    DirectorySummary summary = bucket().summarize(observer).getFirst();
    assertThat(summary.directory()).isEqualTo("s3://" + VersityGateway.BUCKET + "/" + prefix);
    assertThat(summary.blocks()).isEqualTo(BLOCKS);
    assertThat(summary.payloadBytes()).isEqualTo(BLOCKS * LAYOUT.blockSize());
    assertThat(summary.otherFiles()).isOne();
    assertThat(summary.layouts().getFirst().layout())
        .isEqualTo(new StoredLayout(65_536, 16_384, 2, 8192));
    assertThat(progress).hasValue(BLOCKS);
    assertThat(list())
        .extracting(StoredBlock::id)
        .containsExactlyInAnyOrderElementsOf(
            IntStream.range(0, BLOCKS).mapToObj(ids::hex).toList());
    assertThat(at(prefix + "-none", Map.of()).summarize(observer).getFirst().notes())
        .containsExactly("there are no blocks below this prefix");
  }

  @Test
  void findsDamageAndMovesItAside() throws Exception {
    List<Damage> found = new ArrayList<>();
    VerifyResult whole = bucket().verify(new VerifyPlan(3, 0, false), observer, found::add);
    assertThat(whole.blocks()).isEqualTo(BLOCKS);
    assertThat(found).isEmpty();
    flip(file(2), 20_000);
    VerifyResult seen = bucket().verify(new VerifyPlan(3, 0, false), observer, found::add);
    assertThat(seen.blocks()).isEqualTo(BLOCKS - 1);
    assertThat(seen.damaged()).isOne();
    assertThat(found.getFirst().path()).endsWith(key(2));
    assertThat(found.getFirst().reason()).contains("shard 1 is damaged");
    assertThat(file(2)).exists();
    Files.write(file(4), new byte[0]);
    DirectorySummary before = bucket().summarize(observer).getFirst();
    assertThat(before.faultyFiles()).as("the one that is empty").isOne();
    VerifyResult moved = bucket().verify(new VerifyPlan(1, 0, true), observer, found::add);
    assertThat(moved.damaged()).isEqualTo(2);
    assertThat(found.getLast().isMoved()).isTrue();
    assertThat(file(2)).doesNotExist();
    assertThat(file(4)).doesNotExist();
    DirectorySummary summary = bucket().summarize(observer).getFirst();
    assertThat(summary.blocks()).isEqualTo(BLOCKS - 2);
    assertThat(summary.quarantinedFiles()).isEqualTo(2);
  }

  /** What the others of its folder are is known before any of them is judged. */
  @Test
  void theFirstBlockIsFoundDamagedWhoseFooterIs() throws Exception {
    String least = IntStream.range(0, BLOCKS).mapToObj(this::key).sorted().toList().getFirst();
    flip(gateway.file(least), 65_536 + 40);
    List<Damage> found = new ArrayList<>();
    VerifyResult seen = bucket().verify(new VerifyPlan(1, 0, false), observer, found::add);
    assertThat(seen.unverified()).isZero();
    assertThat(found).extracting(Damage::path).singleElement().asString().endsWith(least);
  }

  @Test
  void removesTheOldestUntilItFitsAndThoseThatAreNamed() {
    CollectResult dry = bucket().collect(new CollectPlan(null, 0.5, true), observer);
    assertThat(dry.removedBlocks()).isEqualTo(BLOCKS / 2);
    assertThat(list()).hasSize(BLOCKS);
    CollectResult result = bucket().collect(new CollectPlan(null, 0.5, false), observer);
    assertThat(result.removedBlocks()).isEqualTo(BLOCKS / 2);
    assertThat(result.usedBytesBefore() - result.removedBytes()).isEqualTo(result.targetBytes());
    List<StoredBlock> left = list();
    assertThat(left).hasSize(BLOCKS / 2);
    BlockIds named = BlockIds.ofHex(List.of(left.getFirst().id(), "0".repeat(32)));
    assertThat(bucket().remove(named).stream()).containsExactly(0);
    assertThat(list()).hasSize(BLOCKS / 2 - 1);
  }

  @Test
  void keepsToTheCapacityOfEngines() {
    assertThat(bucket().hasOwnLimit()).isFalse();
    CollectPlan plan = new CollectPlan(null, null, false);
    assertThatThrownBy(() -> bucket().collect(plan, observer))
        .hasMessageContaining("s3_capacity_gb");
    // Of four and a half objects.
    StoreDirectories bounded = at(prefix, Map.of("s3_capacity_gb", 0.0003));
    assertThat(bounded.hasOwnLimit()).isTrue();
    assertThat(bounded.collect(plan, observer).removedBlocks()).isEqualTo(2);
    assertThat(bounded.collect(plan, observer).removedBlocks()).isZero();
    assertThat(list()).hasSize(BLOCKS - 2);
  }

  @Test
  void givesMetadataToWhatAToolBrought() throws Exception {
    String brought = prefix + "-brought";
    Path target = gateway.file(new ObjectFormat(LAYOUT, brought).key(ids.high(0), ids.low(0)));
    Files.createDirectories(target.getParent());
    Files.copy(file(0), target);
    // As the original writes it: without a footer.
    Path bare = gateway.file(new ObjectFormat(LAYOUT, brought).key(ids.high(1), ids.low(1)));
    Files.createDirectories(bare.getParent());
    byte[] bytes = Arrays.copyOf(Files.readAllBytes(file(1)), 65_536);
    Files.write(bare, bytes);
    List<Damage> failed = new ArrayList<>();
    VerifyResult read =
        at(brought, Map.of()).verify(new VerifyPlan(1, 0, true), observer, failed::add);
    assertThat(read.blocks()).isOne();
    assertThat(read.unverified()).isOne();
    assertThat(at(brought, Map.of()).summarize(observer).getFirst().unverifiedBlocks()).isOne();
    AdoptPlan plan = new AdoptPlan(2, 0, false);
    Files.move(target, folder.resolve("kept"));
    var first = at(brought, Map.of()).adopt(plan, observer, failed::add);
    assertThat(first.skipped()).as("of no known layout").isOne();
    Map<String, Object> layout =
        Map.of("block_size", 65_536, "shard_size", 16_384, "tensor_size", 8192);
    assertThat(
            at(brought, layout).adopt(new AdoptPlan(2, 0, true), observer, failed::add).adopted())
        .isOne();
    Files.move(folder.resolve("kept"), target);
    var second = at(brought, Map.of()).adopt(plan, observer, failed::add);
    assertThat(second.adopted()).as("of the layout of the other").isEqualTo(2);
    var third = at(brought, Map.of()).adopt(plan, observer, failed::add);
    assertThat(third.verifiable()).isEqualTo(2);
    assertThat(failed).isEmpty();
    stores
        .load(stores.open(new S3Store(), gateway.settings(brought)), BlockBytes.ids(1, 2))
        .requireOk();
    assertThat(Files.mismatch(bare, file(1))).isEqualTo(-1);
  }

  @Test
  void copiesBlocksThatAnEngineFinds() throws Exception {
    String to = prefix + "-copy";
    flip(file(3), 100);
    try (WholeBlocks reader = bucket().wholeBlocks();
        WholeBlocks writer = at(to, Map.of()).wholeBlocks()) {
      for (StoredBlock block : list()) {
        assertThat(writer.holds(block)).isFalse();
        WholeBlocks.WholeBlock read = reader.read(block);
        if (block.id().equals(ids.hex(3))) {
          assertThat(read.bytes()).isNull();
          assertThat(read.fault()).contains("shard 0 is damaged");
        } else {
          writer.write(block, Objects.requireNonNull(read.bytes()));
        }
      }
    }
    try (WholeBlocks writer = at(to, Map.of()).wholeBlocks()) {
      assertThat(list()).filteredOn(writer::holds).hasSize(BLOCKS - 1);
    }
    var store = stores.open(new S3Store(), gateway.settings(to));
    assertThat(store.lookup(ids).cardinality()).isEqualTo(BLOCKS - 1);
    stores.load(store, ids.slice(0, 3)).requireOk();
  }

  @Test
  void blocksOfUnevenTensorsHaveTheKeyThatEnginesUse() throws Exception {
    try (StoreFixture uneven = new StoreFixture(UNEVEN)) {
      uneven.dump(uneven.open(new S3Store(), gateway.settings(prefix + "-u")), ids).requireOk();
      try (WholeBlocks reader = at(prefix + "-u", Map.of()).wholeBlocks();
          WholeBlocks writer = at(prefix + "-v", Map.of()).wholeBlocks()) {
        at(prefix + "-u", Map.of())
            .list(
                observer,
                block -> writer.write(block, Objects.requireNonNull(reader.read(block).bytes())));
      }
      uneven.load(uneven.open(new S3Store(), gateway.settings(prefix + "-v")), ids).requireOk();
    }
  }

  @Test
  void whatDoesNotAnswerIsAnError() {
    S3Store store = new S3Store();
    StoreDirectories gone =
        store
            .blocks(
                StoreConfig.of(
                    Map.of("s3_endpoints", gateway.endpoint(), "s3_bucket", "there-is-none")))
            .orElseThrow();
    assertThatThrownBy(() -> gone.summarize(observer))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("there-is-none");
    assertThatThrownBy(() -> store.keysOf("s3:///x")).hasMessageContaining("s3://bucket/prefix");
  }
}
