package ucm.pipeline.catalog;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.ServiceConfigurationError;
import java.util.TreeMap;
import java.util.stream.Stream;
import ucm.api.StoreException;
import ucm.pipeline.catalog.FoundStore.Home;
import ucm.pipeline.hash.BlockHashing;

/**
 * The ways of naming blocks that were found, by name. One is made when it is asked for; those that
 * carry no name are made, and asked for it, when a name is asked for that no other has. Of several with
 * one name the first counts, as the built-in ones come first. Thread-safe.
 */
final class BlockHashings {

  // All guarded by this.
  private final Map<String, FoundHashing> named = new TreeMap<>();
  private final List<FoundHashing> unnamed = new ArrayList<>();
  private final List<FoundStore> problems = new ArrayList<>();

  BlockHashings(List<FoundHashing> all) {
    for (FoundHashing found : all) {
      if (found.name().isEmpty()) {
        unnamed.add(found);
      } else {
        add(found);
      }
    }
  }

  private void add(FoundHashing found) {
    FoundHashing earlier = named.putIfAbsent(found.name(), found);
    if (earlier != null) {
      refuse(
          found,
          "the block hasher "
              + found.name()
              + " is not used, as there is one of this name in "
              + earlier.location()
              + "; rename or remove one");
    }
  }

  /**
   * Makes the one of this name, if there is one.
   *
   * @throws StoreException when it cannot be made
   */
  synchronized Optional<BlockHashing> find(String name) {
    if (!named.containsKey(name)) {
      askUnnamed();
    }
    FoundHashing found = named.get(name);
    if (found == null) {
      return Optional.empty();
    }
    try {
      return Optional.of(found.make());
    } catch (RuntimeException | ServiceConfigurationError | LinkageError e) {
      throw new StoreException(
          "the block hasher "
              + name
              + " in "
              + found.location()
              + " cannot be made: "
              + BoundedCall.reason(e),
          e);
    }
  }

  private void askUnnamed() {
    for (FoundHashing found : unnamed) {
      try {
        FoundHashing asked = found.asked();
        if (asked.name() == null || asked.name().isBlank()) {
          refuse(found, "the block hasher has no name: carry @BlockHashingName");
        } else {
          add(asked);
        }
      } catch (RuntimeException | ServiceConfigurationError | LinkageError e) {
        refuse(found, "the block hasher cannot be made: " + BoundedCall.reason(e));
      }
    }
    unnamed.clear();
  }

  private void refuse(FoundHashing found, String problem) {
    Home home = new Home("", "", found.location());
    problems.add(FoundStore.broken(home, true, found.className(), problem));
  }

  /** The names, sorted; of those that were not asked yet the classes, in brackets, after them. */
  synchronized List<String> names() {
    return Stream.concat(
            named.keySet().stream(),
            unnamed.stream().map(found -> "(" + found.className() + ")").sorted())
        .toList();
  }

  /** What went wrong so far. */
  synchronized List<FoundStore> problems() {
    return List.copyOf(problems);
  }
}
