package ucm.store.s3;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.classic.spi.IThrowableProxy;
import ch.qos.logback.core.read.ListAppender;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.FlushResult;
import ucm.api.ShardOutcome;
import ucm.api.Store;
import ucm.api.Task;
import ucm.api.TransferResult;
import ucm.store.s3.FaultProxy.Fault;
import ucm.store.s3.block.ObjectFormat;
import ucm.store.s3.client.ObjectReply;
import ucm.store.s3.client.ObjectRequest;
import ucm.testkit.BlockBytes;
import ucm.testkit.StoreFixture;
import ucm.testkit.TransferMemory;

/** A server that does wrong: what it says is a miss or a failure in time, and never a wrong byte. */
@Timeout(300)
abstract class S3FaultContract {

  private static final BlockLayout LAYOUT = BlockLayout.uniform(8192, 16_384, 65_536);

  private final String prefix = "t/" + UUID.randomUUID();
  private final ListAppender<ILoggingEvent> logged = new ListAppender<>();
  private final Logger root = (Logger) LoggerFactory.getLogger(Logger.ROOT_LOGGER_NAME);
  @AutoClose private FaultProxy proxy;
  @AutoClose private RawObjects objects;
  @AutoClose final StoreFixture stores = new StoreFixture(LAYOUT);

  /** The server behind the proxy. */
  abstract ObjectServer server() throws Exception;

  @BeforeEach
  final void startsTheProxy() throws Exception {
    proxy = new FaultProxy(server().port());
    objects = new RawObjects(server().settings(prefix));
    logged.start();
    root.addAppender(logged);
    ((Logger) LoggerFactory.getLogger("ucm")).setLevel(Level.TRACE);
  }

  @AfterEach
  final void saysNothingSecret() {
    stores.close();
    root.detachAppender(logged);
    ((Logger) LoggerFactory.getLogger("ucm")).setLevel(null);
    requireNoSecretInLogs();
  }

  private void requireNoSecretInLogs() {
    for (ILoggingEvent event : logged.list) {
      requireNoSecret(event.getFormattedMessage());
      for (IThrowableProxy e = event.getThrowableProxy(); e != null; e = e.getCause()) {
        requireNoSecret(e.getMessage());
      }
    }
  }

  private static void requireNoSecret(String text) {
    assertThat(String.valueOf(text))
        .doesNotContain(System.getenv("AWS_SECRET_ACCESS_KEY"), System.getenv("AWS_ACCESS_KEY_ID"));
  }

  private static void requireNoSecret(Throwable fault) {
    for (Throwable e = fault; e != null; e = e.getCause()) {
      requireNoSecret(e.toString());
    }
  }

  final Store open(Map<String, Object> more) throws Exception {
    Map<String, Object> all = new HashMap<>(server().settings(prefix));
    all.put("s3_endpoints", proxy.endpoint());
    all.put("s3_first_byte_ms", 3000);
    all.put("s3_known_s", 0);
    all.putAll(more);
    return stores.open(new S3Store(), all);
  }

  private Store open() throws Exception {
    return open(Map.of());
  }

  @ParameterizedTest
  @EnumSource
  void loadsNoWrongByteAndEachEnds(Fault fault) throws Exception {
    BlockIds ids = BlockBytes.ids(1, 3);
    Store store = open();
    stores.dump(store, ids).requireOk();
    proxy.fail("GET", fault);
    // StoreFixture compares what ends well.
    TransferResult result = stores.load(store, ids);
    boolean harmless = fault == Fault.NONE || fault == Fault.RESET_MID_PUT;
    if (fault == Fault.NONE) {
      result.requireOk();
    } else if (!harmless) {
      // Of a bit, or of half a body, the other shards are right, and seen to be.
      int right = fault == Fault.FLIP_BIT ? 9 : fault == Fault.SHORT_LENGTH ? 6 : 0;
      assertThat(result.okCount()).isEqualTo(right);
    }
    requireNoSecret(result.cause());
    proxy.heal();
    Store other = open();
    stores.load(other, ids).requireOk();
  }

