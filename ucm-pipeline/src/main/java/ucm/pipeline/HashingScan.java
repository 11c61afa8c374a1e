package ucm.pipeline;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import ucm.pipeline.FoundStore.Home;

/** Finds the ways of naming blocks: those that UCM is loaded with, and those of plugins. */
final class HashingScan {

  private static final String BUILT_IN = "UCM itself";

  private HashingScan() {}

  /** Those among the modules and on the class path that UCM is loaded from. */
  static List<FoundHashing> builtIn() {
    List<FoundHashing> found = new ArrayList<>();
    found.add(new FoundHashing(PickleMd5Hashing.NAME, BUILT_IN, new PickleMd5Hashing()));
    ServiceLoader.load(BlockHashing.class, BlockHashing.class.getClassLoader())
        .forEach(hashing -> found.add(new FoundHashing(hashing.name(), BUILT_IN, hashing)));
    return found;
  }

  /**
   * Those of the modules of a plugin's layer; its parents' do not count.
   *
   * @param problems gets an entry when one cannot be made; the search ends there
   */
  static List<FoundHashing> plugin(ModuleLayer layer, Home home, List<FoundStore> problems) {
    List<FoundHashing> found = new ArrayList<>();
    Iterator<ServiceLoader.Provider<BlockHashing>> providers =
        ServiceLoader.load(layer, BlockHashing.class).stream()
            .filter(provider -> layer.equals(provider.type().getModule().getLayer()))
            .iterator();
    try {
      while (providers.hasNext()) {
        BlockHashing hashing = providers.next().get();
        found.add(new FoundHashing(hashing.name(), home.location(), hashing));
      }
    } catch (ServiceConfigurationError | RuntimeException | LinkageError e) {
      Throwable cause = e.getCause() == null ? e : e.getCause();
      problems.add(
          FoundStore.broken(home, true, "", "has a block hasher that cannot be made: " + cause));
    }
    return found;
  }

  /**
   * The ones that can be used, by name: of several with one name the first, as the built-in ones come
   * first.
   *
   * @param problems gets an entry for each of the others
   */
  static Map<String, BlockHashing> byName(List<FoundHashing> all, List<FoundStore> problems) {
    Map<String, FoundHashing> first = new HashMap<>();
    Map<String, BlockHashing> usable = new HashMap<>();
    for (FoundHashing found : all) {
      FoundHashing earlier = first.putIfAbsent(found.name(), found);
      if (earlier == null) {
        usable.put(found.name(), found.hashing());
      } else {
        problems.add(
            FoundStore.broken(
                new Home("", "", found.location()),
                true,
                found.hashing().getClass().getName(),
                "the block hasher "
                    + found.name()
                    + " is not used, as there is one of this name in "
                    + earlier.location()
                    + "; rename or remove one"));
      }
    }
    return usable;
  }
}
