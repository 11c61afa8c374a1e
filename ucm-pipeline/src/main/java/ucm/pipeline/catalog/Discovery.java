package ucm.pipeline.catalog;

import java.lang.module.ModuleDescriptor;
import java.lang.module.ModuleReference;
import java.net.URI;
import java.nio.file.Path;
import java.security.CodeSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.Spliterator;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import ucm.api.Store;
import ucm.api.StoreName;
import ucm.api.admin.HealthCheck;
import ucm.pipeline.hash.BlockHasher;
import ucm.pipeline.hash.BlockHashing;
import ucm.pipeline.hash.BlockHashingName;

/**
 * What was found of the three services: stores, block hashers and health checks. Nothing is created. A
 * provider that cannot be loaded is recorded among the stores, and the search goes on after it.
 */
final class Discovery {

  private static final Pattern NAME = Pattern.compile(StoreName.PATTERN);

  /** More broken providers than this, and the loader is taken to be stuck. */
  private static final int MAX_BROKEN = 1_000;

  final List<Found<Store>> stores = new ArrayList<>();
  final List<Found<BlockHashing>> hashings = new ArrayList<>();
  final List<Found<HealthCheck>> healthChecks = new ArrayList<>();

  /** Adds the original's block hasher, and those that UCM is loaded with. */
  void addBuiltInHashings() {
    StoreEntry own = StoreEntry.at("UCM itself").named(BlockHashing.ORIGINAL);
    hashings.add(new Found<>(own, false, BlockHasher.class.getName(), () -> BlockHasher::of));
    scan(
        ServiceLoader.load(BlockHashing.class, BlockHashing.class.getClassLoader()),
        own.location(),
        provider -> addHashing(provider, false));
  }

  /** Adds what UCM is loaded with, from its modules and from the class path. */
  void addBuiltIn(@Nullable ModuleLayer layer) {
    ClassLoader own = Discovery.class.getClassLoader();
    if (layer != null) {
      scan(
          ServiceLoader.load(layer, Store.class),
          "modules of UCM",
          provider -> addStore(provider, false));
    }
    scan(
        ServiceLoader.load(Store.class, own),
        "class path",
        provider -> {
          if (!provider.type().getModule().isNamed()) {
            addStore(provider, false);
          }
        });
    addBuiltInHashings();
    scan(
        ServiceLoader.load(HealthCheck.class, own),
        "UCM itself",
        provider -> healthChecks.add(found(provider, "", false)));
  }

  /** Adds what the modules of a plugin's layer provide; its parents' do not count. */
  void addPlugin(ModuleLayer layer, String location) {
    scan(layer, Store.class, location, provider -> addStore(provider, true));
    scan(layer, BlockHashing.class, location, provider -> addHashing(provider, true));
    scan(
        layer,
        HealthCheck.class,
        location,
        provider -> healthChecks.add(found(provider, "", true)));
  }

  /** Records that a jar or folder cannot be used. */
  void refuse(String location, String problem) {
    stores.add(Found.broken(StoreEntry.at(location), true, "", problem));
  }

  /** How many providers of a service modules say they have. */
  static int providers(List<ModuleDescriptor> modules, Class<?> service) {
    return modules.stream()
        .flatMap(module -> module.provides().stream())
        .filter(provides -> provides.service().equals(service.getName()))
        .mapToInt(provides -> provides.providers().size())
        .sum();
  }

  private <S> void scan(
      ModuleLayer layer,
      Class<S> service,
      String location,
      Consumer<ServiceLoader.Provider<S>> add) {
    List<ModuleDescriptor> own =
        layer.configuration().modules().stream().map(m -> m.reference().descriptor()).toList();
    // A loader goes on into the parents after the layer's own providers, which are this many.
    scan(ServiceLoader.load(layer, service), providers(own, service), location, add);
  }

  private <S> void scan(
      ServiceLoader<S> loader, String location, Consumer<ServiceLoader.Provider<S>> add) {
    scan(loader, Integer.MAX_VALUE, location, add);
  }

