package ucm.pipeline.catalog;

import java.lang.module.Configuration;
import java.lang.module.FindException;
import java.lang.module.ModuleDescriptor;
import java.lang.module.ModuleFinder;
import java.lang.module.ResolutionException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.Store;
import ucm.api.admin.HealthCheck;
import ucm.pipeline.catalog.FoundStore.Home;
import ucm.pipeline.catalog.PluginJar.BadJarException;
import ucm.pipeline.hash.BlockHashing;

/**
 * Makes a module layer of one plugin.
 *
 * <p>How modules are chosen. All modules of the plugin are roots, and its own jars are asked before
 * the parent layer: a plugin may bring any version of any library, also of one that the parent has,
 * and sees its own. The exceptions are {@code ucm.api} and {@code ucm.pipeline}: they always come from
 * the parent, because a store that implements another copy of the interface would be no store to others
 * here, and a block hasher none; a copy in the plugin is passed over. What the plugin does not bring is taken from the parent, if it is there
 * (a jlink image holds only some modules of the JDK). The module that provides stores must be an
 * explicit one; its libraries may be plain jars, which become automatic modules.
 *
 * <p>The class loader of the layer, one for all of its modules, asks the platform class loader for
 * what its modules do not read, never the application's: what is not declared is not seen. {@code
 * Class-Path} of a manifest does not count.
 */
final class PluginLayer {

  private static final Logger LOG = LoggerFactory.getLogger(PluginLayer.class);
  private static final List<String> FROM_PARENT = List.of("ucm.api", "ucm.pipeline");

  private final Path plugin;
  private final List<Path> jars;
  private final ModuleLayer parent;
  private final List<FoundStore> found = new ArrayList<>();
  private final List<FoundHashing> hashings = new ArrayList<>();
  private final List<Supplier<HealthCheck>> healthChecks = new ArrayList<>();

  /**
   * Prepares to load a plugin.
   *
   * @param plugin its jar or folder
   * @param jars the jars in it, at least one
   */
  PluginLayer(Path plugin, List<Path> jars, ModuleLayer parent) {
    this.plugin = plugin;
    this.jars = jars;
    this.parent = parent;
  }

  /** Loads it; what goes wrong is an entry with a problem. */
  void load() {
    try {
      Map<String, PluginJar> modules = readJars();
      if (found.isEmpty() && hasProvider(modules.values())) {
        ModuleLayer layer = layer(modules);
        found.addAll(ProviderScan.plugin(layer, home(plugin)));
        hashings.addAll(HashingScan.plugin(layer, home(plugin), found));
        healthChecks.addAll(HealthCheckScan.plugin(layer, home(plugin), found));
      }
    } catch (FindException | ResolutionException | LayerInstantiationException e) {
      refuse(plugin, "does not fit together: " + e.getMessage());
    } catch (RuntimeException e) {
      // A jar can be damaged in more ways than the module system has exceptions for.
      refuse(plugin, "cannot be loaded: " + e);
    }
  }

  /** Its stores, and an entry for each thing that went wrong. */
  List<FoundStore> stores() {
    return found;
  }

  /** Its block hashers. */
  List<FoundHashing> hashings() {
    return hashings;
  }

  /** What it looks at. */
  List<Supplier<HealthCheck>> healthChecks() {
    return healthChecks;
  }

  private Map<String, PluginJar> readJars() {
    Map<String, PluginJar> modules = new TreeMap<>();
    for (Path path : jars) {
      try {
        PluginJar jar = PluginJar.read(path);
        PluginJar earlier = modules.putIfAbsent(jar.descriptor().name(), jar);
        if (earlier != null) {
          refuse(
              path,
              "is the module "
                  + jar.descriptor().name()
                  + ", and so is "
                  + earlier.path()
                  + "; keep one");
        }
      } catch (BadJarException e) {
        refuse(path, e.problem());
      }
    }
    for (String name : FROM_PARENT) {
      if (modules.remove(name) != null) {
        LOG.info("Plugin {} brings a copy of {}, which is not used", plugin, name);
      }
    }
    return modules;
  }

  private boolean hasProvider(Collection<PluginJar> modules) {
    List<PluginJar> providers = modules.stream().filter(jar -> provides(jar.descriptor())).toList();
    if (providers.stream().anyMatch(PluginJar::isExplicit)) {
      return true;
    }
    if (!providers.isEmpty()) {
      refuse(
          providers.getFirst().path(),
          "names a store or a block hasher in META-INF/services but is no module; add a"
              + " module-info");
    } else if (modules.stream().anyMatch(PluginJar::isExplicit)) {
      refuse(plugin, "has no store: no module in it says \"provides ucm.api.Store with ...\"");
    } else {
      refuse(plugin, "is no module: it has no module-info.class");
    }
    return false;
  }

  private static boolean provides(ModuleDescriptor descriptor) {
    return ProviderScan.providers(descriptor, Store.class) > 0
        || ProviderScan.providers(descriptor, BlockHashing.class) > 0;
  }

  private ModuleLayer layer(Map<String, PluginJar> modules) {
    Path[] paths = modules.values().stream().map(PluginJar::path).sorted().toArray(Path[]::new);
    Configuration configuration =
        parent.configuration().resolve(ModuleFinder.of(paths), ModuleFinder.of(), modules.keySet());
    return ModuleLayer.defineModulesWithOneLoader(
            configuration, List.of(parent), ClassLoader.getPlatformClassLoader())
        .layer();
  }

  private void refuse(Path path, String problem) {
    found.add(FoundStore.broken(home(path), true, "", problem));
  }

  private static Home home(Path path) {
    return new Home("", "", path.toString());
  }
}
