package ucm.store.nfs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import ucm.api.admin.StoreDirectories.Damage;
import ucm.api.admin.StoreDirectories.VerifyPlan;
import ucm.api.config.StoreConfig;

/**
 * Two nodes on a network file system: two processes, each with a mount of its own, dump and load each other's
 * blocks while the server goes away and comes back. One of them goes past the page cache.
 */
final class TwoNodes {

  private static final int BLOCKS = 64;
  // Ordered when the server is gone already.
  private static final int LATE_BLOCKS = 8;
  // For 16 blocks or so.
  private static final String ROOM = "posix_capacity_gb=0.001";
  private static final String[] HEALTH = {
    "store_health.health_check_interval_s=1", "store_health.health_check_timeout_s=2"
  };

  /** What happens to the server. */
  interface Outage {
    void begins() throws Exception;

    void ends() throws Exception;
  }

  private TwoNodes() {}

  /** Has them serve each other, and fails when a block is lost, wrong, or left half written. */
  static void serveEachOther(Path here, Path there, Outage outage) throws Exception {
    try (Node first = new Node(here, with("use_direct=true"));
        Node second = new Node(there, with("durability=fdatasync"))) {
      serveEachOther(first, second, outage);
    }
    nothingIsLeft(here);
  }

  /**
   * The same, each with a local tier of its own that has room for a few blocks: in the first one they are
   * evicted, and the second one is full.
   */
  static void serveEachOtherWithLocalTiers(Path here, Path there, Path local, Outage outage)
      throws Exception {
    try (Node first =
            new Node(
                here,
                with(
                    "posix_storage_backends=" + local.resolve("first"),
                    ROOM,
                    "posix_gc_check_interval_sec=1"));
        Node second =
            new Node(
                there,
                with(
                    "posix_storage_backends=" + local.resolve("second"),
                    ROOM,
                    "posix_gc_enable=false"))) {
      serveEachOther(first, second, outage);
    }
    nothingIsLeft(here);
  }

  private static void serveEachOther(Node first, Node second, Outage outage) throws Exception {
    first.does("dump", 1, BLOCKS);
    second.does("dump", 2, BLOCKS);
    loadsAll(first, 2, BLOCKS);
    loadsAll(second, 1, BLOCKS);
    goOnThrough(outage, first, second);
    loadsAll(first, 4, BLOCKS);
    loadsAll(second, 3, BLOCKS);
    loadsAll(first, 6, LATE_BLOCKS);
    loadsAll(second, 5, LATE_BLOCKS);
    loadsAll(first, 1, BLOCKS);
    loadsAll(second, 2, BLOCKS);
    first.end();
    second.end();
  }

  private static String[] with(String... settings) {
    return Stream.concat(Stream.of(settings), Stream.of(HEALTH)).toArray(String[]::new);
  }

  private static void goOnThrough(Outage outage, Node first, Node second) throws Exception {
    first.order("dump", 3, BLOCKS);
    second.order("dump", 4, BLOCKS);
    first.until("durable 3");
    second.until("durable 3");
    outage.begins();
    // By now a node may be through with all of the others.
    first.order("dump", 5, LATE_BLOCKS);
    second.order("dump", 6, LATE_BLOCKS);
    first.until("trouble");
    second.until("trouble");
    outage.ends();
    first.until("done dump 5");
    second.until("done dump 6");
  }

  /**
   * A node may not see for some seconds what another has done, nor read through what broke; then it sees
   * all. Whatever it loads is right each time.
   */
  private static void loadsAll(Node node, long seed, int count) throws InterruptedException {
    List<String> said = new ArrayList<>();
    TestNfs.awaitThat(
        "all blocks of " + seed,
        () -> {
          try {
            said.clear();
            said.addAll(node.does("load", seed, count));
          } catch (InterruptedException e) {
            throw new AssertionError(e);
          }
          return said.stream().filter(line -> line.startsWith("loaded")).count() == count;
        });
  }

  /** Every block is whole, and what failed dumps left is gone after the next start. */
  private static void nothingIsLeft(Path mount) throws Exception {
    StoreConfig config = StoreConfig.of(Map.of("storage_backends", mount.toString()));
    List<Damage> damaged = new ArrayList<>();
    var verified =
        new NfsStore()
            .directories(config)
            .verify(new VerifyPlan(2, 0, false), (done, total) -> {}, damaged::add);
    assertThat(damaged).isEmpty();
    assertThat(verified.blocks()).isEqualTo(4 * BLOCKS + 2 * LATE_BLOCKS);
    try (TestNfs nfs = new TestNfs(mount)) {
      nfs.open(Map.of());
      List<String> left = new ArrayList<>();
      TestNfs.awaitThat(
          () -> "removal of temporary files, of which are left: " + left,
          () -> {
            try {
              left.clear();
              left.addAll(nfs.temps());
              left.addAll(nfs.files(".quarantine"));
              return left.isEmpty();
            } catch (IOException e) {
              throw new AssertionError(e);
            }
          });
    }
  }
}
