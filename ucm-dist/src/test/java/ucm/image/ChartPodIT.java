package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.Writer;
import java.net.ServerSocket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;

/**
 * The pods of the chart share memory and socket as they must: the daemon serves an engine in another
 * container, as users and volumes are there.
 */
class ChartPodIT {

  private static final Path BUBBLEWRAP = Path.of("/usr/bin/bwrap");
  private static final Path ENGINE = Chart.CASES.resolve("engine.py").toAbsolutePath();
  private static final String NFS = "store.volume.nfs.server=nfs.example,store.volume.nfs.path=/kv";
  private static final List<String> ASK = List.of("/usr/bin/python3", "-B", "/opt/engine.py");

  @TempDir private Path folder;

  private Chart chart;
  private Path memory;
  private Path store;
  private int port;
  private Process daemon;

  @BeforeEach
  void prepare() throws Exception {
    chart = Chart.assumeTools();
    assumeTrue(
        Files.isExecutable(BUBBLEWRAP), "needs the Debian package bubblewrap (.ci/packages)");
    assumeTrue(
        Files.getAttribute(folder, "unix:uid").equals(0),
        "needs root: pods have users of their own");
    memory = Pod.folder(Files.createTempDirectory(Path.of("/dev/shm"), "ucm-pod-"));
    // As /dev/shm of a node.
    Files.setAttribute(memory, "unix:mode", 041777);
    Pod.folder(folder);
    // As an export that a group may write in.
    store = Pod.folder(folder.resolve("store"));
    Files.setAttribute(store, "unix:gid", 10001);
    Files.setAttribute(store, "unix:mode", 040770);
    try (ServerSocket free = new ServerSocket(0)) {
      port = free.getLocalPort();
    }
  }

