package ucm.pipeline.catalog;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import ucm.api.Store;

/**
 * One result of a search, before the names are compared with one another.
 *
 * @param name its name, or empty
 * @param home the module it is in
 * @param plugin whether it came out of the plugins folder
 * @param subject the class it is about, or empty
 * @param factory makes a fresh instance; null when it cannot
 * @param problems why it cannot be used
 */
record FoundStore(
    String name,
    Home home,
    boolean plugin,
    String subject,
    @Nullable Supplier<? extends Store> factory,
    List<String> problems) {

  /** Where a store lives. */
  record Home(String module, String version, String location) {}

  /** A thing that cannot be used. */
  static FoundStore broken(Home home, boolean plugin, String subject, String problem) {
    return new FoundStore("", home, plugin, subject, null, List.of(problem));
  }

  FoundStore with(String problem) {
    List<String> more = new ArrayList<>(problems);
    more.add(problem);
    return new FoundStore(name, home, plugin, subject, factory, List.copyOf(more));
  }

  boolean usable() {
    return problems.isEmpty() && factory != null;
  }

  StoreEntry entry() {
    return new StoreEntry(name, home.module(), home.version(), home.location(), problems);
  }
}