  @ParameterizedTest
  @EnumSource(
      mode = EnumSource.Mode.EXCLUDE,
      names = {"FLIP_BIT", "FLIP_METADATA", "LONG_LENGTH", "SHORT_LENGTH", "CUT_BODY"})
  void looksUpNothingThatIsNotAnsweredAndGoesOn(Fault fault) throws Exception {
    BlockIds ids = BlockBytes.ids(2, 3);
    Store store = open();
    stores.dump(store, ids).requireOk();
    proxy.fail("HEAD", fault);
    boolean answers = fault == Fault.NONE || fault == Fault.ONLY_HEAD;
    if (fault != Fault.ONLY_HEAD) {
      assertThat(store.lookup(ids).cardinality()).isEqualTo(answers ? 3 : 0);
      assertThat(store.durable(ids).cardinality()).isEqualTo(answers ? 3 : 0);
    }
    proxy.heal();
    // Loads do not depend on what a look-up found, unless the server is left alone.
    Store other = open();
    assertThat(other.lookup(ids).cardinality()).isEqualTo(3);
  }

  @ParameterizedTest
  @EnumSource(
      mode = EnumSource.Mode.EXCLUDE,
      names = {"NONE", "FLIP_BIT", "FLIP_METADATA", "LONG_LENGTH", "SHORT_LENGTH", "CUT_BODY"})
  void dumpsThatFailAreToldAndLeaveNoHit(Fault fault) throws Exception {
    BlockIds ids = BlockBytes.ids(3, 2);
    Store store = open(Map.of("timeout_ms", 10_000));
    proxy.fail("PUT", fault);
    TransferResult result = stores.dump(store, ids);
    FlushResult flushed = store.flush(Duration.ofSeconds(60));
    requireNoSecret(result.cause());
    requireNoSecret(flushed.cause());
    if (fault == Fault.ONLY_HEAD) {
      // The server has it, and has begun to say so.
      return;
    }
    assertThat(result.ok()).isFalse();
    assertThat(flushed.failedCount()).isEqualTo(2);
    proxy.heal();
    Store other = open();
    assertThat(other.lookup(ids).cardinality()).isZero();
    stores.dump(other, ids).requireOk();
    stores.load(other, ids).requireOk();
  }

  /** What loads are verified by, without a request of its own. */
  @Test
  void aReadOfAPartBringsTheMetadata() throws Exception {
    BlockIds ids = BlockBytes.ids(14, 1);
    Store store = open();
    stores.dump(store, ids).requireOk();
    ByteBuffer into = ByteBuffer.allocate(100);
    ObjectReply reply =
        objects.send(ObjectRequest.get(key(prefix, ids), 20_000, into.capacity(), into::put));
    assertThat(reply.status()).isEqualTo(206);
    assertThat(reply.header("x-amz-meta-ucm"))
        .isNotEmpty()
        .isEqualTo(objects.head(key(prefix, ids)).header("x-amz-meta-ucm"));
    long before = proxy.asked.size();
    stores.loadShard(store, ids, 2).requireOk();
    assertThat(proxy.asked.size() - before).as("requests of a shard").isEqualTo(1);
  }

  @Test
  void asksOnceMoreForWhatWasDamagedOnTheWay() throws Exception {
    BlockIds ids = BlockBytes.ids(4, 1);
    Store store = open();
    stores.dump(store, ids).requireOk();
    AtomicInteger gets = new AtomicInteger();
    proxy.fail(
        one ->
            one.method().equals("GET") && gets.incrementAndGet() == 1
                ? Fault.FLIP_BIT
                : Fault.NONE);
    stores.load(store, ids).requireOk();
    assertThat(gets).hasValue(2);
  }

  @Test
  void doesNotBelieveThatABlockIsThereThatIsNot() throws Exception {
    BlockIds ids = BlockBytes.ids(5, 2);
    Store store = open();
    proxy.fail(one -> one.head().contains("If-None-Match") ? Fault.STATUS_412 : Fault.NONE);
    stores.dump(store, ids).requireOk();
    proxy.heal();
    assertThat(store.durable(ids).cardinality()).isEqualTo(2);
    stores.load(store, ids).requireOk();
  }

