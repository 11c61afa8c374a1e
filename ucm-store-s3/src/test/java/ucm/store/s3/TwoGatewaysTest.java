package ucm.store.s3;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.testkit.BlockBytes;
import ucm.testkit.StoreFixture;

/** Two of versitygw over one folder. */
final class TwoGatewaysTest {

  @TempDir private static Path folder;
  @AutoClose private static VersityGateway one;
  @AutoClose private static VersityGateway other;

  @BeforeAll
  static void startsTheServers() throws Exception {
    VersityGateway.require();
    one = VersityGateway.start(folder);
    other = VersityGateway.start(folder);
  }

  private static Map<String, Object> settings(String endpoints, String prefix) {
    Map<String, Object> settings = new HashMap<>(one.settings(prefix));
    settings.put("s3_endpoints", endpoints);
    return settings;
  }

  @Test
  void asksBoth() throws Exception {
    BlockIds ids = BlockBytes.ids(1, 32);
    try (StoreFixture stores = new StoreFixture(BlockLayout.uniform(4096, 4096, 4096));
        FaultProxy first = new FaultProxy(one.port());
        FaultProxy second = new FaultProxy(other.port())) {
      Store store =
          stores.open(new S3Store(), settings(first.endpoint() + "," + second.endpoint(), "both"));
      stores.dump(store, ids).requireOk();
      stores.load(store, ids).requireOk();
      assertThat(first.count("GET") + second.count("GET")).isEqualTo(ids.size());
      assertThat(first.count("GET")).isPositive();
      assertThat(second.count("GET")).isPositive();
    }
  }

  @Test
  @Timeout(120)
  void goesOnWithOneWhenTheOtherIsKilledAndUsesItWhenItIsBack() throws Exception {
    BlockIds ids = BlockBytes.ids(2, 8);
    try (StoreFixture stores = new StoreFixture(BlockLayout.uniform(4096, 4096, 4096))) {
      Store store =
          stores.open(
              new S3Store(), settings(one.endpoint() + "," + other.endpoint(), "one-of-two"));
      stores.dump(store, ids).requireOk();
      other.kill();
      while (stores.metrics.gauge("s3_shut_endpoints") == 0) {
        stores.load(store, ids);
      }
      // One request at a time may try the endpoint again, and fail.
      while (!stores.load(store, ids).ok()) {
        Thread.onSpinWait();
      }
      other.startAgain();
      while (stores.metrics.gauge("s3_shut_endpoints") != 0) {
        stores.load(store, ids);
      }
      stores.load(store, ids).requireOk();
    }
  }
}
