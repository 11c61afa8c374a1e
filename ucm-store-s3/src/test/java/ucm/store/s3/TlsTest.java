package ucm.store.s3;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.api.TransferResult;
import ucm.api.admin.HealthCheck.Status;
import ucm.api.config.StoreConfig;
import ucm.testkit.BlockBytes;
import ucm.testkit.StoreFixture;

/** A server whose certificate an authority of {@code s3_ca_file} has signed, or not. */
final class TlsTest {

  private static final BlockIds IDS = BlockBytes.ids(1, 3);

  @TempDir private static Path folder;
  @AutoClose private static VersityGateway gateway;
  private static TlsFiles right;
  private static TlsFiles wrong;

  @AutoClose
  private final StoreFixture stores = new StoreFixture(BlockLayout.uniform(4096, 8192, 65_536));

  @BeforeAll
  static void startsTheServer() throws Exception {
    VersityGateway.require();
    right = TlsFiles.make(folder, "right");
    wrong = TlsFiles.make(folder, "wrong");
    gateway = VersityGateway.start(folder, right);
  }

  private Store open(Map<String, Object> more) {
    Map<String, Object> settings = new HashMap<>(gateway.settings("tls"));
    settings.putAll(more);
    return stores.open(new S3Store(), settings);
  }

  @Test
  void movesBlocksWhenTheAuthorityIsRight() throws Exception {
    Store store = open(Map.of("s3_ca_file", right.certificate().toString()));
    stores.dump(store, IDS).requireOk();
    stores.load(store, IDS).requireOk();
    stores.loadShard(store, IDS, 3).requireOk();
  }

  /** The authorities of the machine, those of another file, and no TLS at all. */
  @ParameterizedTest
  @ValueSource(strings = {"machine", "wrong", "plain"})
  void movesNothingOtherwise(String how) throws Exception {
    stores.dump(open(Map.of("s3_ca_file", right.certificate().toString())), IDS).requireOk();
    Map<String, Object> settings =
        switch (how) {
          case "wrong" -> Map.of("s3_ca_file", wrong.certificate().toString());
          case "plain" -> Map.of("s3_endpoints", "http://127.0.0.1:" + gateway.port());
          default -> Map.of();
        };
    Map<String, Object> briefly = new HashMap<>(settings);
    // For a server that cannot be trusted is asked again until then.
    briefly.put("timeout_ms", 1000);
    Store store = open(briefly);
    assertThat(store.lookup(IDS).cardinality()).isZero();
    TransferResult loaded = stores.load(store, IDS);
    assertThat(loaded.okCount()).isZero();
    assertThat(stores.dump(store, BlockBytes.ids(2, 1)).okCount()).isZero();
    Map<String, Object> all = new HashMap<>(gateway.settings("tls"));
    all.putAll(settings);
    // The doctor waits four times as long.
    all.put("s3_first_byte_ms", 500);
    assertThat(new S3HealthCheck().run(StoreConfig.of(all), List.of("S3")).getFirst().status())
        .isEqualTo(Status.FAILED);
  }
}
