package ucm.pipeline.catalog;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.ServiceConfigurationError;
import java.util.TreeMap;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.Store;
import ucm.api.StoreException;
import ucm.api.admin.HealthCheck;
import ucm.api.config.ConfigKey;
import ucm.pipeline.catalog.FoundStore.Home;
import ucm.pipeline.hash.BlockHashing;

/**
 * The stores that pipelines can be made of, and the ways of naming blocks.
 *
 * <p>Stores are found by {@link java.util.ServiceLoader} in the module layer of UCM itself, on the
 * class path (for programs that embed UCM there), and in the plugins folder; they are listed without
 * being created. What cannot be used is recorded with the reason and harms nothing else. Of two
 * stores with one name neither can be used, except that a plugin never takes the place of a store
 * that is built in. Immutable and thread-safe.
 */
public final class StoreCatalog {

  private static final Logger LOG = LoggerFactory.getLogger(StoreCatalog.class);

  private final List<FoundStore> found;
  private final List<String> searched;
  private final Map<String, FoundStore> usable = new LinkedHashMap<>();
  private final BlockHashings hashings;
  private final List<Supplier<HealthCheck>> healthChecks;

  private StoreCatalog(
      List<FoundStore> all,
      BlockHashings hashings,
      List<Supplier<HealthCheck>> healthChecks,
      List<String> searched) {
    this.found =
        settleNames(all).stream()
            .sorted(
                Comparator.comparing(FoundStore::name)
                    .thenComparing(store -> store.home().location()))
            .toList();
    this.hashings = hashings;
    this.healthChecks = List.copyOf(healthChecks);
    this.searched = List.copyOf(searched);
    for (FoundStore store : found) {
      if (store.usable()) {
        usable.put(store.name(), store);
      }
    }
  }

  /** The stores that are built in, without plugins. */
  public static StoreCatalog find() {
    return find(null, new ArrayList<>());
  }

  /**
   * The stores that are built in, and plugins.
   *
   * @param pluginsFolder holds {@code x.jar} or {@code x/*.jar} for each plugin; need not exist
   */
  public static StoreCatalog find(Path pluginsFolder) {
    List<String> searched = new ArrayList<>();
    String there = Files.exists(pluginsFolder) ? "" : " (there is no such folder)";
    searched.add("plugins folder " + pluginsFolder + there);
    return find(pluginsFolder, searched);
  }

  private static StoreCatalog find(@Nullable Path pluginsFolder, List<String> searched) {
    List<FoundStore> all = new ArrayList<>();
    ModuleLayer layer = StoreCatalog.class.getModule().getLayer();
    searched.addFirst(layer == null ? "class path" : "modules of UCM");
    if (layer != null) {
      all.addAll(ProviderScan.builtIn(layer));
    }
    all.addAll(ProviderScan.classPath(StoreCatalog.class.getClassLoader()));
    List<FoundHashing> hashings = HashingScan.builtIn(all);
    List<Supplier<HealthCheck>> healthChecks = HealthCheckScan.builtIn();
    if (pluginsFolder != null) {
      PluginFolder plugins = PluginFolder.scan(pluginsFolder, layer);
      all.addAll(plugins.stores());
      hashings.addAll(plugins.hashings());
      healthChecks.addAll(plugins.healthChecks());
    }
    StoreCatalog catalog =
        new StoreCatalog(all, new BlockHashings(hashings), healthChecks, searched);
    catalog.log();
    return catalog;
  }

  /**
   * Stores that a program brings along.
   *
   * @param stores name, and what makes a fresh instance
   */
  public static StoreCatalog of(Map<String, ? extends Supplier<? extends Store>> stores) {
    List<FoundStore> all = new ArrayList<>();
    Home home = new Home("", "", "given by the program");
    stores.forEach(
        (name, factory) -> all.add(new FoundStore(name, home, false, "", factory, List.of())));
    BlockHashings hashings = new BlockHashings(HashingScan.builtIn(all));
    return new StoreCatalog(all, hashings, List.of(), List.of(home.location()));
  }

  /** Marks stores whose name another one has. */
  private static List<FoundStore> settleNames(List<FoundStore> all) {
    List<FoundStore> settled = new ArrayList<>();
    for (int i = 0; i < all.size(); i++) {
      FoundStore store = all.get(i);
      int rival = rival(all, i);
      settled.add(
          rival < 0
              ? store
              : store.with(
                  "the name "
                      + store.name()
                      + " is taken twice: by "
                      + where(store)
                      + " and by "
                      + where(all.get(rival))
                      + "; remove one"));
    }
    return settled;
  }

  /** The store that keeps another from its name, or -1; a built-in one rather than a plugin. */
  private static int rival(List<FoundStore> all, int index) {
    FoundStore store = all.get(index);
    int rival = -1;
    for (int i = 0; i < all.size() && !store.name().isEmpty(); i++) {
      FoundStore other = all.get(i);
      boolean same = i != index && other.name().equals(store.name());
      boolean counts = store.plugin() || !other.plugin();
      if (same && counts && (rival < 0 || !other.plugin())) {
        rival = i;
      }
    }
    return rival;
  }

  private static String where(FoundStore store) {
    return store.subject() + " in " + store.home().location();
  }

  private void log() {
    for (FoundStore store : found) {
      Home home = store.home();
      if (store.usable()) {
        LOG.debug(
            "Found store {} ({} {}) in {}",
            store.name(),
            home.module().isEmpty() ? "class path" : home.module(),
            home.version(),
            home.location());
      }
    }
    problems().forEach(problem -> LOG.warn("Not loaded: {}", problem));
  }

