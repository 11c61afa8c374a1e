package ucm.pipeline.catalog;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

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
