package ucm.image;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.StreamSupport;
import tools.jackson.databind.JsonNode;

/**
 * Runs containers of a pod's description by bubblewrap, as far as users, volumes and namespaces go: each has
 * the pod's user and groups, no rights, a root that cannot be written, and the volumes that it names. The
 * containers of a pod share one network here, that of the test.
 */
final class Pod {

  /** Stands for the pod's address; not the one that the daemon would choose by itself. */
  static final String ADDRESS = "127.0.0.2";

  private static final String SHARED_MEMORY = "/dev/shm";

  private final JsonNode spec;
  private final Map<String, Path> volumes = new TreeMap<>();
  private final Path nodeMemory;
  private final List<Object> more;

  /**
   * @param spec that of the pod
   * @param folder for its volumes
   * @param nodeMemory what is /dev/shm with hostIPC: a folder of a tmpfs
   * @param given volumes that are not made here
   * @param more arguments of bubblewrap, for each container
   */
  Pod(JsonNode spec, Path folder, Path nodeMemory, Map<String, Path> given, Object... more)
      throws Exception {
    this.spec = spec;
    this.nodeMemory = nodeMemory;
    this.more = List.of(more);
    for (JsonNode volume : spec.get("volumes")) {
      String name = volume.get("name").asString();
      Path where = given.getOrDefault(name, folder.resolve(name));
      volumes.put(name, where);
      if (volume.has("emptyDir")) {
        makeEmpty(where);
      }
    }
  }

  /** As kubelet makes it, with the group of fsGroup. */
  private void makeEmpty(Path where) throws Exception {
    Files.createDirectories(where);
    Files.setAttribute(where, "unix:gid", user("fsGroup"));
    Files.setAttribute(where, "unix:mode", 042777);
  }

  private int user(String key) {
    return spec.get("securityContext").get(key).asInt();
  }

  private boolean is(String key) {
    return spec.path(key).asBoolean(false);
  }

  /** A container, or an init container, by its name. */
  JsonNode container(String name) {
    return StreamSupport.stream(spec.get("containers").spliterator(), false)
        .filter(container -> container.get("name").asString().equals(name))
        .findAny()
        .or(
            () ->
                StreamSupport.stream(spec.path("initContainers").spliterator(), false)
                    .filter(container -> container.get("name").asString().equals(name))
                    .findAny())
        .orElseThrow();
  }

  /** The container's own command line. */
  static List<String> commandLine(JsonNode container) {
    List<String> words = new ArrayList<>();
    container.get("command").forEach(word -> words.add(expanded(word)));
    container.path("args").forEach(word -> words.add(expanded(word)));
    return words;
  }

  private static String expanded(JsonNode word) {
    return word.asString().replace("$(POD_IP)", ADDRESS);
  }

  /** Starts something in a container. */
  Process start(JsonNode container, List<String> command) throws IOException {
    List<Object> line = new ArrayList<>(List.of("bwrap", "--die-with-parent", "--tmpfs", "/"));
    line.addAll(List.of("--ro-bind", "/usr", "/usr", "--dev", "/dev"));
    for (String name : List.of("bin", "lib", "lib64")) {
      line.addAll(List.of("--symlink", "usr/" + name, "/" + name));
    }
    for (String name : List.of("/opt", "/etc", "/mnt", "/home")) {
      line.addAll(List.of("--perms", "0755", "--dir", name));
    }
    for (String name : List.of("/etc/passwd", "/etc/group", "/etc/ld.so.cache")) {
      line.addAll(List.of("--ro-bind", name, name));
    }
    line.addAll(List.of("--ro-bind", UcmProcess.IMAGE, "/opt/ucm"));
    // A pod that shares them has those of the test in all of its containers.
    if (!is("shareProcessNamespace") && !is("hostPID")) {
      line.addAll(List.of("--unshare-pid", "--as-pid-1"));
    }
    line.addAll(List.of("--proc", "/proc", "--unshare-uts"));
    if (is("hostIPC")) {
      line.addAll(List.of("--bind", nodeMemory, SHARED_MEMORY));
    }
    for (JsonNode mount : container.get("volumeMounts")) {
      Path volume = volumes.get(mount.get("name").asString());
      String how = mount.path("readOnly").asBoolean(false) ? "--ro-bind" : "--bind";
      line.addAll(List.of(how, volume, mount.get("mountPath").asString()));
    }
    line.addAll(List.of("--clearenv", "--setenv", "PATH", "/usr/bin:/bin"));
    line.addAll(more);
    line.addAll(List.of("--remount-ro", "/"));
    for (JsonNode variable : container.path("env")) {
      if (variable.has("value")) {
        String name = variable.get("name").asString();
        line.addAll(List.of("--setenv", name, variable.get("value").asString()));
      }
    }
    // What it takes to become the pod's user, and then nothing.
    line.addAll(List.of("--cap-add", "ALL", "setpriv", "--reuid", user("runAsUser")));
    line.addAll(List.of("--regid", user("runAsGroup"), "--groups", user("fsGroup")));
    line.addAll(List.of("--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"));
    line.addAll(command);
    return new ProcessBuilder(line.stream().map(String::valueOf).toList()).start();
  }

  /** Makes a folder that others than root may enter. */
  static Path folder(Path path) throws IOException {
    Files.createDirectories(path);
    return Files.setPosixFilePermissions(path, PosixFilePermissions.fromString("rwxr-xr-x"));
  }
}
