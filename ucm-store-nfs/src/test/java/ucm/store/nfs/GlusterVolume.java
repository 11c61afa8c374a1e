package ucm.store.nfs;

import static org.junit.jupiter.api.Assumptions.abort;

import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * A network file system of our own: a GlusterFS brick served by a daemon on this host's name, and FUSE mounts
 * of it, each a client of its own with the caches and the write-behind that GlusterFS gives its clients. All
 * is below one folder; nothing of an installation of GlusterFS is touched.
 */
final class GlusterVolume implements AutoCloseable {

  private static final Duration PATIENCE = Duration.ofSeconds(60);
  private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(10);
  // Clients take those below for themselves.
  private static final int MIN_PORT = 10_000;
  private static final int PORT_ATTEMPTS = 100;

  private final Path home;
  private final String host;
  private final int port;
  private final List<Path> mounts = new ArrayList<>();
  private final List<Process> clients = new ArrayList<>();
  private Process server;

  private GlusterVolume(Path home, String host, int port) {
    this.home = home;
    this.host = host;
    this.port = port;
  }

  /** Serves a volume; the test is skipped where that is not possible. */
  static GlusterVolume serve(Path home) throws IOException, InterruptedException {
    if (!Files.isExecutable(Path.of("/usr/sbin/glusterfsd"))
        || !Files.isExecutable(Path.of("/usr/sbin/glusterfs"))) {
      abort("no glusterfsd: install the Debian packages glusterfs-server and glusterfs-client");
    }
    if (!Files.isReadable(Path.of("/dev/fuse")) || !Files.isWritable(Path.of("/dev/fuse"))) {
      abort("no /dev/fuse that this user may use: a file system cannot be mounted");
    }
    GlusterVolume volume =
        new GlusterVolume(home, InetAddress.getLocalHost().getHostName(), freePort());
    try {
      volume.write();
      volume.start();
    } catch (IOException | RuntimeException e) {
      volume.close();
      throw e;
    }
    return volume;
  }

  /**
   * A port below those that the kernel gives out by itself: no process gets it by chance before the
   * daemon has it, nor while the daemon is down.
   */
  private static int freePort() throws IOException {
    String range = Files.readString(Path.of("/proc/sys/net/ipv4/ip_local_port_range"));
    int end = Math.max(MIN_PORT + 1, Integer.parseInt(range.strip().split("\\s+", 2)[0]));
    for (int attempt = 0; ; attempt++) {
      int port = ThreadLocalRandom.current().nextInt(MIN_PORT, end);
      try (ServerSocket socket = new ServerSocket(port)) {
        return socket.getLocalPort();
      } catch (BindException e) {
        if (attempt == PORT_ATTEMPTS) {
          throw e;
        }
      }
    }
  }

  private void write() throws IOException, InterruptedException {
    if (!Files.isExecutable(Path.of("/usr/bin/setfattr"))) {
      abort("no setfattr to mark a brick with: install the Debian package attr");
    }
    Path brick = Files.createDirectories(home.resolve("brick"));
    String id = UUID.randomUUID().toString();
    String mark = "0x" + id.replace("-", "");
    Process marking =
        new ProcessBuilder(
                "setfattr", "-n", "trusted.glusterfs.volume-id", "-v", mark, brick.toString())
            .redirectErrorStream(true)
            .start();
    String said = new String(marking.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    if (marking.waitFor() != 0) {
      abort("a brick needs trusted extended attributes, which only root may set: " + said);
    }
    Files.writeString(
        home.resolve("server.vol"),
        """
        volume posix
          type storage/posix
          option directory %s
          option volume-id %s
        end-volume
        volume access
          type features/access-control
          subvolumes posix
        end-volume
        volume locks
          type features/locks
          subvolumes access
        end-volume
        volume upcall
          type features/upcall
          subvolumes locks
        end-volume
        volume threads
          type performance/io-threads
          subvolumes upcall
        end-volume
        volume brick
          type debug/io-stats
          subvolumes threads
        end-volume
        volume server
          type protocol/server
          option transport-type tcp
          option transport.address-family inet
          option transport.socket.bind-address %s
          option transport.socket.listen-port %d
          option auth.addr.brick.allow *
          subvolumes brick
        end-volume
        """
            .formatted(brick, id, host, port));
    Files.writeString(
        home.resolve("client.vol"),
        """
        volume remote
          type protocol/client
          option transport-type tcp
          option transport.address-family inet
          option remote-host %s
          option remote-port %d
          option remote-subvolume brick
          option ping-timeout 5
        end-volume
        volume distribute
          type cluster/distribute
          subvolumes remote
        end-volume
        volume utime
          type features/utime
          option noatime on
          subvolumes distribute
        end-volume
        volume write-behind
          type performance/write-behind
          subvolumes utime
        end-volume
        volume open-behind
          type performance/open-behind
          subvolumes write-behind
        end-volume
        volume quick-read
          type performance/quick-read
          subvolumes open-behind
        end-volume
        volume md-cache
          type performance/md-cache
          subvolumes quick-read
        end-volume
        """
            .formatted(host, port));
  }

  /** Starts the daemon, again after {@link #kill}. */
  void start() throws IOException {
    server = daemon("glusterfsd", "server");
  }

  /** Ends the daemon as a crash of the server does. */
  void kill() {
    ended(server.destroyForcibly());
  }

  /** Mounts it once more, as another node would. */
  Path mount() throws IOException {
    Path at = Files.createDirectories(home.resolve("node-" + mounts.size()));
    mounts.add(at);
    clients.add(daemon("glusterfs", "client", at.toString()));
    long end = System.nanoTime() + PATIENCE.toNanos();
    while (!isMounted(at)) {
      if (System.nanoTime() - end > 0) {
        throw new IOException("not mounted: " + Files.readString(home.resolve("client.log")));
      }
      LockSupport.parkNanos(PAUSE_NANOS);
    }
    return at;
  }

  private static boolean isMounted(Path at) {
    try {
      return Files.readString(Path.of("/proc/self/mounts")).contains(" " + at + " fuse.glusterfs ")
          && Files.isDirectory(at.resolve("."));
    } catch (IOException e) {
      return false;
    }
  }

  private Process daemon(String program, String file, String... more) throws IOException {
    List<String> command = new ArrayList<>();
    command.add("/usr/sbin/" + program);
    command.addAll(List.of("--no-daemon", "-f", home.resolve(file + ".vol").toString()));
    command.addAll(List.of("-l", home.resolve(file + ".log").toString()));
    command.addAll(List.of(more));
    return new ProcessBuilder(command)
        .redirectErrorStream(true)
        .redirectOutput(home.resolve(file + ".out").toFile())
        .start();
  }

  @Override
  public void close() throws IOException {
    for (Path mount : mounts) {
      ended(new ProcessBuilder("umount", "-l", mount.toString()).start());
    }
    for (Process client : clients) {
      ended(client.destroyForcibly());
    }
    if (server != null) {
      ended(server.destroyForcibly());
    }
  }

  private static void ended(Process process) {
    process.onExit().join();
  }
}