  @Test
  void replacesWhatIsNoWholeBlock() throws Exception {
    BlockIds ids = BlockBytes.ids(6, 1);
    Store store = open();
    stores.dump(store, ids).requireOk();
    objects.flip(key(prefix, ids), 20_000);
    TransferResult result = stores.load(store, ids);
    assertThat(result.outcome(0)).isEqualTo(ShardOutcome.OK);
    assertThat(result.outcome(1)).isEqualTo(ShardOutcome.CORRUPT);
    assertThat(store.lookup(ids).cardinality()).as("damaged").isZero();
    stores.dump(store, ids).requireOk();
    stores.load(store, ids).requireOk();

    objects.put(key(prefix, ids), new byte[100], Map.of());
    assertThat(open().lookup(ids).cardinality()).as("of another size").isZero();
    Store other = open();
    stores.dump(other, ids).requireOk();
    stores.load(other, ids).requireOk();
  }

  private static String key(String prefix, BlockIds id) {
    return new ObjectFormat(LAYOUT, prefix).key(id.high(0), id.low(0));
  }

  @Test
  void durableAsksTheServerWhateverIsKnown() throws Exception {
    BlockIds ids = BlockBytes.ids(7, 2);
    Store store = open(Map.of("s3_known_s", 3600));
    stores.dump(store, ids).requireOk();
    long before = proxy.count("HEAD");
    assertThat(store.lookup(ids).cardinality()).isEqualTo(2);
    assertThat(proxy.count("HEAD")).as("known").isEqualTo(before);
    objects.delete(key(prefix, ids.slice(1, 2)));
    assertThat(store.durable(ids).cardinality()).isEqualTo(1);
    assertThat(store.lookup(ids).cardinality()).as("forgotten at the first 404").isEqualTo(1);
  }

  @Test
  void asksAtMostSixtyTimesForAThousandBlocks() throws Exception {
    BlockIds ids = BlockBytes.ids(8, 1000);
    Store store = open(Map.of("s3_concurrency", 32));
    for (int stored : new int[] {0, 1, 17, 400}) {
      stores.dump(store, ids.slice(0, stored)).requireOk();
      long before = proxy.count("HEAD");
      assertThat(store.lookupPrefix(ids)).isEqualTo(stored - 1);
      assertThat(proxy.count("HEAD") - before).isLessThanOrEqualTo(60);
    }
  }

  /** The doctor says what is wrong; the endpoint is none that fails. */
  @Test
  void aClockThatDiffersIsAMissAndToldUntilItIsSet() throws Exception {
    BlockIds ids = BlockBytes.ids(15, 2);
    Store store = open();
    stores.dump(store, ids).requireOk();
    proxy.shiftDates(Duration.ofMinutes(10));
    assertThat(store.lookup(ids).cardinality()).isZero();
    TransferResult loaded = stores.load(store, ids);
    assertThat(loaded.okCount()).isZero();
    assertThat(loaded.cause()).hasMessageContaining("answer 403");
    proxy.shiftDates(Duration.ZERO);
    assertThat(stores.metrics.gauge("s3_shut_endpoints")).isZero();
    stores.load(store, ids).requireOk();
  }

  @Test
  void asksForLessWhenTheServerSaysSlowDownAndForMoreLater() throws Exception {
    BlockIds ids = BlockBytes.ids(16, 64);
    Store store = open(Map.of("s3_concurrency", 16));
    stores.dump(store, ids).requireOk();
    assertThat(stores.metrics.gauge("s3_window_requests")).isEqualTo(16);
    proxy.fail("GET", Fault.STATUS_503);
    assertThat(stores.load(store, ids.slice(0, 8)).okCount()).isZero();
    assertThat(stores.metrics.gauge("s3_window_requests")).isLessThanOrEqualTo(8);
    assertThat(stores.metrics.gauge("s3_shut_endpoints")).as("no fault").isZero();
    proxy.heal();
    while (stores.metrics.gauge("s3_window_requests") < 16) {
      stores.load(store, ids).requireOk();
    }
    // One of many answers: the others are repeated, and nothing fails.
    AtomicInteger gets = new AtomicInteger();
    proxy.fail(
        one ->
            one.method().equals("GET") && gets.incrementAndGet() % 16 == 0
                ? Fault.STATUS_503
                : Fault.NONE);
    stores.load(store, ids).requireOk();
  }

