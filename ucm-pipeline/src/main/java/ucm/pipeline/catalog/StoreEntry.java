package ucm.pipeline.catalog;

import java.util.List;

/**
 * A store that was found, or something that should have been one.
 *
 * @param name the name by which pipelines ask for it; empty when it has none that can be read
 * @param module the module it is in; empty for a store of the class path
 * @param version the version of the module, or empty
 * @param location where the module is: a path, or the URI of a module of the runtime image
 * @param problems why it cannot be used; empty when it can
 */
public record StoreEntry(
    String name, String module, String version, String location, List<String> problems) {

  public StoreEntry {
    problems = List.copyOf(problems);
  }

  /** A place of which no more is known. */
  static StoreEntry at(String location) {
    return new StoreEntry("", "", "", location, List.of());
  }

  StoreEntry named(String own) {
    return new StoreEntry(own, module, version, location, problems);
  }

  /** Whether a pipeline can ask for it. */
  public boolean usable() {
    return problems.isEmpty();
  }
}