  /** Everything that was found, sorted by name; what has no readable name comes first. */
  public List<StoreEntry> entries() {
    return found.stream().map(FoundStore::entry).toList();
  }

  /** Why things could not be used, sorted by location. */
  public List<CatalogProblem> problems() {
    List<CatalogProblem> problems = new ArrayList<>();
    for (FoundStore store : Stream.concat(found.stream(), hashings.problems().stream()).toList()) {
      String subject = store.name().isEmpty() ? store.subject() : store.name();
      for (String problem : store.problems()) {
        problems.add(new CatalogProblem(store.home().location(), subject, problem));
      }
    }
    problems.sort(
        Comparator.comparing(CatalogProblem::location).thenComparing(CatalogProblem::message));
    return List.copyOf(problems);
  }

  /** The names that pipelines can ask for, sorted. */
  public List<String> names() {
    return List.copyOf(usable.keySet());
  }

  /**
   * Makes the way of naming blocks that {@code block_hasher} calls so, if there is one.
   *
   * @throws StoreException when it cannot be made
   */
  public Optional<BlockHashing> blockHashing(String name) {
    return hashings.find(name);
  }

  /**
   * The names that {@code block_hasher} can have, sorted. One that carries no {@code BlockHashingName}
   * follows with its class, in brackets, until {@link #blockHashing} had to ask for its name.
   */
  public List<String> blockHashings() {
    return hashings.names();
  }

  /** Makes what looks whether the machine has what stores need: of UCM's own modules, then of plugins. */
  public List<HealthCheck> healthChecks() {
    return healthChecks.stream().map(Supplier::get).toList();
  }

  /** Where stores were looked for. */
  public List<String> searched() {
    return searched;
  }

  /** The store of this name, if it can be used. */
  public Optional<StoreEntry> entry(String name) {
    return Optional.ofNullable(usable.get(name)).map(FoundStore::entry);
  }

  /**
   * Makes a fresh store.
   *
   * @throws UnknownStageException when there is none of this name that can be used
   * @throws StoreException when its constructor fails
   */
  public Store create(String name) {
    FoundStore store = usable.get(name);
    if (store == null || store.factory() == null) {
      throw new UnknownStageException(name, this);
    }
    try {
      Supplier<? extends Store> factory = store.factory();
      return store.plugin() ? BoundedCall.run("its constructor", factory) : factory.get();
    } catch (RuntimeException | ServiceConfigurationError | LinkageError e) {
      throw new StoreException(
          "the store "
              + name
              + " in "
              + store.home().location()
              + " cannot be created: "
              + BoundedCall.reason(e),
          e);
    }
  }

  /**
   * Refuses a pipeline with a stage that is not there.
   *
   * @throws UnknownStageException for the first such stage
   */
  public void require(PipelineSpec spec) {
    for (String stage : spec.stages()) {
      if (!usable.containsKey(stage)) {
        throw new UnknownStageException(stage, this);
      }
    }
  }

  /** The keys that each store declares, by name of the store; one that fails to say has none. */
  public Map<String, List<ConfigKey<?>>> configKeys() {
    return configKeys(usable.keySet());
  }

  /** The same of those stores that are no plugins. */
  public Map<String, List<ConfigKey<?>>> ownConfigKeys() {
    return configKeys(usable.keySet().stream().filter(name -> !isPlugin(name)).toList());
  }

  /** The same of some stores; those that cannot be used are left out. */
  public Map<String, List<ConfigKey<?>>> configKeys(Collection<String> names) {
    Map<String, List<ConfigKey<?>>> keys = new TreeMap<>();
    for (String name : names) {
      if (usable.containsKey(name)) {
        keys.put(name, configKeys(name));
      }
    }
    return keys;
  }

  private List<ConfigKey<?>> configKeys(String name) {
    try {
      return configKeys(name, create(name));
    } catch (RuntimeException | LinkageError e) {
      LOG.warn("Store {} does not say which keys it has: {}", name, e.toString());
      return List.of();
    }
  }

  /** The keys that a store declares which was made here. */
  public List<ConfigKey<?>> configKeys(String name, Store store) {
    return call(name, "configKeys()", () -> List.copyOf(store.configKeys()));
  }

  /**
   * What stages of a pipeline suggest to a stage above them; of a key that several suggest, the value of
   * the first. A stage that cannot be asked suggests nothing.
   *
   * @param names of the stages below, the one nearest the engine first
   */
  public Map<String, Object> suggestions(List<String> names) {
    Map<String, Object> all = new TreeMap<>();
    for (String name : names) {
      if (usable.containsKey(name)) {
        try {
          Store store = create(name);
          call(name, "suggestions()", () -> Map.copyOf(store.suggestions()))
              .forEach(all::putIfAbsent);
        } catch (RuntimeException | LinkageError e) {
          LOG.warn("Store {} does not say what it suggests: {}", name, e.toString());
        }
      }
    }
    return all;
  }

  /** Runs code of a store, for a bounded time when it comes out of a plugin. */
  public void run(String name, String what, Runnable code) {
    Object _ =
        call(
            name,
            what,
            () -> {
              code.run();
              return true;
            });
  }

  private <T> T call(String name, String what, Supplier<T> code) {
    return isPlugin(name) ? BoundedCall.run(what + " of the store " + name, code) : code.get();
  }

  private boolean isPlugin(String name) {
    FoundStore store = usable.get(name);
    return store != null && store.plugin();
  }

  @Override
  public String toString() {
    return "stores " + String.join(", ", names()) + " found in " + String.join("; ", searched);
  }
}
