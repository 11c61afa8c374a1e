package ucm.pipeline.catalog;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Goes through the plugins folder: {@code plugins/x.jar} is a plugin, and so is {@code plugins/x/}
 * with the jars in it. Other files, and names that start with a dot, are ignored. Links are
 * followed only to places within the folder.
 */
final class PluginFolder {

  private final @Nullable ModuleLayer parent;
  private final Discovery found;

  /**
   * Prepares a search.
   *
   * @param parent the layer that holds ucm.api; null when that is on the class path
   * @param found gets what plugins provide, and a problem for each jar or folder that cannot be used
   */
  PluginFolder(@Nullable ModuleLayer parent, Discovery found) {
    this.parent = parent;
    this.found = found;
  }

  /** Loads every plugin of a folder, which need not exist. */
  void scan(Path folder) {
    try {
      for (Path child : Files.exists(folder) ? list(folder) : List.<Path>of()) {
        if (isJar(child) || Files.isDirectory(child)) {
          scanChild(child, folder.toRealPath());
        }
      }
    } catch (IOException e) {
      found.refuse(folder.toString(), "the plugins folder cannot be read: " + e);
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
      if (jars.isEmpty()) {
        throw new IOException("holds no .jar");
      }
      if (parent == null) {
        throw new IOException(
            "is not loaded: plugins need UCM on the module path, and it is on the class path");
      }
      new PluginLayer(child, parent, found).load(jars);
    } catch (IOException e) {
      found.refuse(child.toString(), String.valueOf(e.getMessage()));
    }
  }

  private static void requireWithin(Path path, Path folder) throws IOException {
    Path real = path.toRealPath();
    if (!real.startsWith(folder)) {
      throw new IOException("is a link to " + real + ", outside the plugins folder");
    }
  }

  private static List<Path> list(Path directory) throws IOException {
    try (Stream<Path> children = Files.list(directory)) {
      return children
          .filter(child -> !child.getFileName().toString().startsWith("."))
          .sorted()
          .toList();
    }
  }

  private static boolean isJar(Path path) {
    return path.toString().endsWith(".jar") && !Files.isDirectory(path);
  }
}
