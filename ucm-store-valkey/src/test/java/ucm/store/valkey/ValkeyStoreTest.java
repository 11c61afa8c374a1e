package ucm.store.valkey;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.time.Duration;
import java.util.Base64;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;
import org.testcontainers.DockerClientFactory;
import org.testcontainers.containers.GenericContainer;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.ShardOutcome;
import ucm.api.Store;
import ucm.api.StoreContext;
import ucm.api.StoreException;
import ucm.api.TransferResult;
import ucm.api.config.StoreConfig;
import ucm.testkit.BlockBytes;
import ucm.testkit.StoreFixture;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;

/** What the contract does not know: time to live, passwords, TLS, failing servers. */
@ParameterizedClass
@EnumSource
final class ValkeyStoreTest {

  private static final BlockLayout LAYOUT = BlockLayout.uniform(4096, 4096, 8192);
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  @TempDir Path directory;

  @Parameter private ServerProgram program;

  private final BlockIds ids = BlockBytes.ids(1, 4);
  private final TransferMemory memory =
      TransferMemory.ofBlocks(LAYOUT, Placement.SCATTERED, ids).fill();

  @BeforeEach
  void needsAServer() throws Exception {
    ServerProcess.require(program);
  }

  private static Store open(Map<String, Object> more) {
    Map<String, Object> all = StoreFixture.workerKeys(LAYOUT);
    all.putAll(more);
    StoreConfig config = StoreConfig.of(all);
    Store store = new ValkeyStore();
    store.configure(config);
    assertThat(config.problems()).isEmpty();
    store.open(StoreContext.of(null));
    return store;
  }

  private void requireKeeps(Store store) throws Exception {
    store.dump(memory.transfer()).await(PATIENCE).requireOk();
    store.load(memory.scribble().transfer()).await(PATIENCE).requireOk();
    memory.check();
  }

  @Test
  void letsTheServerRemoveBlocksAfterTheirTime() throws Exception {
    try (ServerProcess server = ServerProcess.start(program);
        Store store = open(Map.of("valkey_nodes", server.node(), "valkey_ttl_s", 3600))) {
      requireKeeps(store);
      String key = server.ask("keys", "*").lines().findFirst().orElseThrow();
      assertThat(Integer.parseInt(server.ask("ttl", key))).isBetween(3000, 3600);
    }
  }

  @Test
  void servesNothingThatWasDamaged() throws Exception {
    try (ServerProcess server = ServerProcess.start(program);
        Store store = open(Map.of("valkey_nodes", server.node()))) {
      requireKeeps(store);
      for (String key : server.ask("keys", "*").lines().toList()) {
        server.ask("hset", key, "0", "x".repeat(4100));
        server.ask("hset", key, "1", "short");
      }
      TransferResult result = store.load(memory.transfer()).await(PATIENCE);
      for (int shard = 0; shard < 8; shard++) {
        assertThat(result.outcome(shard)).isEqualTo(ShardOutcome.CORRUPT);
      }
    }
  }

  @Test
  void logsInAndSpeaksTls() throws Exception {
    assumeTrue(program == ServerProgram.INSTALLED, "the valkey-server of PyPI has no TLS");
    makeCertificate();
    Path password = Files.writeString(directory.resolve("password"), "open sesame\n");
    try (ServerProcess server =
        ServerProcess.start(
            program,
            "--port",
            "0",
            "--tls-port",
            "PORT",
            "--tls-auth-clients",
            "no",
            "--tls-cert-file",
            directory.resolve("cert.pem").toString(),
            "--tls-key-file",
            directory.resolve("key.pem").toString(),
            "--tls-ca-cert-file",
            directory.resolve("cert.pem").toString(),
            "--requirepass",
            "open sesame")) {
      Map<String, Object> settings = new TreeMap<>();
      settings.put("valkey_nodes", server.node());
      settings.put("valkey_tls", true);
      settings.put("valkey_tls_ca", directory.resolve("cert.pem").toString());
      settings.put("valkey_password_file", password.toString());
      try (Store store = open(settings)) {
        requireKeeps(store);
      }
      Files.writeString(password, "wrong");
      assertThatThrownBy(() -> open(settings))
          .isInstanceOf(StoreException.class)
          .hasMessageContaining(server.port + "")
          .hasMessageContaining("WRONGPASS");
      settings.remove("valkey_tls_ca");
      assertThatThrownBy(() -> open(settings))
          .as("a certificate without a known issuer")
          .isInstanceOf(StoreException.class);
    }
  }

