package ucm.store.s3;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.store.s3.block.BlockRefresh;
import ucm.store.s3.block.Bucket;
import ucm.store.s3.block.BucketCollector;
import ucm.store.s3.block.KnownBlocks;
import ucm.store.s3.block.ObjectFormat;
import ucm.store.s3.block.RequestWindow;
import ucm.store.s3.block.S3Metrics;
import ucm.store.s3.client.ObjectList;
import ucm.testkit.BlockBytes;
import ucm.testkit.RecordingMetrics;
import ucm.testkit.StoreFixture;

/** What {@code s3_capacity_gb} keeps, on both servers. */
@Timeout(value = 180, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class CollectorTest {

  private static final BlockLayout LAYOUT = BlockLayout.uniform(8192, 16_384, 1 << 16);
  private static final Duration LONG = Duration.ofMinutes(10);
  private static final long NANOS = TimeUnit.MINUTES.toNanos(1);

  @TempDir private static Path folder;
  @AutoClose private static VersityGateway gateway;

  private final String prefix = "c/" + UUID.randomUUID();
  private final ObjectFormat format = new ObjectFormat(LAYOUT, prefix);
  private final KnownBlocks known = new KnownBlocks(LONG.toNanos(), System::nanoTime);
  private final RecordingMetrics collected = new RecordingMetrics();
  @AutoClose private final StoreFixture stores = new StoreFixture(LAYOUT);

  @BeforeAll
  static void startsTheServer() throws Exception {
    VersityGateway.require();
    gateway = VersityGateway.start(folder);
  }

  private static ObjectServer server(String name) {
    return "ceph".equals(name) ? CephCluster.shared(1) : gateway;
  }

  private BucketCollector collector(RawObjects objects, int blocks, Duration lease) {
    Bucket bucket =
        new Bucket(
            objects.client,
            format,
            known,
            new S3Metrics(collected),
            new RequestWindow(1),
            Runnable::run,
            System::nanoTime,
            new BlockRefresh("", 0, LONG),
            new AtomicBoolean());
    return new BucketCollector(bucket, prefix, blocks * format.objectSize(), lease, NANOS);
  }

  private String key(BlockIds id) {
    return format.key(id.high(0), id.low(0));
  }

  /** Waits until the server's clock shows another second than when an object was stored. */
  private static void awaitNextSecond(RawObjects objects, String key) {
    while (objects.head(key).age().isZero()) {
      Thread.onSpinWait();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"versitygw", "ceph"})
  void removesTheOldestAndOneProcessDoesIt(String name) throws Exception {
    BlockIds old = BlockBytes.ids(1, 4);
    BlockIds young = BlockBytes.ids(2, 4);
    try (RawObjects objects = new RawObjects(server(name).settings(prefix))) {
      Store store = stores.open(new S3Store(), server(name).settings(prefix));
      stores.dump(store, old).requireOk();
      awaitNextSecond(objects, key(old.slice(3, 4)));
      stores.dump(store, young).requireOk();
      objects.put(prefix + "/of-another", new byte[1 << 20], Map.of());

      BucketCollector first = collector(objects, 8, LONG);
      assertThat(first.collect()).as("they fit").isZero();
      BucketCollector second = collector(objects, 4, LONG);
      assertThat(second.collect()).as("the first has the lease").isZero();
      BucketCollector third = collector(objects, 4, Duration.ZERO);
      assertThat(third.collect()).as("the lease was not renewed").isEqualTo(5);
      assertThat(collected.count("s3_collected_blocks")).isEqualTo(5);
      assertThat(store.durable(old).cardinality()).isZero();
      assertThat(store.durable(young).cardinality()).isEqualTo(3);
      assertThat(objects.head(prefix + "/of-another").ok()).isTrue();
      assertThat(collector(objects, 1, LONG).collect()).as("the third has it").isZero();
      BucketCollector back = collector(objects, 0, Duration.ZERO);
      assertThat(back.collect()).isEqualTo(3);
      assertThat(third.collect()).as("taken over").isZero();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"versitygw", "ceph"})
  void listsAndRemovesMoreThanAPage(String name) {
    BlockIds ids = BlockBytes.ids(3, ObjectList.PAGE + 20);
    try (RawObjects objects = new RawObjects(server(name).settings(prefix))) {
      for (int i = 0; i < ids.size(); i++) {
        objects.put(key(ids.slice(i, i + 1)), new byte[1], Map.of());
      }
      ObjectList list = new ObjectList(objects.client, prefix, NANOS);
      assertThat(list.page("")).hasSizeBetween(1, ObjectList.PAGE);
      assertThat(collector(objects, 0, LONG).collect()).isEqualTo(ids.size());
      assertThat(list.page("")).hasSize(1).first().matches(it -> it.key().endsWith("/collector"));
    }
  }

  /** On Ceph, as on AWS; versitygw copies the metadata alone, and leaves the time. */
  @Test
  void aLoadMakesAnOldObjectNew() throws Exception {
    BlockIds id = BlockBytes.ids(4, 1);
    ObjectServer ceph = CephCluster.shared(1);
    try (RawObjects objects = new RawObjects(ceph.settings(prefix))) {
      Store store = stores.open(new S3Store(), ceph.settings(prefix));
      stores.dump(store, id).requireOk();
      var before = objects.head(key(id));
      awaitNextSecond(objects, key(id));
      var old = objects.head(key(id));
      new BlockRefresh(ObjectServer.BUCKET, 1, LONG).loaded(objects.client, key(id), old);
      assertThat(objects.head(key(id)).time("last-modified"))
          .as("not old enough")
          .isEqualTo(before.time("last-modified"));
      new BlockRefresh(ObjectServer.BUCKET, 1, Duration.ZERO).loaded(objects.client, key(id), old);
      while (objects.head(key(id)).time("last-modified").equals(before.time("last-modified"))) {
        Thread.onSpinWait();
      }
      Store other = stores.open(new S3Store(), ceph.settings(prefix));
      stores.load(other, id).requireOk();
      stores.loadShard(other, id, 1).requireOk();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"versitygw", "ceph"})
  void aStoreKeepsItsCapacityByItself(String name) throws Exception {
    Map<String, Object> settings = new HashMap<>(server(name).settings(prefix));
    settings.put("s3_capacity_gb", 5.0 * format.objectSize() / (1 << 30));
    Store store = stores.open(new S3Store(), settings);
    BlockIds ids = BlockBytes.ids(5, 12);
    stores.dump(store, ids).requireOk();
    while (stores.metrics.count("s3_collected_blocks") < 8) {
      Thread.onSpinWait();
    }
    assertThat(store.durable(ids).cardinality()).isEqualTo(4);
    assertThat(store.lookup(ids)).as("none is thought known").isEqualTo(store.durable(ids));
  }
}
