package ucm.pipeline.catalog;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.function.Predicate;
import ucm.pipeline.catalog.FoundStore.Home;
import ucm.pipeline.hash.BlockHashing;
import ucm.pipeline.hash.BlockHashingName;
import ucm.pipeline.hash.PickleMd5Hashing;

/**
 * Finds the ways of naming blocks, those that UCM is loaded with and those of plugins, without making
 * one.
 */
final class HashingScan {

  private static final String BUILT_IN = "UCM itself";

  private HashingScan() {}

  /** Those among the modules and on the class path that UCM is loaded from. */
  static List<FoundHashing> builtIn(List<FoundStore> problems) {
    List<FoundHashing> found = new ArrayList<>();
    found.add(
        new FoundHashing(
            PickleMd5Hashing.NAME,
            BUILT_IN,
            PickleMd5Hashing.class.getName(),
            PickleMd5Hashing::new));
    scan(
        ServiceLoader.load(BlockHashing.class, BlockHashing.class.getClassLoader()),
        provider -> true,
        new Home("", "", BUILT_IN),
        found,
        problems);
    return found;
  }

  /**
   * Those of the modules of a plugin's layer; its parents' do not count.
   *
   * @param problems gets an entry when one cannot be loaded; the search ends there
   */
  static List<FoundHashing> plugin(ModuleLayer layer, Home home, List<FoundStore> problems) {
    List<FoundHashing> found = new ArrayList<>();
    scan(
        ServiceLoader.load(layer, BlockHashing.class),
        provider -> layer.equals(provider.type().getModule().getLayer()),
        home,
        found,
        problems);
    return found;
  }

  private static void scan(
      ServiceLoader<BlockHashing> loader,
      Predicate<ServiceLoader.Provider<BlockHashing>> wanted,
      Home home,
      List<FoundHashing> into,
      List<FoundStore> problems) {
    try {
      Iterator<ServiceLoader.Provider<BlockHashing>> providers =
          loader.stream().filter(wanted).iterator();
      while (providers.hasNext()) {
        ServiceLoader.Provider<BlockHashing> provider = providers.next();
        Class<? extends BlockHashing> type = provider.type();
        BlockHashingName name = type.getAnnotation(BlockHashingName.class);
        into.add(
            new FoundHashing(
                name == null ? "" : name.value(), home.location(), type.getName(), provider));
      }
    } catch (ServiceConfigurationError | RuntimeException | LinkageError e) {
      String reason = BoundedCall.reason(e);
      problems.add(
          FoundStore.broken(home, true, "", "has a block hasher that cannot be loaded: " + reason));
    }
  }
}
