package ucm.pipeline;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import ucm.api.Checkup;
import ucm.pipeline.FoundStore.Home;

/** Finds what looks at the machine: of UCM's own modules, and of plugins. */
final class CheckupScan {

  private CheckupScan() {}

  /** Those among the modules and on the class path that UCM is loaded from. */
  static List<Checkup> builtIn() {
    List<Checkup> found = new ArrayList<>();
    ServiceLoader.load(Checkup.class, CheckupScan.class.getClassLoader()).forEach(found::add);
    return found;
  }

  /**
   * Those of the modules of a plugin's layer; its parents' do not count.
   *
   * @param problems gets an entry when one cannot be made; the search ends there
   */
  static List<Checkup> plugin(ModuleLayer layer, Home home, List<FoundStore> problems) {
    List<Checkup> found = new ArrayList<>();
    Iterator<ServiceLoader.Provider<Checkup>> providers =
        ServiceLoader.load(layer, Checkup.class).stream()
            .filter(provider -> layer.equals(provider.type().getModule().getLayer()))
            .iterator();
    try {
      while (providers.hasNext()) {
        found.add(providers.next().get());
      }
    } catch (ServiceConfigurationError | RuntimeException | LinkageError e) {
      Throwable cause = e.getCause() == null ? e : e.getCause();
      problems.add(
          FoundStore.broken(home, true, "", "has a checkup that cannot be made: " + cause));
    }
    return found;
  }
}