  @Test
  void asksForEachBlockWhenItIsTold() throws Exception {
    BlockIds ids = BlockBytes.ids(17, 100);
    Store store = open(Map.of("s3_lookup", "every"));
    stores.dump(store, ids.slice(0, 60)).requireOk();
    long before = proxy.count("HEAD");
    assertThat(store.lookupPrefix(ids)).isEqualTo(59);
    assertThat(proxy.count("HEAD") - before).isEqualTo(ids.size());
  }

  /** The server has said them, the store has logged, and the search would have found them. */
  @Test
  void theSearchForSecretsFindsThem() throws Exception {
    BlockIds ids = BlockBytes.ids(18, 1);
    Store store = open();
    proxy.fail(_ -> Fault.STATUS_403);
    Throwable cause = stores.load(store, ids).cause();
    assertThat(cause).hasMessageContaining("Made403");
    requireNoSecret(cause);
    String secret = System.getenv("AWS_SECRET_ACCESS_KEY");
    Throwable told = new IllegalStateException(new IllegalStateException("it is " + secret));
    assertThatThrownBy(() -> requireNoSecret(told)).isInstanceOf(AssertionError.class);
    LoggerFactory.getLogger("ucm.store.s3.Any").trace("it is {}", secret);
    assertThatThrownBy(this::requireNoSecretInLogs).isInstanceOf(AssertionError.class);
    logged.list.clear();
  }

  @Test
  void closesInTimeWhileAServerHangs() throws Exception {
    BlockIds ids = BlockBytes.ids(9, 2);
    Store store = open(Map.of("timeout_ms", 2000, "s3_first_byte_ms", 600_000));
    stores.dump(store, ids).requireOk();
    proxy.fail("GET", Fault.NO_ANSWER);
    TransferMemory memory = stores.memory(ids).scribble();
    Task task = store.load(memory.transfer());
    stores.close();
    assertThat(task.check()).as("ended by close").isTrue();
    assertThat(task.result().okCount()).isZero();
    proxy.heal();
    memory.checkScribbled();
  }

  @Test
  void leavesAServerAloneThatFailsAndComesBack() throws Exception {
    BlockIds ids = BlockBytes.ids(10, 1);
    Store store = open();
    stores.dump(store, ids).requireOk();
    proxy.fail(_ -> Fault.STATUS_500);
    TransferResult result = stores.load(store, ids);
    while (result.outcome(0) != ShardOutcome.REFUSED) {
      result = stores.load(store, ids);
    }
    int asked = proxy.asked.size();
    assertThat(store.lookup(ids).cardinality()).isZero();
    assertThat(proxy.asked.size()).as("refused without a request").isLessThanOrEqualTo(asked + 3);
    assertThat(stores.metrics.gauge("s3_shut_endpoints")).isOne();
    proxy.heal();
    while (!stores.load(store, ids).ok()) {
      // Until the pause is over; the test has its own bound.
      Thread.onSpinWait();
    }
    assertThat(stores.metrics.gauge("s3_shut_endpoints")).isZero();
  }

  @Test
  void loadsWhatAToolHasCopiedByItsFooter() throws Exception {
    BlockIds ids = BlockBytes.ids(11, 1);
    Store store = open();
    stores.dump(store, ids).requireOk();
    String key = key(prefix, ids);
    byte[] bytes = objects.get(key);
    objects.put(key, bytes, Map.of());
    Store other = open();
    assertThat(other.lookup(ids).cardinality()).isOne();
    stores.load(other, ids).requireOk();
    stores.loadShard(other, ids, 2).requireOk();

    bytes[40_000] ^= 1;
    objects.put(key, bytes, Map.of());
    assertThat(stores.loadShard(other, ids, 2).outcome(0)).isEqualTo(ShardOutcome.CORRUPT);
  }
}
