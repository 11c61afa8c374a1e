package ucm.pipeline.catalog;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.function.Supplier;
import ucm.api.admin.HealthCheck;
import ucm.api.admin.HealthCheck.Finding;
import ucm.pipeline.catalog.FoundStore.Home;

/** Finds what looks at the machine: of UCM's own modules, and of plugins, of which nothing is made. */
final class HealthCheckScan {

  private HealthCheckScan() {}

  /** Those among the modules and on the class path that UCM is loaded from. */
  static List<Supplier<HealthCheck>> builtIn() {
    List<Supplier<HealthCheck>> found = new ArrayList<>();
    ServiceLoader.load(HealthCheck.class, HealthCheckScan.class.getClassLoader()).stream()
        .forEach(found::add);
    return found;
  }

  /**
   * Those of the modules of a plugin's layer; its parents' do not count. One that cannot be made is a
   * finding.
   *
   * @param problems gets an entry when one cannot be loaded; the search ends there
   */
  static List<Supplier<HealthCheck>> plugin(
      ModuleLayer layer, Home home, List<FoundStore> problems) {
    List<Supplier<HealthCheck>> found = new ArrayList<>();
    try {
      Iterator<ServiceLoader.Provider<HealthCheck>> providers =
          ServiceLoader.load(layer, HealthCheck.class).stream()
              .filter(provider -> layer.equals(provider.type().getModule().getLayer()))
              .iterator();
      while (providers.hasNext()) {
        ServiceLoader.Provider<HealthCheck> provider = providers.next();
        found.add(() -> make(provider, home));
      }
    } catch (ServiceConfigurationError | RuntimeException | LinkageError e) {
      problems.add(
          FoundStore.broken(
              home,
              true,
              "",
              "has a health check that cannot be loaded: " + BoundedCall.reason(e)));
    }
    return found;
  }

  private static HealthCheck make(ServiceLoader.Provider<HealthCheck> provider, Home home) {
    String name = provider.type().getName();
    try {
      return BoundedCall.run("the health check " + name, provider);
    } catch (ServiceConfigurationError | RuntimeException | LinkageError e) {
      Finding finding =
          Finding.warning(
              home.location(),
              "the health check " + name + " cannot be made: " + BoundedCall.reason(e),
              "repair the plugin or remove it");
      return (config, stages) -> List.of(finding);
    }
  }
}
