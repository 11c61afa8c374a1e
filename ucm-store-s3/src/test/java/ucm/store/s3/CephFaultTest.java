package ucm.store.s3;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.BitSet;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.api.ShardOutcome;
import ucm.api.Store;
import ucm.api.TransferResult;
import ucm.testkit.BlockBytes;

/** Ceph behind the proxy; and with its gateway, or a part that keeps objects, stopped. */
class CephFaultTest extends S3FaultContract {

  private static final BlockIds IDS = BlockBytes.ids(20, 12);
  private static final BlockIds OTHERS = BlockBytes.ids(21, 4);

  private interface Signal {
    void send(String name) throws Exception;
  }

  @BeforeAll
  static void needsCeph() {
    CephCluster.require();
  }

  /** How many parts keep objects. */
  int osds() {
    return 1;
  }

  @Override
  final CephCluster server() {
    return CephCluster.shared(osds());
  }

  @Test
  void failsInTimeWhileTheGatewayIsStopped() throws Exception {
    assertThat(failsInTimeWhileStopped(server()::signal).cardinality()).isEqualTo(IDS.size());
  }

  /** Each part has some of the blocks, and all of them together have all. */
  @Test
  void failsInTimeWhileWhatKeepsTheObjectsIsStopped() throws Exception {
    BitSet failed = new BitSet();
    for (int osd = 0; osd < osds(); osd++) {
      int stopped = osd;
      failed.or(failsInTimeWhileStopped(name -> server().signalOsd(stopped, name)));
    }
    assertThat(failed.cardinality()).isEqualTo(IDS.size());
  }

  /** Which blocks were not loaded meanwhile; later all are. */
  private BitSet failsInTimeWhileStopped(Signal signal) throws Exception {
    Map<String, Object> direct =
        Map.of("s3_endpoints", server().endpoint(), "timeout_ms", 5000, "s3_draft_mb", 1);
    Store store = open(direct);
    stores.dump(store, IDS).requireOk();
    BitSet failed = new BitSet();
    signal.send("STOP");
    try {
      TransferResult loaded = stores.load(store, IDS);
      int shards = 4;
      for (int i = 0; i < IDS.size() * shards; i++) {
        if (loaded.outcome(i) != ShardOutcome.OK) {
          failed.set(i / shards);
        }
      }
      assertThat(loaded.okCount()).isEqualTo((IDS.size() - failed.cardinality()) * shards);
      BitSet found = store.lookup(IDS);
      assertThat(found.cardinality()).isLessThanOrEqualTo(IDS.size());
      stores.dump(store, OTHERS);
    } finally {
      signal.send("CONT");
    }
    Store other = open(direct);
    while (!stores.load(other, IDS).ok() || !stores.dump(other, OTHERS).ok()) {
      // The requests of before may be in the way for a while; the test has its own bound.
      Thread.onSpinWait();
    }
    stores.load(other, OTHERS).requireOk();
    return failed;
  }
}
