package ucm.store.s3;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.stream.Stream;

/**
 * Ceph with its S3 gateway, on the loopback interface: a monitor, a manager, some object storage daemons that
 * keep what they have in memory, and radosgw. One of each size serves all tests of a JVM, and ends with it.
 */
final class CephCluster implements ObjectServer {

  private static final List<String> PROGRAMS =
      List.of("radosgw", "radosgw-admin", "ceph", "ceph-mon", "ceph-mgr", "ceph-osd");
  private static final String WHY =
      "needs Ceph: apt-get install radosgw ceph-mon ceph-mgr ceph-osd ceph-common";
  private static final Map<Integer, CephCluster> SHARED = new HashMap<>();

  private final Path folder;
  private final Path conf;
  private final int port;
  private final List<Process> others = new ArrayList<>();
  private final List<Process> osds = new ArrayList<>();
  private Process gateway;

  private CephCluster(int count) throws IOException, InterruptedException {
    port = ObjectServer.freePort();
    folder =
        Files.createTempDirectory(
            "ucm-ceph",
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    conf = folder.resolve("ceph.conf");
    Runtime.getRuntime().addShutdownHook(new Thread(this::end));
    int monitor = ObjectServer.freePort();
    String id = UUID.randomUUID().toString();
    Files.writeString(conf, configuration(id, monitor));
    for (String part : List.of("mon", "mgr", "osd", "log", "run")) {
      Files.createDirectory(folder.resolve(part));
    }
    key("mon.", "mon", "allow *");
    key("client.admin", "mon", "allow *", "osd", "allow *", "mgr", "allow *");
    key("client.rgw", "mon", "allow rw", "osd", "allow rwx");
    key("mgr.x", "mon", "allow profile mgr", "osd", "allow *");
    for (int i = 0; i < count; i++) {
      key("osd." + i, "mon", "allow profile osd", "mgr", "allow profile osd", "osd", "allow *");
    }
    String map = folder.resolve("monmap").toString();
    String where = "[v2:127.0.0.1:" + monitor + "]";
    run("monmaptool", "--create", "--fsid", id, "--addv", "a", where, map);
    String keys = folder.resolve("keyring").toString();
    run(ceph("ceph-mon", "-i", "a", "--mkfs", "--monmap", map, "--keyring", keys));
    others.add(spawn("mon", ceph("ceph-mon", "-i", "a", "-f")));
    run(ceph("ceph", "--connect-timeout", "60", "mon", "stat"));
    others.add(spawn("mgr", ceph("ceph-mgr", "-i", "x", "-f")));
    for (int i = 0; i < count; i++) {
      String uuid = UUID.randomUUID().toString();
      Files.createDirectory(folder.resolve("osd").resolve("" + i));
      run(ceph("ceph", "osd", "new", uuid, "" + i));
      run(ceph("ceph-osd", "-i", "" + i, "--mkfs", "--osd-uuid", uuid));
      osds.add(spawn("osd." + i, ceph("ceph-osd", "-i", "" + i, "-f")));
    }
    startAgain();
    run(
        ceph(
            "radosgw-admin",
            "user",
            "create",
            "--uid=ucm",
            "--display-name=ucm",
            "--access-key=" + System.getenv("AWS_ACCESS_KEY_ID"),
            "--secret-key=" + System.getenv("AWS_SECRET_ACCESS_KEY")));
    try (RawObjects objects = new RawObjects(settings("none"))) {
      objects.makeBucket();
      // The first object, and the first that is replaced, have pools made, which takes seconds.
      objects.put("first", new byte[1], Map.of());
      objects.put("first", new byte[1], Map.of());
      objects.delete("first");
    }
  }

  /** Skips the test when this machine has no Ceph. */
  static void require() {
    assumeTrue(PROGRAMS.stream().allMatch(it -> ObjectServer.program(it).isPresent()), WHY);
  }

  /** A cluster with some object storage daemons; skips the test when this machine has no Ceph. */
  static CephCluster shared(int osds) {
    require();
    synchronized (SHARED) {
      return SHARED.computeIfAbsent(osds, CephCluster::started);
    }
  }

  private static CephCluster started(int osds) {
    try {
      return new CephCluster(osds);
    } catch (IOException | InterruptedException e) {
      throw new IllegalStateException("Ceph did not start", e);
    }
  }

  private String configuration(String id, int monitor) {
    return """
    [global]
    fsid = %1$s
    mon host = [v2:127.0.0.1:%2$d]
    public addr = 127.0.0.1
    cluster addr = 127.0.0.1
    auth allow insecure global id reclaim = false
    run dir = %3$s/run
    admin socket = %3$s/run/$cluster-$name.asok
    log file = %3$s/log/$name.log
    mon data = %3$s/mon
    mgr data = %3$s/mgr
    osd data = %3$s/osd/$id
    keyring = %3$s/keyring
    mgr initial modules =
    mon allow pool size one = true
    mon warn on pool no redundancy = false
    mon max pg per osd = 1000
    mon data avail crit = 1
    osd pool default size = 1
    osd pool default min size = 1
    osd pool default pg num = 8
    osd pool default pgp num = 8
    osd pool default pg autoscale mode = off
    osd crush chooseleaf type = 0
    osd objectstore = memstore
    memstore device bytes = 4294967296
    osd op num shards = 2
    osd op num threads per shard = 1
    rgw frontends = beast endpoint=127.0.0.1:%4$d
    rgw thread pool size = 64
    rgw enable usage log = false
    rgw enable ops log = false
    rgw run sync thread = false
    """
        .formatted(id, monitor, folder, port);
  }

  private void key(String name, String... rights) throws IOException, InterruptedException {
    Path keys = folder.resolve("keyring");
    List<String> command = new ArrayList<>(List.of("ceph-authtool", keys.toString()));
    if (!Files.exists(keys)) {
      command.add("-C");
    }
    command.addAll(List.of("--gen-key", "-n", name));
    for (int i = 0; i < rights.length; i += 2) {
      command.addAll(List.of("--cap", rights[i], rights[i + 1]));
    }
    run(command.toArray(String[]::new));
  }

  private String[] ceph(String program, String... arguments) {
    return Stream.concat(Stream.of(program, "-c", conf.toString()), Stream.of(arguments))
        .toArray(String[]::new);
  }

  private static void run(String... command) throws IOException, InterruptedException {
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    if (process.waitFor() != 0) {
      throw new IOException(List.of(command) + " failed:\n" + said);
    }
  }

  private Process spawn(String name, String... command) throws IOException {
    return new ProcessBuilder(command)
        .redirectErrorStream(true)
        .redirectOutput(folder.resolve("log").resolve(name + ".out").toFile())
        .start();
  }

  @Override
  public int port() {
    return port;
  }

  /** Stops one of those that keep the objects as SIGSTOP does, or lets it go on. */
  void signalOsd(int osd, String name) throws IOException, InterruptedException {
    ObjectServer.signal(osds.get(osd), name);
  }

  @Override
  public void signal(String name) throws IOException, InterruptedException {
    ObjectServer.signal(gateway, name);
  }

  @Override
  public void kill() {
    gateway.destroyForcibly();
    gateway.onExit().join();
  }

  @Override
  public void startAgain() throws IOException, InterruptedException {
    gateway = spawn("rgw", ceph("radosgw", "-n", "client.rgw", "-f"));
    ObjectServer.awaitListening(gateway, port, folder.resolve("log").resolve("rgw.out"));
  }

  private void end() {
    List<Process> all = new ArrayList<>(others);
    all.addAll(osds);
    if (gateway != null) {
      all.add(gateway);
    }
    all.forEach(Process::destroyForcibly);
    all.forEach(process -> process.onExit().join());
    try (Stream<Path> files = Files.walk(folder)) {
      for (Path file : files.sorted((a, b) -> b.compareTo(a)).toList()) {
        Files.deleteIfExists(file);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
