package ucm.store.nfs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.abort;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.testcontainers.DockerClientFactory;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.utility.DockerImageName;

/**
 * Two nodes on the kernel's NFS server in a container, through soft mounts: the server stops answering, and
 * answers again. Needs a Docker engine, a kernel with an NFS client, and root to mount.
 */
@Timeout(value = 8, unit = TimeUnit.MINUTES)
final class NfsServerTest {

  private static final DockerImageName IMAGE =
      DockerImageName.parse("itsthenetwork/nfs-server-alpine:12");
  private static final int PORT = 2049;

  @TempDir private Path home;

  @BeforeAll
  static void requireWhatItNeeds() throws IOException {
    // First what costs nothing to find out: asking for an engine that is not there takes seconds.
    if (System.getenv("DOCKER_HOST") == null && !Files.exists(Path.of("/var/run/docker.sock"))) {
      abort("no Docker engine: DOCKER_HOST is not set and there is no /var/run/docker.sock");
    }
    if (!Files.readString(Path.of("/proc/filesystems")).contains("nfs4")) {
      abort("this kernel has no NFS client (modprobe nfs), so nothing can be mounted");
    }
    if (!System.getProperty("user.name").equals("root")) {
      abort("only root may mount");
    }
    if (!DockerClientFactory.instance().isDockerAvailable()) {
      abort("no Docker engine answers");
    }
  }

  @Test
  void twoNodesServeEachOtherWhileTheServerDoesNotAnswer() throws Exception {
    try (GenericContainer<?> server = new GenericContainer<>(IMAGE)) {
      server
          .withPrivilegedMode(true)
          .withEnv("SHARED_DIRECTORY", "/export")
          // The file system of a container cannot be exported.
          .withTmpFs(Map.of("/export", "rw"))
          .withExposedPorts(PORT)
          .start();
      Path here = mount(server, "first");
      Path there = mount(server, "second");
      try {
        TwoNodes.serveEachOther(here, there, new Pause(server));
      } finally {
        run(List.of("umount", "-l", here.toString()));
        run(List.of("umount", "-l", there.toString()));
      }
    }
  }

  private Path mount(GenericContainer<?> server, String name) throws Exception {
    Path at = Files.createDirectory(home.resolve(name));
    String options = "soft,timeo=10,retrans=1,nosharecache,port=" + server.getMappedPort(PORT);
    run(List.of("mount", "-t", "nfs4", "-o", options, server.getHost() + ":/", at.toString()));
    return at;
  }

  private static void run(List<String> command) throws Exception {
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor()).as("%s: %s", command, said).isZero();
  }

  /** The server is there and does not answer; soft mounts give up after some seconds. */
  private record Pause(GenericContainer<?> server) implements TwoNodes.Outage {

    @Override
    public void begins() {
      server.getDockerClient().pauseContainerCmd(server.getContainerId()).exec();
    }

    @Override
    public void ends() {
      server.getDockerClient().unpauseContainerCmd(server.getContainerId()).exec();
    }
  }
}
