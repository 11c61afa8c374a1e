package ucm.pipeline.catalog;

import java.io.DataInputStream;
import java.io.IOException;
import java.lang.module.Configuration;
import java.lang.module.FindException;
import java.lang.module.ModuleDescriptor;
import java.lang.module.ModuleFinder;
import java.lang.module.ResolutionException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.stream.Stream;
import java.util.zip.ZipFile;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.Store;
import ucm.pipeline.hash.BlockHashing;

/**
 * One plugin of the plugins folder, and the module layer made of it: {@code plugins/x.jar} is a plugin,
 * and so is {@code plugins/x/} with the jars in it. Other files, and names that start with a dot, are
 * ignored. Links are followed only to places within the folder.
 *
 * <p>All modules of the plugin are roots, and its own jars are asked before the parent layer: a plugin may
 * bring any version of any library, also of one that the parent has, and sees its own. The exceptions are
 * {@code ucm.api} and {@code ucm.pipeline}: they always come from the parent, because a store that implements
 * another copy of the interface would be no store to others here; a copy in the plugin is passed over. What the
 * plugin does not bring is taken from the parent, if it is there (a jlink image holds only some modules of the
 * JDK). The module that provides stores must be an explicit one; its libraries may be plain jars.
 *
 * <p>The class loader of the layer, one for all of its modules, asks the platform class loader for
 * what its modules do not read, never the application's. {@code Class-Path} of a manifest does not count.
 */
final class Plugin {

  private static final Logger LOG = LoggerFactory.getLogger(Plugin.class);
  private static final List<String> FROM_PARENT = List.of("ucm.api", "ucm.pipeline");
  private static final int CLASS_FILE_MAGIC = 0xCAFEBABE;

  /** Class files of Java n have the major version n + 44. */
  private static final int MAJOR_OFFSET = 44;

  private record Jar(Path path, ModuleDescriptor descriptor) {}

  private final Path plugin;
  private final ModuleLayer parent;
  private final Discovery found;
  private final Map<String, Jar> modules = new TreeMap<>();
  private boolean isBroken;

  private Plugin(Path plugin, ModuleLayer parent, Discovery found) {
    this.plugin = plugin;
    this.parent = parent;
    this.found = found;
  }

  /**
   * Loads every plugin of a folder, which need not exist.
   *
   * @param parent the layer that holds ucm.api; null when that is on the class path
   * @param found gets what plugins provide, and a problem for each jar or folder that cannot be used
   */
  static void loadAll(Path folder, @Nullable ModuleLayer parent, Discovery found) {
    try {
      for (Path child : Files.exists(folder) ? list(folder) : List.<Path>of()) {
        if (isJar(child) || Files.isDirectory(child)) {
          load(child, folder.toRealPath(), parent, found);
        }
      }
    } catch (IOException e) {
      found.refuse(folder.toString(), "the plugins folder cannot be read: " + e);
    }
  }

  private static void load(Path child, Path folder, @Nullable ModuleLayer parent, Discovery found) {
    try {
      requireWithin(child, folder);
      List<Path> jars = new ArrayList<>();
      for (Path jar : Files.isDirectory(child) ? list(child) : List.of(child)) {
        if (isJar(jar)) {
          requireWithin(jar, folder);
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
      new Plugin(child, parent, found).load(jars);
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

  private void load(List<Path> jars) {
    try {
      jars.forEach(this::read);
      for (String name : FROM_PARENT) {
        if (modules.remove(name) != null) {
          LOG.info("Plugin {} brings a copy of {}, which is not used", plugin, name);
        }
      }
      if (!isBroken && hasProvider()) {
        found.addPlugin(layer(), plugin.toString());
      }
    } catch (FindException | ResolutionException | LayerInstantiationException e) {
      refuse(plugin, "does not fit together: " + e.getMessage());
    } catch (RuntimeException e) {
      // A jar can be damaged in more ways than the module system has exceptions for.
      refuse(plugin, "cannot be loaded: " + e);
    }
  }

  private void read(Path path) {
    try {
      requireJar(path);
      ModuleDescriptor descriptor =
          ModuleFinder.of(path).findAll().stream()
              .findFirst()
              .orElseThrow(() -> new IOException("holds no module"))
              .descriptor();
      Jar earlier = modules.putIfAbsent(descriptor.name(), new Jar(path, descriptor));
      if (earlier != null) {
        throw new IOException(
            "is the module %s, and so is %s; keep one".formatted(descriptor.name(), earlier.path));
      }
    } catch (FindException e) {
      Throwable cause = e.getCause() == null ? e : e.getCause();
      refuse(path, "its module cannot be read: " + cause.getMessage());
    } catch (IOException e) {
      refuse(path, String.valueOf(e.getMessage()));
    }
  }

  private static void requireJar(Path path) throws IOException {
    if (!Files.isRegularFile(path)) {
      throw new IOException("is no regular file");
    }
    int magic = CLASS_FILE_MAGIC;
    int java = 0;
    try (JarFile jar =
        new JarFile(path.toFile(), false, ZipFile.OPEN_READ, JarFile.runtimeVersion())) {
      JarEntry entry = jar.getJarEntry("module-info.class");
      if (entry != null) {
        try (DataInputStream in = new DataInputStream(jar.getInputStream(entry))) {
          magic = in.readInt();
          in.readUnsignedShort();
          java = in.readUnsignedShort() - MAJOR_OFFSET;
        }
      }
    } catch (IOException e) {
      throw new IOException("is no jar that can be read: " + e.getMessage(), e);
    }
    if (magic != CLASS_FILE_MAGIC) {
      throw new IOException("its module-info.class is no class file");
    }
    if (java > Runtime.version().feature()) {
      throw new IOException(
          "is compiled for Java %s, this is Java %s".formatted(java, Runtime.version().feature()));
    }
  }

  private boolean hasProvider() {
    List<Jar> providers = modules.values().stream().filter(Plugin::provides).toList();
    if (providers.stream().anyMatch(jar -> !jar.descriptor.isAutomatic())) {
      return true;
    }
    if (!providers.isEmpty()) {
      refuse(
          providers.getFirst().path,
          "names a store or a block hasher in META-INF/services but is no module; add a"
              + " module-info");
    } else if (modules.values().stream().allMatch(jar -> jar.descriptor.isAutomatic())) {
      refuse(plugin, "is no module: it has no module-info.class");
    } else {
      refuse(plugin, "has no store: no module in it says \"provides ucm.api.Store with ...\"");
    }
    return false;
  }

  private static boolean provides(Jar jar) {
    List<ModuleDescriptor> module = List.of(jar.descriptor);
    return Discovery.providers(module, Store.class) > 0
        || Discovery.providers(module, BlockHashing.class) > 0;
  }

  private ModuleLayer layer() {
    Path[] paths = modules.values().stream().map(Jar::path).sorted().toArray(Path[]::new);
    Configuration configuration =
        parent.configuration().resolve(ModuleFinder.of(paths), ModuleFinder.of(), modules.keySet());
    return ModuleLayer.defineModulesWithOneLoader(
            configuration, List.of(parent), ClassLoader.getPlatformClassLoader())
        .layer();
  }

  private void refuse(Path path, String problem) {
    isBroken = true;
    found.refuse(path.toString(), problem);
  }
}
