package ucm.pipeline.catalog;

import java.lang.module.ModuleDescriptor;
import java.lang.module.ResolvedModule;
import java.net.URI;
import java.nio.file.Path;
import java.security.CodeSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.Spliterator;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import ucm.api.Store;
import ucm.api.StoreName;
import ucm.pipeline.catalog.FoundStore.Home;

/**
 * Lists the stores of a layer or a class loader without creating one. A provider that cannot be
 * loaded is recorded, and the search goes on after it.
 */
final class ProviderScan {

  private static final Pattern NAME = Pattern.compile(StoreName.PATTERN);

  /** More broken providers than this in one place, and the loader is taken to be stuck. */
  private static final int MAX_BROKEN = 1_000;

  private ProviderScan() {}

  /** The stores of the modules that UCM runs among, those of parent layers included. */
  static List<FoundStore> builtIn(ModuleLayer layer) {
    List<FoundStore> found = new ArrayList<>();
    Home home = new Home("", "", "modules of UCM");
    ServiceLoader<Store> loader = ServiceLoader.load(layer, Store.class);
    scan(loader, Integer.MAX_VALUE, false, home, p -> true, found);
    return found;
  }

  /** The stores of the modules of a plugin's layer; its parents' do not count. */
  static List<FoundStore> plugin(ModuleLayer layer, Home home) {
    // The loader goes on into the parents after the layer's own providers, which are this many.
    int own = 0;
    for (ResolvedModule module : layer.configuration().modules()) {
      own += providers(module.reference().descriptor(), Store.class);
    }
    List<FoundStore> found = new ArrayList<>();
    scan(ServiceLoader.load(layer, Store.class), own, true, home, p -> true, found);
    return found;
  }

  /** The stores that the class path names in {@code META-INF/services}. */
  static List<FoundStore> classPath(@Nullable ClassLoader loader) {
    List<FoundStore> found = new ArrayList<>();
    scan(
        ServiceLoader.load(Store.class, loader),
        Integer.MAX_VALUE,
        false,
        new Home("", "", "class path"),
        provider -> !provider.type().getModule().isNamed(),
        found);
    return found;
  }

  /** How many providers of a service a module says it has. */
  static int providers(ModuleDescriptor descriptor, Class<?> service) {
    return descriptor.provides().stream()
        .filter(provides -> provides.service().equals(service.getName()))
        .mapToInt(provides -> provides.providers().size())
        .sum();
  }

  private static void scan(
      ServiceLoader<Store> loader,
      int limit,
      boolean plugin,
      Home home,
      Predicate<ServiceLoader.Provider<Store>> wanted,
      List<FoundStore> into) {
    Spliterator<ServiceLoader.Provider<Store>> providers = loader.stream().spliterator();
    for (int i = 0; i < limit; i++) {
      try {
        boolean more =
            providers.tryAdvance(
                provider -> {
                  if (wanted.test(provider)) {
                    into.add(judge(provider, plugin));
                  }
                });
        if (!more) {
          return;
        }
      } catch (VirtualMachineError e) {
        throw e;
      } catch (RuntimeException | Error e) {
        // Also what damaged classes and annotations give, for which there are many kinds of errors.
        into.add(FoundStore.broken(home, plugin, "", explain(e)));
        if (into.size() > MAX_BROKEN) {
          return;
        }
      }
    }
  }

  private static FoundStore judge(ServiceLoader.Provider<Store> provider, boolean plugin) {
    Class<? extends Store> type = provider.type();
    Home home = home(type);
    String className = type.getName();
    StoreName annotation = type.getAnnotation(StoreName.class);
    if (annotation == null) {
      return FoundStore.broken(home, plugin, className, "has no @StoreName, so it has no name");
    }
    String name = annotation.value();
    if (!NAME.matcher(name).matches()) {
      return FoundStore.broken(
          home,
          plugin,
          className,
          "its @StoreName is \""
              + name
              + "\"; a name is a letter, then up to 63 letters, digits,"
              + " '_' or '-'");
    }
    return new FoundStore(name, home, plugin, className, provider, List.of());
  }

  private static Home home(Class<?> type) {
    Module module = type.getModule();
    ModuleLayer layer = module.getLayer();
    if (!module.isNamed() || layer == null) {
      return new Home("", version(type.getPackage().getImplementationVersion()), codeSource(type));
    }
    return layer
        .configuration()
        .findModule(module.getName())
        .map(ProviderScan::home)
        .orElseGet(() -> new Home(module.getName(), "", ""));
  }

  static Home home(ResolvedModule module) {
    ModuleDescriptor descriptor = module.reference().descriptor();
    Optional<URI> location = module.reference().location();
    return new Home(
        descriptor.name(),
        version(descriptor.rawVersion().orElse(null)),
        location.map(ProviderScan::readable).orElse(""));
  }

  private static String codeSource(Class<?> type) {
    CodeSource source = type.getProtectionDomain().getCodeSource();
    return source == null || source.getLocation() == null
        ? "class path"
        : readable(URI.create(source.getLocation().toString()));
  }

  private static String readable(URI location) {
    return "file".equals(location.getScheme()) ? Path.of(location).toString() : location.toString();
  }

  private static String version(@Nullable String version) {
    return version == null ? "" : version;
  }

  /** The message without the leading name of the service, with the cause where it says more. */
  private static String explain(Throwable fault) {
    String message =
        fault instanceof ServiceConfigurationError
            ? String.valueOf(fault.getMessage())
            : fault.toString();
    message = message.replace(Store.class.getName() + ": ", "");
    Throwable cause = fault.getCause();
    return cause == null || message.contains(String.valueOf(cause.getMessage()))
        ? message
        : message + " (" + cause + ")";
  }
}
