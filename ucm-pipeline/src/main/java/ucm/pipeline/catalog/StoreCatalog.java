package ucm.pipeline.catalog;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.ServiceConfigurationError;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.Store;
import ucm.api.StoreException;
import ucm.api.admin.HealthCheck;
import ucm.api.admin.HealthCheck.Finding;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;
import ucm.pipeline.catalog.BoundedCall.HangsException;
import ucm.pipeline.catalog.Discovery.Found;
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

  private final List<Found<Store>> found;
  private final List<String> searched;
  private final Map<String, Found<Store>> usable = new LinkedHashMap<>();
  private final BlockHashings hashings;
  private final List<Found<HealthCheck>> healthChecks;
  // Stores whose constructor has not come back: they are not waited for again.
  private final Set<String> hung = ConcurrentHashMap.newKeySet();

  private StoreCatalog(Discovery discovery, List<String> searched) {
    this.found =
        discovery.stores.stream()
            .map(store -> settled(store, discovery.stores))
            .sorted(Comparator.comparing(Found<Store>::name).thenComparing(Found::location))
            .toList();
    this.hashings = new BlockHashings(discovery.hashings);
    this.healthChecks = List.copyOf(discovery.healthChecks);
    this.searched = searched;
    for (Found<Store> store : found) {
      if (store.entry().usable()) {
        usable.put(store.name(), store);
      }
    }
  }

  /** Marks a store whose name another one has; a built-in store keeps its name from a plugin. */
  private static Found<Store> settled(Found<Store> store, List<Found<Store>> all) {
    return all.stream()
        .filter(other -> !store.name().isEmpty() && other.name().equals(store.name()))
        .filter(other -> !other.equals(store) && (store.plugin() || !other.plugin()))
        .min(Comparator.comparing(Found::plugin))
        .map(
            rival ->
                store.with(
                    "the name %s is taken twice: by %s and by %s; remove one"
                        .formatted(store.name(), store.where(), rival.where())))
        .orElse(store);
  }

  /** The stores that are built in, without plugins. */
  public static StoreCatalog find() {
    return logged(found(Optional.empty()));
  }

  /**
   * The stores that are built in, and plugins.
   *
   * @param pluginsFolder holds {@code x.jar} or {@code x/*.jar} for each plugin; need not exist
   */
  public static StoreCatalog find(Path pluginsFolder) {
    return logged(list(pluginsFolder));
  }

  /** As {@link #find(Path)}, for who shows the problems, which are not logged as well. */
  public static StoreCatalog list(Path pluginsFolder) {
    return found(Optional.of(pluginsFolder));
  }

  private static StoreCatalog found(Optional<Path> plugins) {
    ModuleLayer layer = StoreCatalog.class.getModule().getLayer();
    Discovery discovery = new Discovery();
    discovery.addBuiltIn(layer);
    plugins.ifPresent(folder -> Plugin.loadAll(folder, layer, discovery));
    Stream<String> folder =
        plugins.stream()
            .map(path -> Files.exists(path) ? path : path + " (there is no such folder)")
            .map(path -> "plugins folder " + path);
    String own = layer == null ? "class path" : "modules of UCM";
    return new StoreCatalog(discovery, Stream.concat(Stream.of(own), folder).toList());
  }

  private static StoreCatalog logged(StoreCatalog catalog) {
    for (Found<Store> store : catalog.usable.values()) {
      String module = store.entry().module().isEmpty() ? "class path" : store.entry().module();
      String version = store.entry().version();
      LOG.debug("Found store {} ({} {}) in {}", store.name(), module, version, store.location());
    }
    catalog.problems().forEach(problem -> LOG.warn("Not loaded: {}", problem));
    return catalog;
  }

  /**
   * Stores that a program brings along.
   *
   * @param stores name, and what makes a fresh instance
   */
  public static StoreCatalog of(Map<String, ? extends Supplier<? extends Store>> stores) {
    StoreEntry home = StoreEntry.at("given by the program");
    Discovery discovery = new Discovery();
    stores.forEach(
        (name, factory) -> discovery.stores.add(new Found<>(home.named(name), false, "", factory)));
    discovery.addBuiltInHashings();
    return new StoreCatalog(discovery, List.of(home.location()));
  }

  /** Everything that was found, sorted by name; what has no readable name comes first. */
  public List<StoreEntry> entries() {
    return found.stream().map(Found::entry).toList();
  }

  /** Why things could not be used, sorted by location. */
  public List<CatalogProblem> problems() {
    return Stream.concat(
            found.stream().flatMap(store -> store.problems().stream()),
            hashings.problems().stream())
        .sorted(
            Comparator.comparing(CatalogProblem::location).thenComparing(CatalogProblem::message))
        .toList();
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
    return healthChecks.stream().map(StoreCatalog::make).toList();
  }

  /** One that cannot be made is a finding. */
  private static HealthCheck make(Found<HealthCheck> found) {
    String what = "the health check " + found.className();
    try {
      return BoundedCall.run(what, Objects.requireNonNull(found.factory()));
    } catch (ServiceConfigurationError | RuntimeException | LinkageError e) {
      Finding finding =
          Finding.warning(
              found.location(),
              what + " cannot be made: " + BoundedCall.reason(e),
              "repair the plugin or remove it");
      return (config, stages) -> List.of(finding);
    }
  }

  /** Where stores were looked for. */
  public List<String> searched() {
    return searched;
  }

  /** The store of this name, if it can be used. */
  public Optional<StoreEntry> entry(String name) {
    return Optional.ofNullable(usable.get(name)).map(Found::entry);
  }

  /**
   * Makes a fresh store.
   *
   * @throws UnknownStageException when there is none of this name that can be used
   * @throws StoreException when its constructor fails
   */
  public Store create(String name) {
    Found<Store> store = usable.get(name);
    if (store == null) {
      throw new UnknownStageException(name, this);
    }
    Supplier<? extends Store> factory = Objects.requireNonNull(store.factory());
    if (hung.contains(name)) {
      throw new StoreException(
          "the store %s in %s cannot be created: its constructor did not come back before"
              .formatted(name, store.location()));
    }
    try {
      return store.plugin() ? BoundedCall.run("its constructor", factory) : factory.get();
    } catch (RuntimeException | ServiceConfigurationError | LinkageError e) {
      if (e instanceof HangsException) {
        hung.add(name);
      }
      throw new StoreException(
          "the store %s in %s cannot be created: %s"
              .formatted(name, store.location(), BoundedCall.reason(e)),
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
    names.stream().filter(usable::containsKey).forEach(name -> keys.put(name, configKeys(name)));
    return keys;
  }

  private List<ConfigKey<?>> configKeys(String name) {
    return said(name, "which keys it has", List.of(), store -> configKeys(name, store));
  }

  /** What a fresh store says; one that cannot be asked says nothing. */
  private <T> T said(String name, String what, T nothing, Function<Store, T> question) {
    try {
      return question.apply(create(name));
    } catch (RuntimeException | LinkageError e) {
      LOG.warn("Store {} does not say {}: {}", name, what, BoundedCall.reason(e));
      return nothing;
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
    for (String name : names.stream().filter(usable::containsKey).toList()) {
      said(
              name,
              "what it suggests",
              Map.<String, Object>of(),
              store -> call(name, "suggestions()", () -> Map.copyOf(store.suggestions())))
          .forEach(all::putIfAbsent);
    }
    return all;
  }

  /**
   * What a stage would take for keys whose value depends on others or on the machine; see {@link
   * StoreConfig#settle}. A stage that cannot be asked says nothing.
   */
  public Map<String, StoreConfig.Value> settled(String name, StoreConfig config) {
    try {
      Store store = create(name);
      run(name, "configure()", () -> store.configure(config));
      return config.settled();
    } catch (RuntimeException | LinkageError e) {
      LOG.debug("Store {} does not say what it would do: {}", name, e.toString());
      return Map.of();
    }
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
    String of = what + " of the store " + name + " in " + location(name);
    try {
      return isPlugin(name) ? BoundedCall.run(of, code) : code.get();
    } catch (StoreException e) {
      throw e;
    } catch (RuntimeException | LinkageError e) {
      // Also where it returns null, or a list with null.
      throw new StoreException(of + " ended with " + e, e);
    }
  }

  private String location(String name) {
    return entry(name).map(StoreEntry::location).orElse("the program");
  }

  private boolean isPlugin(String name) {
    Found<Store> store = usable.get(name);
    return store != null && store.plugin();
  }

  @Override
  public String toString() {
    return "stores " + String.join(", ", names()) + " found in " + String.join("; ", searched);
  }
}