  @AfterEach
  void clean() throws Exception {
    if (daemon != null) {
      // Those that have become another user do not end with the ones that started them.
      daemon.descendants().forEach(ProcessHandle::destroyForcibly);
      daemon.destroyForcibly().waitFor();
    }
    if (memory != null) {
      try (Stream<Path> files = Files.walk(memory)) {
        for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
          Files.delete(file);
        }
      }
    }
  }

  /** The pods of a rendering, by the part of the chart that they are. */
  private List<JsonNode> render(String... settings) throws Exception {
    String rendered =
        chart.template(
            Stream.concat(
                    Stream.of(
                        "--set",
                        NFS
                            + ",store.pipeline=Posix,store.cacheGiB=0,daemon.stagingGiB=1,daemon.metricsPort="
                            + port),
                    Stream.of(settings).flatMap(setting -> Stream.of("--set", setting)))
                .toArray());
    List<JsonNode> objects = Chart.objects(rendered);
    Path config = Pod.folder(folder.resolve("config")).resolve("ucm.yaml");
    Files.writeString(config, objects.getFirst().get("data").get("ucm.yaml").asString());
    return objects;
  }

  private Pod pod(List<JsonNode> objects, String kind) throws Exception {
    JsonNode object =
        objects.stream().filter(o -> o.get("kind").asString().equals(kind)).findAny().orElseThrow();
    JsonNode spec = object.get("spec").path("template").path("spec");
    return new Pod(
        spec.isMissingNode() ? object.get("spec") : spec,
        Pod.folder(folder.resolve(kind)),
        memory,
        Map.of("config", folder.resolve("config"), "store", store, "memory", memory),
        "--ro-bind",
        Path.of("..", "python").toAbsolutePath().normalize(),
        "/opt/python",
        "--ro-bind",
        ENGINE,
        "/opt/engine.py",
        "--setenv",
        "PYTHONPATH",
        "/opt/python");
  }

  /** Runs the container {@code ucm} until the startup probe says that it serves. */
  private void startDaemon(Pod pod) throws Exception {
    JsonNode container = pod.container("ucm");
    daemon = pod.start(container, Pod.commandLine(container));
    BufferedReader err = daemon.errorReader();
    List<String> lines = new ArrayList<>();
    while (lines.isEmpty() || !lines.getLast().startsWith("ucm: serving engines at ")) {
      String line = err.readLine();
      assertThat(line).as("the daemon said %s", lines).isNotNull();
      lines.add(line);
    }
    drain(err);
    List<String> probe =
        StreamSupport.stream(
                container.get("startupProbe").get("exec").get("command").spliterator(), false)
            .map(JsonNode::asString)
            .toList();
    UcmProcess.finish(pod.start(container, probe)).requireOk();
  }

  /** What the daemon says from now on is not needed, and must not fill the pipe. */
  private static void drain(BufferedReader err) {
    Thread _ =
        Thread.ofVirtual()
            .start(
                () -> {
                  try (err) {
                    err.transferTo(Writer.nullWriter());
                  } catch (IOException e) {
                    // The daemon was ended.
                    return;
                  }
                });
  }

  /** As kubelet ends a container. */
  private void stopDaemon() throws Exception {
    ProcessHandle java =
        daemon
            .descendants()
            .filter(process -> process.info().command().orElse("").endsWith("/bin/java"))
            .findAny()
            .orElseThrow();
    assertThat(java.destroy()).isTrue();
    assertThat(daemon.waitFor()).isEqualTo(143);
  }

  private static JsonNode engine(Pod pod, String what) throws IOException {
    List<String> command = Stream.concat(ASK.stream(), Stream.of(what)).toList();
    UcmProcess.Ended ended =
        UcmProcess.finish(pod.start(pod.container("vllm"), command)).requireOk();
    return ended.json();
  }

  private static void assertMoved(JsonNode said, String by) {
    assertThat(said.get("moved").asInt()).as("%s", said).isEqualTo(8);
    assertThat(said.get("right").asBoolean()).isTrue();
    assertThat(said.get("by").asString()).as("%s", said).isEqualTo(by);
  }

  @Test
  void aSidecarServesItsEngineAndAnotherOneAfterIt() throws Exception {
    Pod pod = pod(render("node.enabled=false", "vllm.enabled=true"), "Deployment");
    startDaemon(pod);
    assertMoved(engine(pod, "store"), "daemon");
    String metrics = "http://" + Pod.ADDRESS + ":" + port + "/metrics";
    try (var page = URI.create(metrics).toURL().openStream()) {
      assertThat(new String(page.readAllBytes(), StandardCharsets.UTF_8)).contains("ucm:");
    }
    stopDaemon();
    startDaemon(pod);
    assertMoved(engine(pod, "load"), "daemon");
  }

  @Test
  void theNodesDaemonServesAPodOfItsOwnNumbers() throws Exception {
    List<JsonNode> objects = render("vllm.enabled=true", "vllm.daemon=node");
    startDaemon(pod(objects, "DaemonSet"));
    Pod engine = pod(objects, "Deployment");
    assertMoved(engine(engine, "store"), "slots");
    assertMoved(engine(engine, "load"), "slots");
  }

  @Test
  void anEngineOfAnotherUserIsRefused() throws Exception {
    startDaemon(pod(render("vllm.enabled=true", "vllm.daemon=node"), "DaemonSet"));
    String socket = "/dev/shm/ucm-10001/ucm.sock";
    Pod other = pod(render("vllm.enabled=true", "vllm.daemon=node", "user.id=10002"), "Deployment");
    List<String> command =
        Stream.concat(
                Stream.of("/usr/bin/env", "UCM_SOCKET=" + socket),
                Stream.concat(ASK.stream(), Stream.of("store")))
            .toList();
    UcmProcess.Ended ended =
        UcmProcess.finish(other.start(other.container("vllm"), command)).requireOk();
    assertThat(ended.json().get("moved").asInt()).as(ended.out()).isZero();
    assertThat(ended.json().get("log").toString()).contains("ermission");
  }

  @Test
  void theCheckOfTheVolumeSaysWhetherItsGroupMayWriteThere() throws Exception {
    Pod pod = pod(render(), "Pod");
    JsonNode doctor = pod.container("doctor");
    UcmProcess.finish(pod.start(doctor, Pod.commandLine(doctor))).requireOk();
    Pod other = pod(render("user.group=10002,user.fsGroup=10002"), "Pod");
    UcmProcess.Ended bad = UcmProcess.finish(other.start(doctor, Pod.commandLine(doctor)));
    assertThat(bad.exitCode()).as(bad.all()).isEqualTo(1);
    assertThat(bad.out()).contains("/mnt/kv");
  }
}