  private <S> void scan(
      ServiceLoader<S> loader,
      int limit,
      String location,
      Consumer<ServiceLoader.Provider<S>> add) {
    Spliterator<ServiceLoader.Provider<S>> providers = loader.stream().spliterator();
    int broken = 0;
    for (int i = 0; i < limit && broken <= MAX_BROKEN; i++) {
      try {
        if (!providers.tryAdvance(add)) {
          return;
        }
      } catch (VirtualMachineError e) {
        throw e;
      } catch (RuntimeException | Error e) {
        // Also what damaged classes and annotations give, for which there are many kinds of errors.
        refuse(location, explain(e));
        broken++;
      }
    }
  }

  private void addStore(ServiceLoader.Provider<Store> provider, boolean plugin) {
    Class<? extends Store> type = provider.type();
    StoreName annotation = type.getAnnotation(StoreName.class);
    String name = annotation == null ? "" : annotation.value();
    if (NAME.matcher(name).matches()) {
      stores.add(found(provider, name, plugin));
      return;
    }
    String problem =
        annotation == null
            ? "has no @StoreName, so it has no name"
            : "its @StoreName is \"%s\"; a name is a letter, then up to 63 letters, digits, '_' or '-'"
                .formatted(name);
    stores.add(Found.broken(home(type), plugin, type.getName(), problem));
  }

  private void addHashing(ServiceLoader.Provider<BlockHashing> provider, boolean plugin) {
    BlockHashingName name = provider.type().getAnnotation(BlockHashingName.class);
    hashings.add(found(provider, name == null ? "" : name.value(), plugin));
  }

  private static <S> Found<S> found(
      ServiceLoader.Provider<S> provider, String name, boolean plugin) {
    Class<? extends S> type = provider.type();
    return new Found<>(home(type).named(name), plugin, type.getName(), provider);
  }

  /** The module of a class, or its place on the class path. */
  private static StoreEntry home(Class<?> type) {
    Module module = type.getModule();
    ModuleLayer layer = module.getLayer();
    if (!module.isNamed() || layer == null) {
      String version = Objects.requireNonNullElse(type.getPackage().getImplementationVersion(), "");
      CodeSource source = type.getProtectionDomain().getCodeSource();
      String location =
          source == null || source.getLocation() == null
              ? "class path"
              : readable(URI.create(source.getLocation().toString()));
      return new StoreEntry("", "", version, location, List.of());
    }
    ModuleReference reference =
        layer.configuration().findModule(module.getName()).orElseThrow().reference();
    return new StoreEntry(
        "",
        module.getName(),
        reference.descriptor().rawVersion().orElse(""),
        reference.location().map(Discovery::readable).orElse(""),
        List.of());
  }

  private static String readable(URI location) {
    return "file".equals(location.getScheme()) ? Path.of(location).toString() : location.toString();
  }

  /** The message without the leading name of the service, with the cause where it says more. */
  private static String explain(Throwable fault) {
    String message =
        fault instanceof ServiceConfigurationError
            ? String.valueOf(fault.getMessage()).replaceFirst("^[\\w.]+: ", "")
            : fault.toString();
    Throwable cause = fault.getCause();
    return cause == null || message.contains(String.valueOf(cause.getMessage()))
        ? message
        : message + " (" + cause + ")";
  }

  /**
   * A provider of a service that was found, or something that should have been one.
   *
   * @param entry its name, if it has one that can be read, where it is, and why it cannot be used
   * @param plugin whether it came out of the plugins folder
   * @param className its class, or empty
   * @param factory makes a fresh instance, by its code; null when it cannot
   */
  record Found<S>(
      StoreEntry entry, boolean plugin, String className, @Nullable Supplier<? extends S> factory) {

    static <S> Found<S> broken(StoreEntry home, boolean plugin, String className, String problem) {
      return new Found<S>(home, plugin, className, null).with(problem);
    }

    Found<S> with(String problem) {
      List<String> more = new ArrayList<>(entry.problems());
      more.add(problem);
      return new Found<>(
          new StoreEntry(entry.name(), entry.module(), entry.version(), entry.location(), more),
          plugin,
          className,
          factory);
    }

    String name() {
      return entry.name();
    }

    String location() {
      return entry.location();
    }

    String where() {
      return className + " in " + entry.location();
    }

    List<CatalogProblem> problems() {
      String subject = name().isEmpty() ? className : name();
      return entry.problems().stream()
          .map(problem -> new CatalogProblem(location(), subject, problem))
          .toList();
    }
  }
}