  /** A key pair and its certificate in the form that the server reads. */
  private void makeCertificate() throws Exception {
    Path keys = directory.resolve("keys.p12");
    String keytool = Path.of(System.getProperty("java.home"), "bin", "keytool").toString();
    Process made =
        new ProcessBuilder(
                keytool,
                "-genkeypair",
                "-alias",
                "server",
                "-keyalg",
                "EC",
                "-dname",
                "CN=ucm",
                "-ext",
                "san=ip:127.0.0.1",
                "-storepass",
                "secret",
                "-keystore",
                keys.toString())
            .inheritIO()
            .start();
    assertThat(made.waitFor()).isZero();
    KeyStore store = KeyStore.getInstance(keys.toFile(), "secret".toCharArray());
    pem("key.pem", "PRIVATE KEY", store.getKey("server", "secret".toCharArray()).getEncoded());
    pem("cert.pem", "CERTIFICATE", store.getCertificate("server").getEncoded());
  }

  private void pem(String file, String what, byte[] bytes) throws Exception {
    String body = Base64.getMimeEncoder().encodeToString(bytes);
    Files.writeString(
        directory.resolve(file),
        "-----BEGIN " + what + "-----\n" + body + "\n-----END " + what + "-----\n");
  }

  @Test
  void endsAtItsDeadlineWhenTheServerHangsAndGoesOnAfterwards() throws Exception {
    try (ServerProcess server = ServerProcess.start(program);
        Store store = open(Map.of("valkey_nodes", server.node(), "timeout_ms", 5000))) {
      server.signal("STOP");
      TransferResult result = store.dump(memory.transfer()).await(PATIENCE);
      assertThat(result.okCount()).isZero();
      assertThat(result.outcome(0)).isEqualTo(ShardOutcome.EXPIRED);
      assertThat(store.lookup(ids).isEmpty()).isTrue();
      assertThat(store.flush(PATIENCE).failedCount()).isEqualTo(4);
      memory.scribble().checkScribbled();
      server.signal("CONT");
      memory.fill();
      requireKeeps(store);
    }
  }

  @Test
  void answersThatItHasNothingWhenTheServerIsGone() throws Exception {
    ServerProcess server = ServerProcess.start(program);
    try (Store store = open(Map.of("valkey_nodes", server.node()))) {
      requireKeeps(store);
      server.close();
      assertThat(store.lookup(ids).isEmpty()).isTrue();
      assertThat(store.load(memory.transfer()).await(PATIENCE).okCount()).isZero();
    }
    assertThatThrownBy(() -> open(Map.of("valkey_nodes", server.node())))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("valkey_nodes")
        .hasMessageContaining("" + server.port);
  }

  @Test
  void refusesWhatDoesNotFitIntoTheServer() throws Exception {
    try (ServerProcess server = ServerProcess.start(program, "--maxmemory", "1000000");
        Store store = open(Map.of("valkey_nodes", server.node()))) {
      TransferResult result =
          store
              .dump(
                  TransferMemory.ofBlocks(LAYOUT, Placement.SCATTERED, BlockBytes.ids(2, 200))
                      .fill()
                      .transfer())
              .await(PATIENCE);
      assertThat(result.outcome(399)).isEqualTo(ShardOutcome.REFUSED);
    }
  }

  @Test
  void worksWithTheServersOwnImage() throws Exception {
    assumeTrue(DockerClientFactory.instance().isDockerAvailable(), "Docker does not answer");
    try (GenericContainer<?> server =
        new GenericContainer<>("valkey/valkey:8").withExposedPorts(6379)) {
      server.start();
      String node = server.getHost() + ":" + server.getMappedPort(6379);
      try (Store store = open(Map.of("valkey_nodes", node))) {
        requireKeeps(store);
      }
    }
  }
}
