package ucm.pipeline.catalog;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import ucm.api.admin.HealthCheck;
import ucm.pipeline.catalog.FoundStore.Home;

/**
 * Goes through the plugins folder: {@code plugins/x.jar} is a plugin, and so is {@code plugins/x/}
 * with the jars in it. Other files, and names that start with a dot, are ignored. Links are
 * followed only to places within the folder.
 */
final class PluginFolder {

  private final Path folder;
  private final @Nullable ModuleLayer parent;
  private final List<FoundStore> found = new ArrayList<>();
  private final List<FoundHashing> hashings = new ArrayList<>();
  private final List<Supplier<HealthCheck>> healthChecks = new ArrayList<>();

  private PluginFolder(Path folder, @Nullable ModuleLayer parent) {
    this.folder = folder;
    this.parent = parent;
  }

  /**
   * Loads every plugin of a folder.
   *
   * @param parent the layer that holds ucm.api; null when that is on the class path
   */
  static PluginFolder scan(Path folder, @Nullable ModuleLayer parent) {
    PluginFolder scan = new PluginFolder(folder, parent);
    if (Files.exists(folder)) {
      scan.scanFolder();
    }
    return scan;
  }

  /** The stores, and an entry with a problem for each jar or folder that could not be used. */
  List<FoundStore> stores() {
    return found;
  }

  /** The block hashers. */
  List<FoundHashing> hashings() {
    return hashings;
  }

  /** What looks at the machine. */
  List<Supplier<HealthCheck>> healthChecks() {
    return healthChecks;
  }

  private void scanFolder() {
    try {
      Path real = folder.toRealPath();
      for (Path child : list(folder)) {
        if (isJar(child) || Files.isDirectory(child)) {
          scanChild(child, real);
        }
      }
    } catch (IOException e) {
      refuse(folder, "the plugins folder cannot be read: " + e);
    }
  }

  private void scanChild(Path child, Path real) {
    try {
      requireWithin(child, real);
      List<Path> jars = new ArrayList<>();
      for (Path jar : Files.isDirectory(child) ? list(child) : List.of(child)) {
        if (isJar(jar)) {
          requireWithin(jar, real);
          jars.add(jar);
        }
      }
      load(child, jars);
    } catch (IOException e) {
      refuse(child, String.valueOf(e.getMessage()));
    }
  }

  private void load(Path plugin, List<Path> jars) {
    if (jars.isEmpty()) {
      refuse(plugin, "holds no .jar");
    } else if (parent == null) {
      refuse(
          plugin,
          "is not loaded: plugins need UCM on the module path, and it is on the class path");
    } else {
      PluginLayer layer = new PluginLayer(plugin, jars, parent);
      layer.load();
      found.addAll(layer.stores());
      hashings.addAll(layer.hashings());
      healthChecks.addAll(layer.healthChecks());
    }
  }

  private void refuse(Path path, String problem) {
    found.add(FoundStore.broken(new Home("", "", path.toString()), true, "", problem));
  }

  private static void requireWithin(Path path, Path folder) throws IOException {
    Path real = path.toRealPath();
    if (!real.startsWith(folder)) {
      throw new IOException("is a link to " + real + ", outside the plugins folder");
    }
  }

  private static List<Path> list(Path directory) throws IOException {
    try (Stream<Path> children = Files.list(directory)) {
      return children.filter(child -> !name(child).startsWith(".")).sorted().toList();
    }
  }

  private static boolean isJar(Path path) {
    return name(path).endsWith(".jar") && !Files.isDirectory(path);
  }

  private static String name(Path path) {
    return String.valueOf(path.getFileName());
  }
}
