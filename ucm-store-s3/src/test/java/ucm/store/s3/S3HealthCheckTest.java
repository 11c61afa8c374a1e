package ucm.store.s3;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.admin.HealthCheck.Finding;
import ucm.api.admin.HealthCheck.Status;
import ucm.api.config.StoreConfig;
import ucm.store.s3.FaultProxy.Fault;

final class S3HealthCheckTest {

  @TempDir private static Path folder;
  @AutoClose private static VersityGateway gateway;

  @BeforeAll
  static void startsTheServer() throws Exception {
    VersityGateway.require();
    gateway = VersityGateway.start(folder);
  }

  private static Map<String, Finding> run(Map<String, Object> more) {
    Map<String, Object> settings = new HashMap<>(gateway.settings("doctor"));
    settings.putAll(more);
    Map<String, Finding> found = new HashMap<>();
    new S3HealthCheck()
        .run(StoreConfig.of(settings), List.of("Cache", "S3"))
        .forEach(finding -> found.put(finding.subject().split(" ")[0], finding));
    return found;
  }

  @Test
  void findsAllRightsOnAServerThatGivesThem() {
    Map<String, Finding> found = run(Map.of());
    for (String right : List.of("PutObject", "GetObject", "DeleteObject", "ListBucket")) {
      assertThat(found.get("s3:" + right).status()).as(right).isEqualTo(Status.OK);
    }
    assertThat(found.get("If-None-Match").status()).isEqualTo(Status.OK);
    assertThat(found.get("reads").status()).isEqualTo(Status.OK);
    assertThat(found.get("clock").status()).isEqualTo(Status.OK);
    assertThat(found.get("old").status()).as("no lifecycle rule").isEqualTo(Status.WARNING);
  }

  @ParameterizedTest
  @ValueSource(strings = {"versitygw", "ceph"})
  void tellsWhetherTheCapacityCanBeKept(String server) {
    String endpoint = "ceph".equals(server) ? CephCluster.shared(1).endpoint() : gateway.endpoint();
    Map<String, Finding> found = run(Map.of("s3_capacity_gb", 3, "s3_endpoints", endpoint));
    assertThat(found.get("old").status()).isEqualTo(Status.OK);
    assertThat(found.get("If-Match").status()).isEqualTo(Status.OK);
    assertThat(found.get("reads").status()).isEqualTo(Status.OK);
    assertThat(found.values()).noneMatch(finding -> finding.status() == Status.FAILED);
  }

  @Test
  void warnsOfAClockThatDiffers() throws Exception {
    try (FaultProxy proxy = new FaultProxy(gateway.port())) {
      proxy.shiftDates(Duration.ofMinutes(10));
      assertThat(run(Map.of("s3_endpoints", proxy.endpoint())).get("clock").found())
          .matches("differs from the server's by (599|600) s");
      proxy.dropDates();
      Finding untold = run(Map.of("s3_endpoints", proxy.endpoint())).get("clock");
      assertThat(untold.found()).isEqualTo("the server does not tell its time");
      assertThat(untold.advice()).isEmpty();
    }
  }

  @Test
  void tellsOfABucketThatIsNotThereAndOfAServerThatIsNot() {
    assertThat(run(Map.of("s3_bucket", "nobody-made-it")).get("bucket").advice())
        .contains("create the bucket");
    assertThat(run(Map.of("s3_endpoints", "http://127.0.0.1:1")).get("bucket").status())
        .isEqualTo(Status.FAILED);
  }

  @Test
  void tellsWhichRightIsMissingAndWhatAServerCannot() throws Exception {
    try (FaultProxy proxy = new FaultProxy(gateway.port())) {
      proxy.fail("DELETE", Fault.STATUS_403);
      Map<String, Finding> found = run(Map.of("s3_endpoints", proxy.endpoint()));
      assertThat(found.get("s3:DeleteObject").status()).isEqualTo(Status.FAILED);
      assertThat(found.get("s3:PutObject").status()).isEqualTo(Status.OK);
      proxy.fail(one -> one.head().contains("If-None-Match") ? Fault.STATUS_501 : Fault.NONE);
      found = run(Map.of("s3_endpoints", proxy.endpoint()));
      assertThat(found.get("If-None-Match").status()).isEqualTo(Status.WARNING);
    }
  }

  @Test
  void saysNothingOfOtherPipelines() {
    assertThat(new S3HealthCheck().run(StoreConfig.of(Map.of()), List.of("Cache", "Posix")))
        .isEmpty();
  }
}
